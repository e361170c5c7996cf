//! A run as the user describes it: a plain value that can be printed, stored and read back.
//!
//! Flags, files, the options of other tools and scripts all produce a [`RunSpec`]; `gake-run` makes
//! plans and requests of it. Nothing here has been opened, resolved or measured: the same spec means
//! the same run on another machine, as far as that machine is able.
//!
//! A [`RunDraft`] holds only what the user wrote. Drafts are
//! what files hold and what flags change; [`RunDraft::decide`] fills in the defaults and refuses
//! contradictions, [`RunSpec::draft`] converts back. [`mod@file`] reads and writes drafts as TOML and
//! JSON.

mod decide;
mod draft;
mod error;
pub mod file;

mod locate;
mod print;
mod request;
mod syntax;
#[cfg(test)]
mod tests;
pub mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use crate::Load;
pub use draft::{ConnectionDraft, RequestDraft, RunDraft, ScenarioDraft, TlsDraft};
pub use error::{FieldPath, SpecError};
pub use file::{FileError, Syntax};
pub use request::{
    BodySpec, GrpcSpec, RecordingSpec, RequestDefaults, RequestSource, RequestSpec, ScriptSpec,
    WebSocketSpec,
};

use crate::metric::MAX_SERIES;
use crate::plan::{DRAIN, Expect, OPEN_CONNECTIONS, Overflow, Plan, Timeouts};
use crate::schedule::NumberStripes;

/// The version of the format that this gake writes, and the newest it reads.
pub const VERSION: u64 = 1;

/// Maximum number of scenarios of one run.
pub const SCENARIOS_MAX: usize = 100;

/// Default duration of a load.
pub const DURATION: Duration = Duration::from_secs(10);

/// Default users of a closed loop, as in hey.
pub const USERS: usize = 50;

/// Default maximum of concurrent requests on an HTTP/2 connection in an open loop. In a closed loop
/// each connection has its share of the users.
pub const STREAMS: usize = 100;

/// The largest `max_series` of a run; a million trends take gigabytes.
pub const SERIES_MAX: usize = 1_000_000;

/// A run: one or several loads side by side, and their common settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "RunDraft", into = "RunDraft")]
pub struct RunSpec {
    /// The name of the run in reports; by default, what it loads.
    pub name: Option<String>,
    /// The loads. Never empty; their names differ.
    pub scenarios: Vec<ScenarioSpec>,
    /// Worker threads; by default as many as the load needs.
    pub threads: Option<usize>,
    /// Whether a worker polls the last part of each wait.
    pub spin: bool,
    /// Makes random arrivals repeatable.
    pub seed: u64,
    /// The first part of the run, left out of the figures; comes before the loads' durations.
    pub warmup: Duration,
    /// How connections are made and used.
    pub connection: ConnectionSpec,
    /// TLS settings.
    pub tls: TlsSpec,
    /// Objectives, such as `p99<50ms`.
    pub objectives: Vec<String>,
    /// Whether the run ends as soon as an objective is missed.
    pub abort: bool,
    /// Maximum number of distinct series of the run's own metrics; others are counted together.
    pub max_series: usize,
    /// Sources to sample during the run, such as `port:8080`.
    pub watch: Vec<String>,
}

/// One load.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioSpec {
    /// Its name, which is the tag `scenario` of its figures.
    pub name: String,
    /// The source of its requests.
    pub source: RequestSource,
    /// Defaults for all its requests.
    pub request: RequestDefaults,
    /// How arrivals are generated.
    pub load: Load,
    /// From the start of the run to the start of this load.
    pub start: Duration,
    /// Arrivals stop after this time. Without it a count, the stages, or a signal ends the
    /// load. The stages of [`Load::Open`] and [`Load::Ramping`] have times of their own.
    pub duration: Option<Duration>,
    /// Arrivals stop after this number.
    pub requests: Option<u64>,
    /// Which arrivals and users of a larger load this one has, if it is part of one; its rates and
    /// its number of users are its own. Not in spec files.
    pub stripes: Option<NumberStripes>,
    /// How long those in flight may take after the last arrival.
    pub graceful_stop: Duration,
    /// Maximum number of connections. In a closed loop each user has one, unless users share those
    /// of HTTP/2.
    pub connections: usize,
    /// Maximum number of arrivals in flight.
    pub lanes: usize,
    /// What happens to an arrival that is due while all lanes are busy.
    pub overflow: Overflow,
    /// Tags of every sample: keys and values.
    pub tags: Vec<(String, String)>,
    /// Which responses are ok.
    pub expect: Expect,
    /// The check that the body of a response must pass to be ok: a regular expression, `sha256:HEX`
    /// or `json:PATH=VALUE`.
    pub expect_body: Option<String>,
    /// Whether the parts of answers (events, lines, messages, pieces) are timed as they come.
    pub stream: bool,
    /// Whether the bodies of failed answers are counted.
    pub body_errors: bool,
}

