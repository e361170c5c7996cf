//! The settings of a proxy: plain values from flags, a file or a program.

mod error;
mod file;
mod marker;
mod rules;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gake_wire::{Location, Scheme, TlsOptions};
use http::{HeaderName, HeaderValue, Method};

pub use error::ConfigError;
pub use file::{ConfigFileError, methods};
pub(crate) use marker::{MARKER, fold};
pub use marker::{MarkerSecret, parse_marker};
pub use rules::{PathGlob, PathRule, RuleVerdict};

use crate::exchange::Role;

/// Maximum number of shadows: a set of shadows is a bit mask.
pub const SHADOWS_MAX: usize = 32;

/// The settings of a proxy.
#[derive(Debug, Clone)]
pub struct Config {
    /// The address for clients; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve clients; each has one more for its copies. 0 means one per core.
    pub threads: usize,
    /// The backend whose responses go to the clients.
    pub master: Backend,
    /// The backends that get copies.
    pub shadows: Vec<Shadow>,
    /// TLS towards clients.
    pub tls: Option<ServerTls>,
    /// TLS towards backends.
    pub backend_tls: TlsOptions,
    /// The address of the admin service; `None` disables it.
    pub admin: Option<SocketAddr>,
    /// The token that changes through the admin service need; without one, changes are disabled.
    pub admin_token: Option<String>,
    /// How forwarding headers are handled.
    pub forwarded: ForwardedPolicy,
    /// Whether header names with `_` and the like, which many servers treat as `-`, are passed on.
    pub underscores_in_headers: bool,
    /// Signs the markers of copies.
    pub marker_secret: Option<MarkerSecret>,
    /// Bounds on memory.
    pub limits: ProxyLimits,
    /// Timeouts.
    pub timeouts: ProxyTimeouts,
    /// The seed of sampling.
    pub seed: u64,
    /// The `nice` value of the threads for shadows, 0 to 19.
    pub shadow_nice: u8,
}

/// A server that requests are sent to.
#[derive(Debug, Clone)]
pub struct Backend {
    /// The name in reports, hooks and the ledger.
    pub name: Arc<str>,
    /// Scheme, host and port.
    pub origin: Location,
    /// Whether to speak HTTP/2, negotiated in the TLS handshake or with prior knowledge.
    pub http2: bool,
    /// The `Host` of its requests.
    pub host: HostPolicy,
    /// Other changes to the headers of its requests.
    pub edits: HeaderEdits,
}

/// The `Host` header of a backend's requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostPolicy {
    /// As the client sent it.
    #[default]
    Preserve,
    /// The backend's own host and port.
    Backend,
    /// A fixed value.
    Literal(HeaderValue),
}

/// Changes to the headers of a backend's requests, applied in the order of the fields.
#[derive(Debug, Clone, Default)]
pub struct HeaderEdits {
    /// Headers to remove.
    pub remove: Vec<HeaderName>,
    /// Values to replace as a whole: header, old value, new value; for tokens of production.
    pub remap: Vec<(HeaderName, HeaderValue, HeaderValue)>,
    /// Suffixes for existing values; for idempotency keys, which must differ from the original's.
    pub suffix: Vec<(HeaderName, String)>,
    /// Headers to set, in place of any value.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

impl HeaderEdits {
    /// Whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { remove, remap, suffix, set } = self;
        remove.is_empty() && remap.is_empty() && suffix.is_empty() && set.is_empty()
    }
}

