//! A run as the user describes it: a plain value that can be printed, stored and read back.
//!
//! Flags, files, options of other tools and scripts all produce a [`RunSpec`], which `gake-run`
//! turns into plans and requests. Nothing in it has been opened, resolved or measured: it means the
//! same run on any machine.
//!
//! A [`RunDraft`] holds only what the user wrote, in a file or in flags. [`RunDraft::decide`]
//! applies defaults and rejects contradictions, [`RunSpec::draft`] converts back, [`mod@file`]
//! reads and writes TOML and JSON.

mod body;
mod decide;
mod draft;
mod error;
mod fields;
pub mod file;

mod locate;
mod print;
mod request;
mod settings;
mod syntax;
#[cfg(test)]
mod tests;
pub mod value;

use std::time::Duration;

pub use crate::Load;
pub use draft::{RequestDraft, RunDraft, ScenarioDraft};
pub use error::{FieldPath, SpecError};
pub use fields::{Layer, SpecField};
pub use file::{FileError, Syntax};
pub use request::{
    BodySpec, GrpcSpec, RecordingSpec, RequestDefaults, RequestSource, RequestSpec, RowsSpec,
    ScriptSpec, WebSocketSpec,
};
pub use settings::{
    ConnectionDraft, ConnectionSpec, HttpVersion, IpFamily, TlsDraft, TlsSpec, TlsVersion,
};

use crate::metric::MAX_SERIES;
use crate::plan::{DRAIN, ExpectedStatus, OPEN_CONNECTIONS, Overflow, Plan};
use crate::schedule::NumberPattern;

/// The format version that is written, and the newest that is read.
pub const VERSION: u64 = 1;

/// Maximum number of scenarios of one run.
pub const SCENARIOS_MAX: usize = 100;

/// Default duration of a load.
pub const DURATION: Duration = Duration::from_secs(10);

/// Default users of a closed loop, as in hey.
pub const USERS: usize = 50;

/// Default maximum of concurrent requests on an HTTP/2 connection in an open loop; in a closed loop
/// users are divided among connections.
pub const STREAMS: usize = 100;

/// Upper bound of `threads`; each takes memory before anything is sent.
pub const THREADS_MAX: usize = 1_024;

/// Upper bound of `max_series`; a million trends take gigabytes.
pub const SERIES_MAX: usize = 1_000_000;

/// A run: one or several loads, and their common settings.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "RunDraft", into = "RunDraft")]
pub struct RunSpec {
    /// The name of the run in reports; by default the target.
    pub name: Option<String>,
    /// The loads, at least one, with distinct names.
    pub scenarios: Vec<ScenarioSpec>,
    /// Worker threads; by default as many as the load needs.
    pub threads: Option<usize>,
    /// Whether workers busy-poll at the end of each wait.
    pub spin: bool,
    /// Makes random arrivals repeatable.
    pub seed: u64,
    /// Time before the durations of the loads that is left out of the figures.
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
    /// The value of the tag `scenario` of its figures.
    pub name: String,
    /// The source of its requests.
    pub source: RequestSource,
    /// Defaults for all its requests.
    pub request: RequestDefaults,
    /// How arrivals are generated.
    pub load: Load,
    /// From the start of the run to the start of this load.
    pub start: Duration,
    /// Arrivals stop after this time. `None`: a count, the stages or a signal ends the load. Stages
    /// of [`Load::Open`] and [`Load::Ramping`] have times of their own.
    pub duration: Option<Duration>,
    /// Arrivals stop after this number.
    pub requests: Option<u64>,
    /// The arrivals and users of a larger load that this one has, if it is a slice of one. Rates
    /// and number of users belong to this load. Not in spec files.
    pub stripes: Option<NumberPattern>,
    /// Time for arrivals in flight to finish after the last arrival.
    pub graceful_stop: Duration,
    /// Maximum number of connections. In a closed loop each user has one, unless users share HTTP/2
    /// connections.
    pub connections: usize,
    /// Maximum number of arrivals in flight.
    pub max_in_flight: usize,
    /// What happens to an arrival that is due while `max_in_flight` is reached.
    pub overflow: Overflow,
    /// Tags of every sample: keys and values.
    pub tags: Vec<(String, String)>,
    /// Which responses are ok.
    pub expect: ExpectedStatus,
    /// The check that the body of a response must pass to be ok: a regular expression, `sha256:HEX`
    /// or `json:PATH=VALUE`.
    pub expect_body: Option<String>,
    /// Whether the events, lines, messages or chunks of a response are timed.
    pub stream: bool,
    /// Whether the bodies of failed responses are counted.
    pub body_errors: bool,
}

impl RunSpec {
    /// A run of one load, with defaults.
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
    /// A load with defaults: a connection for each user of a closed loop, [`OPEN_CONNECTIONS`] for
    /// an open one.
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
            max_in_flight: connections,
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
    /// Maximum concurrent requests on a connection; 1 with HTTP/1.
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

/// The first field with this key.
#[must_use]
pub fn field(key: &str) -> Option<&'static SpecField> {
    let tables =
        [RunDraft::FIELDS, ScenarioDraft::FIELDS, ConnectionDraft::FIELDS, TlsDraft::FIELDS];
    tables.into_iter().flatten().find(|field| field.key == key)
}

/// The JSON schema of spec files.
#[cfg(feature = "schema")]
#[must_use]
pub fn json_schema() -> String {
    let mut schema = schemars::schema_for!(RunDraft);
    schema.insert("title".to_owned(), "A run of gake".into());
    format!("{:#}\n", schema.to_value())
}