/// How connections are made and used.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectionSpec {
    /// The time-outs.
    pub timeouts: Timeouts,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// Maximum redirects followed for one request.
    pub max_redirects: u32,
    /// New connections a second, when bounded.
    pub connect_rate: Option<f64>,
    /// Connections opened at the start and held without a request.
    pub idle_connections: usize,
    /// Idle connections kept to a host after use, when that is bounded.
    pub max_idle: Option<usize>,
    /// The HTTP version.
    pub http: HttpVersion,
    /// Maximum concurrent requests on an HTTP/2 connection, if set.
    pub streams: Option<usize>,
    /// Flow-control window of an HTTP/2 stream in bytes, if set.
    pub stream_window: Option<u32>,
    /// Flow-control window of an HTTP/2 connection in bytes, if set; at least 65,535.
    pub connection_window: Option<u32>,
    /// Sources of connections: addresses, ranges, networks, interfaces.
    pub sources: Vec<String>,
    /// `HOST:PORT:ADDRESS` instead of resolving the name, as in curl.
    pub resolve: Vec<String>,
    /// `HOST1:PORT1:HOST2:PORT2`, as in curl.
    pub connect_to: Vec<String>,
    /// A Unix socket instead of any host.
    pub unix_socket: Option<PathBuf>,
    /// A proxy for every connection: `http://USER:PASSWORD@HOST:PORT`.
    pub proxy: Option<String>,
    /// Only addresses of this family.
    pub family: Option<IpFamily>,
    /// What is kept of answers for consumers of every outcome.
    pub keep: Option<KeepSpec>,
}

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[default]
    #[serde(rename = "1.1")]
    Http11,
    /// HTTP/2: by ALPN over TLS, by prior knowledge in clear text.
    #[serde(rename = "2")]
    Http2,
    /// HTTP/2 or 1.1, as ALPN chooses over TLS; 1.1 in clear text.
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/3, over QUIC.
    #[serde(rename = "3")]
    Http3,
    /// As [`Auto`](Self::Auto), and HTTP/3 where an answer's `Alt-Svc` offers it.
    #[serde(rename = "auto3")]
    Auto3,
}

impl HttpVersion {
    /// Whether a connection may carry several requests at once.
    #[must_use]
    pub const fn is_multiplexed(self) -> bool {
        matches!(self, Self::Http2 | Self::Auto | Self::Http3 | Self::Auto3)
    }
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpFamily {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// How many answers are kept, and how much of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepSpec {
    /// Answers kept on each worker, from its first on.
    pub answers: u64,
    /// Maximum number of bytes kept of a body.
    pub body_bytes: usize,
}

/// What TLS trusts and shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSpec {
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// PEM files that are trusted instead of the system's.
    pub ca_certificates: Vec<PathBuf>,
    /// The client's certificate, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, PEM.
    pub key: Option<PathBuf>,
    /// Whether sessions are taken up again.
    pub session_tickets: bool,
    /// Whether requests that are safe to replay are sent before the end of the handshake (0-RTT);
    /// sessions are taken up again then, too.
    pub early_data: bool,
    /// The oldest version that is spoken; 1.2 if not set.
    pub min_version: Option<TlsVersion>,
    /// The newest version that is spoken; 1.3 if not set.
    pub max_version: Option<TlsVersion>,
    /// The cipher suites that are offered, by their IANA names, the preferred one first; if empty,
    /// the library's.
    pub ciphers: Vec<String>,
    /// The file with the configurations by which the hello is encrypted (ECH); `grease` only looks
    /// like it.
    pub ech: Option<PathBuf>,
    /// Where the secrets of sessions are written, for programs that decrypt captured traffic.
    pub key_log: Option<PathBuf>,
}

/// A version of TLS.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum TlsVersion {
    /// 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    Tls12,
    /// 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// Its number: `1.2` or `1.3`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }
}

impl TlsSpec {
    /// The only version that is spoken; `None` if both are.
    #[must_use]
    pub fn only_version(&self) -> Option<TlsVersion> {
        match (self.min_version, self.max_version) {
            (Some(TlsVersion::Tls13), _) => Some(TlsVersion::Tls13),
            (_, Some(TlsVersion::Tls12)) => Some(TlsVersion::Tls12),
            _ => None,
        }
    }
}

impl RunSpec {
    /// A run of one load, with the defaults of everything else.
    #[must_use]
    pub fn new(scenario: ScenarioSpec) -> Self {
        Self {
            name: None,
            scenarios: vec![scenario],
            threads: None,
            spin: false,
            seed: 1,
            warmup: Duration::ZERO,
            connection: ConnectionSpec::default(),
            tls: TlsSpec::default(),
            objectives: Vec::new(),
            abort: false,
            max_series: MAX_SERIES,
            watch: Vec::new(),
        }
    }
}

impl ScenarioSpec {
    /// A load of what `source` names, with the defaults of everything else: a connection for each
    /// user of a closed loop, [`OPEN_CONNECTIONS`] of an open one.
    #[must_use]
    pub fn new(source: RequestSource, load: Load) -> Self {
        let connections = load.users().unwrap_or(OPEN_CONNECTIONS);
        let expect = source.expect();
        Self {
            name: Plan::DEFAULT_NAME.to_owned(),
            source,
            request: RequestDefaults::default(),
            load,
            start: Duration::ZERO,
            duration: None,
            requests: None,
            stripes: None,
            graceful_stop: DRAIN,
            connections,
            lanes: connections,
            overflow: Overflow::Wait,
            tags: Vec::new(),
            expect,
            expect_body: None,
            stream: false,
            body_errors: false,
        }
    }
}

impl ScenarioSpec {
    /// Maximum concurrent requests per connection with the settings `connection`: 1 with HTTP/1.
    #[must_use]
    pub fn streams(&self, connection: &ConnectionSpec) -> usize {
        if !connection.http.is_multiplexed() {
            return 1;
        }
        let default = match self.load.users() {
            Some(users) => users.div_ceil(self.connections.max(1)).max(1),
            None => STREAMS,
        };
        connection.streams.unwrap_or(default)
    }
}

impl Default for ConnectionSpec {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            keepalive: true,
            max_redirects: 0,
            connect_rate: None,
            idle_connections: 0,
            max_idle: None,
            http: HttpVersion::Http11,
            streams: None,
            stream_window: None,
            connection_window: None,
            sources: Vec::new(),
            resolve: Vec::new(),
            connect_to: Vec::new(),
            unix_socket: None,
            proxy: None,
            family: None,
            keep: None,
        }
    }
}