/// A backend that gets copies, and which requests are copied.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// The backend.
    pub backend: Backend,
    /// [`Role::Shadow`], or [`Role::Secondary`] for a second instance of the master.
    pub role: Role,
    /// Whether it is the master itself, sent each request twice. Then only safe methods are copied,
    /// whatever `methods` and `rules` allow.
    pub is_master: bool,
    /// The percentage of eligible requests that are copied.
    pub percentage: f64,
    /// Time after the start in which the percentage rises from 0.
    pub ramp: Option<Duration>,
    /// How requests are sampled.
    pub sample: Sampling,
    /// The methods that may be copied.
    pub methods: Vec<Method>,
    /// Rules by path; the first match decides, and a path without a match may be copied.
    pub rules: Vec<PathRule>,
    /// The header that marks copies; it is removed from clients' requests.
    pub marker: Option<(HeaderName, HeaderValue)>,
    /// Maximum number of queued copies.
    pub queue: usize,
    /// Maximum bytes of bodies of queued and running copies.
    pub queue_bytes: u64,
    /// Maximum number of connections, and of running copies.
    pub connections: usize,
    /// Maximum copies per second.
    pub rate: Option<f64>,
    /// When sending pauses after failures.
    pub breaker: BreakerConfig,
    /// Time for a copy, from leaving the queue to the end of the response.
    pub timeout: Duration,
}

/// How the sampled requests are chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Independently at random.
    #[default]
    Random,
    /// By a hash of the path: all requests for a path, or none.
    Path,
    /// By a hash of a header's value; at random without it.
    Header(HeaderName),
    /// By a hash of a cookie's value; at random without it.
    Cookie(String),
}

/// A circuit breaker: opens after consecutive failures, and lets one probe through per pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Consecutive failures that open it; 0 disables it. A failure is a copy without a complete
    /// response in time, or a hook that exceeds its time limit.
    pub failures: u32,
    /// Time between probes.
    pub pause: Duration,
}

/// The certificate and key of the listener, in PEM.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// How `X-Forwarded-*` and `Forwarded` are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedPolicy {
    /// Append the client to existing values: there is a trusted proxy in front of this one.
    #[default]
    Append,
    /// Discard what the client sent.
    Replace,
    /// Leave them unchanged.
    Off,
}

/// Bounds on memory.
#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Bytes of a request's head, at most.
    pub head_bytes: usize,
    /// Client connections; more wait in the backlog.
    pub connections: usize,
    /// Bytes of a request's body that are buffered for copies and comparison.
    pub shadow_body: u64,
    /// Bytes of a response's body that are captured for comparison, and read from a shadow.
    pub response_body: u64,
    /// Idle connections to the master per thread.
    pub idle: usize,
}

/// Timeouts.
#[derive(Debug, Clone, Copy)]
pub struct ProxyTimeouts {
    /// For a complete request head, counted from the previous response.
    pub head: Duration,
    /// For a client to send the next byte of its body, or to read the next of the response.
    pub client: Duration,
    /// For a connection to a backend, including TLS.
    pub connect: Duration,
    /// From the end of the request to the first byte of the master's response.
    pub first_byte: Duration,
    /// Between two bytes of the master's response, and for a tunnel without traffic.
    pub idle: Duration,
}

impl Config {
    /// The default settings with this master and no shadows.
    #[must_use]
    pub fn new(master: Backend) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            threads: 0,
            master,
            shadows: Vec::new(),
            tls: None,
            backend_tls: TlsOptions::default(),
            admin: None,
            admin_token: None,
            forwarded: ForwardedPolicy::default(),
            underscores_in_headers: false,
            marker_secret: None,
            limits: ProxyLimits::default(),
            timeouts: ProxyTimeouts::default(),
            seed: 1,
            shadow_nice: 0,
        }
    }

    /// Replaces the master, also where a shadow repeats it.
    pub fn set_master(&mut self, master: Backend) {
        for shadow in self.shadows.iter_mut().filter(|shadow| shadow.is_master) {
            shadow.backend = Backend { name: Arc::clone(&shadow.backend.name), ..master.clone() };
        }
        self.master = master;
    }

    /// Checks the settings for contradictions.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.shadows.len() > SHADOWS_MAX {
            return Err(ConfigError::TooManyShadows(self.shadows.len()));
        }
        let mut names = vec![&self.master.name];
        for shadow in &self.shadows {
            let name = &shadow.backend.name;
            if names.contains(&name) {
                return Err(ConfigError::DuplicateName(name.to_string()));
            }
            names.push(name);
            if !(0.0..=100.0).contains(&shadow.percentage) {
                return Err(ConfigError::Percentage(name.to_string()));
            }
            if shadow.queue == 0 || shadow.connections == 0 {
                return Err(ConfigError::Zero(name.to_string()));
            }
            if shadow.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
                return Err(ConfigError::Rate(name.to_string()));
            }
        }
        if self.admin.is_some_and(|admin| !admin.ip().is_loopback()) {
            return Err(ConfigError::AdminPublic);
        }
        Ok(())
    }
}

impl Backend {
    /// A backend by the URL of its origin. The schemes `h2` (TLS) and `h2c` select HTTP/2.
    ///
    /// # Errors
    /// When the name or the URL is invalid.
    pub fn new(name: &str, url: &str) -> Result<Self, ConfigError> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_valid) {
            return Err(ConfigError::Name(name.to_owned()));
        }
        let http2 =
            [("h2c://", "http"), ("h2://", "https")].into_iter().find_map(|(start, plain)| {
                let rest = url.strip_prefix(start)?;
                Some(format!("{plain}://{rest}"))
            });
        let origin = Location::parse(http2.as_deref().unwrap_or(url))?;
        if origin.target != "/" || origin.user.is_some() {
            return Err(ConfigError::NotAnOrigin(url.to_owned()));
        }
        let (host, edits) = (HostPolicy::Preserve, HeaderEdits::default());
        Ok(Self { name: name.into(), origin, http2: http2.is_some(), host, edits })
    }

    /// Parses `NAME=URL`, or a URL with the name `default`.
    ///
    /// # Errors
    /// When the name or the URL is invalid.
    pub fn parse(text: &str, default: &str) -> Result<Self, ConfigError> {
        match text.split_once('=') {
            // A URL may contain `=`, but only after its scheme.
            Some((name, url)) if !name.contains(['/', ':']) => Self::new(name, url),
            _ => Self::new(default, text),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }

    /// The URL as configured.
    pub(crate) fn url(&self) -> String {
        match (self.http2, self.is_tls()) {
            (false, _) => self.origin.to_string(),
            (true, false) => format!("h2c://{}/", self.origin.authority()),
            (true, true) => format!("h2://{}/", self.origin.authority()),
        }
    }
}

impl Shadow {
    /// A shadow with the default settings: all requests with safe methods.
    #[must_use]
    pub fn new(backend: Backend) -> Self {
        Self {
            backend,
            role: Role::Shadow,
            is_master: false,
            percentage: 100.0,
            ramp: None,
            sample: Sampling::default(),
            methods: vec![Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE],
            rules: Vec::new(),
            marker: Some((HeaderName::from_static(MARKER), HeaderValue::from_static("1"))),
            queue: 1024,
            queue_bytes: 64 << 20,
            connections: 128,
            rate: None,
            breaker: BreakerConfig::default(),
            timeout: Duration::from_secs(10),
        }
    }

    /// The master itself under another name, sent each request a second time to measure noise.
    #[must_use]
    pub fn repeat_of(master: &Backend, name: &str) -> Self {
        let backend = Backend { name: name.into(), ..master.clone() };
        Self { role: Role::Secondary, is_master: true, ..Self::new(backend) }
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 20, pause: Duration::from_secs(5) }
    }
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            head_bytes: 64 << 10,
            connections: 10_000,
            shadow_body: 1 << 20,
            response_body: 1 << 20,
            idle: 256,
        }
    }
}

impl Default for ProxyTimeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            client: Duration::from_secs(30),
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
        }
    }
}

impl ProxyTimeouts {
    pub(crate) fn shortest(&self) -> Duration {
        let Self { head, client, connect, first_byte, idle } = *self;
        head.min(client).min(connect).min(first_byte).min(idle)
    }
}
