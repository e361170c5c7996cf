//! What a proxy is told: plain values, from flags, a file or a program.

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

/// Backends are chosen by a bit each.
pub const SHADOWS_MAX: usize = 32;

/// A whole proxy.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where clients come; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Threads that serve clients, each with a thread for shadows beside it; 0 means the cores.
    pub threads: usize,
    /// Who answers.
    pub master: Backend,
    /// Who gets copies.
    pub shadows: Vec<Shadow>,
    /// The certificate for TLS towards clients.
    pub tls: Option<ServerTls>,
    /// TLS towards backends.
    pub backend_tls: TlsOptions,
    /// Where the admin service listens.
    pub admin: Option<SocketAddr>,
    /// What changes through the admin service must show; nobody may change anything without.
    pub admin_token: Option<String>,
    /// What happens to the headers that say where a request came from.
    pub forwarded: ForwardedPolicy,
    /// Whether header names with `_` and other characters that many servers take for `-` are passed
    /// on.
    pub underscores_in_headers: bool,
    /// Signs the markers of copies.
    pub marker_secret: Option<MarkerSecret>,
    /// Bounds on memory.
    pub limits: ProxyLimits,
    /// Time-outs.
    pub timeouts: ProxyTimeouts,
    /// Makes sampling repeatable.
    pub seed: u64,
    /// How much lower the threads for shadows stand in the scheduler (`nice`), 0 to 19.
    pub shadow_nice: u8,
}

/// A server requests can be sent to.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name in reports, hooks and the ledger.
    pub name: Arc<str>,
    /// Where it is.
    pub origin: Location,
    /// Whether it is asked in HTTP/2: chosen in the TLS handshake, or known beforehand.
    pub http2: bool,
    /// What `Host` says to it.
    pub host: HostPolicy,
    /// What else is changed in its requests.
    pub edits: HeaderEdits,
}

/// What `Host` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HostPolicy {
    /// What the client said.
    #[default]
    Preserve,
    /// The backend's own host and port.
    Backend,
    /// This.
    Literal(HeaderValue),
}

/// Changes to the headers of a backend's requests, in this order.
#[derive(Debug, Clone, Default)]
pub struct HeaderEdits {
    /// Removed.
    pub remove: Vec<HeaderName>,
    /// Replaced, whole value by whole value: production's tokens by those of the backend.
    pub remap: Vec<(HeaderName, HeaderValue, HeaderValue)>,
    /// Appended to a value that is there: an idempotency key must not meet itself.
    pub suffix: Vec<(HeaderName, String)>,
    /// Set, whatever was there.
    pub set: Vec<(HeaderName, HeaderValue)>,
}

impl HeaderEdits {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { remove, remap, suffix, set } = self;
        remove.is_empty() && remap.is_empty() && suffix.is_empty() && set.is_empty()
    }
}

/// A backend that gets copies, and which.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// The server.
    pub backend: Backend,
    /// [`Role::Shadow`], or [`Role::Secondary`] for a second instance of the master.
    pub role: Role,
    /// Whether it is the master itself, asked a second time: then only safe methods are copied,
    /// whatever `methods` and `rules` say.
    pub is_master: bool,
    /// How many of the requests that may be copied are, in percent.
    pub percentage: f64,
    /// The percentage is reached from 0 in this time after the start.
    pub ramp: Option<Duration>,
    /// Which ones.
    pub sample: Sampling,
    /// The methods that may be copied.
    pub methods: Vec<Method>,
    /// The paths that may; the first rule that fits decides, and without one a path may.
    pub rules: Vec<PathRule>,
    /// What marks a copy as one; clients' requests lose this header.
    pub marker: Option<(HeaderName, HeaderValue)>,
    /// Copies that wait at most.
    pub queue: usize,
    /// Bytes of bodies in copies that wait or are under way, at most.
    pub queue_bytes: u64,
    /// Connections at most, which is also how many copies are under way.
    pub connections: usize,
    /// Copies a second at most.
    pub rate: Option<f64>,
    /// When it is left alone for a while.
    pub breaker: BreakerConfig,
    /// Time for a copy, from its turn to the end of the answer.
    pub timeout: Duration,
}

/// Which requests make up a percentage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Drawn, each by itself.
    #[default]
    Random,
    /// By the path: all requests for one path, or none.
    Path,
    /// By a header's value; drawn when it is missing.
    Header(HeaderName),
    /// By a cookie's value; drawn when it is missing.
    Cookie(String),
}

/// A circuit breaker: after a number of consecutive failures nothing is tried for a while, then one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row; 0 turns it off. A shadow fails with no whole answer in time, a hook when
    /// it takes longer than its limit.
    pub failures: u32,
    /// How long it stays open.
    pub pause: Duration,
}

/// The certificate and key of the listener, in PEM.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The certificate chain.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What happens to `X-Forwarded-*` and `Forwarded`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardedPolicy {
    /// The client is appended to what is there: another proxy stands before this one.
    #[default]
    Append,
    /// What the client says of itself is thrown away.
    Replace,
    /// Nothing is touched.
    Off,
}

/// Bounds on memory.
#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Clients' connections; more wait in the backlog.
    pub connections: usize,
    /// Bytes of a request's body that are kept for copies and comparison.
    pub shadow_body: u64,
    /// Bytes of an answer's body that are kept for comparison, and read from a shadow.
    pub response_body: u64,
    /// Idle connections to the master that each thread keeps.
    pub idle: usize,
}

/// Time-outs.
#[derive(Debug, Clone, Copy)]
pub struct ProxyTimeouts {
    /// For a client to bring a whole request head, from the last answer on.
    pub head: Duration,
    /// For a client that sends no byte of its body, or takes none of its answer.
    pub client: Duration,
    /// For a connection to a backend, TLS included.
    pub connect: Duration,
    /// From the end of the request to the master's first byte.
    pub first_byte: Duration,
    /// Between two bytes of the master's answer, and before a tunnel without traffic ends.
    pub idle: Duration,
}

impl Config {
    /// A proxy with the usual settings in front of one master.
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

    /// Puts another master in place of this one, also where it is asked a second time.
    pub fn set_master(&mut self, master: Backend) {
        for shadow in self.shadows.iter_mut().filter(|shadow| shadow.is_master) {
            shadow.backend = Backend { name: Arc::clone(&shadow.backend.name), ..master.clone() };
        }
        self.master = master;
    }

    /// Whether the settings make sense together.
    ///
    /// # Errors
    /// What does not, in words.
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
    /// A backend by its URL, which names an origin: no path. The schemes `h2` (over TLS) and
    /// `h2c` (in the clear) are those of a backend that is asked in HTTP/2.
    ///
    /// # Errors
    /// When the name or the URL cannot be used.
    pub fn new(name: &str, url: &str) -> Result<Self, ConfigError> {
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(sound) {
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

    /// `NAME=URL`, or a URL that gets the name `default`.
    ///
    /// # Errors
    /// When the name or the URL cannot be used.
    pub fn parse(text: &str, default: &str) -> Result<Self, ConfigError> {
        match text.split_once('=') {
            // A URL may hold a `=` too, but not before its scheme.
            Some((name, url)) if !name.contains(['/', ':']) => Self::new(name, url),
            _ => Self::new(default, text),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }

    /// Where it is, as it was told.
    pub(crate) fn url(&self) -> String {
        match (self.http2, self.is_tls()) {
            (false, _) => self.origin.to_string(),
            (true, false) => format!("h2c://{}/", self.origin.authority()),
            (true, true) => format!("h2://{}/", self.origin.authority()),
        }
    }
}

impl Shadow {
    /// A shadow with the usual settings: all requests with safe methods.
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
            connections: 64,
            rate: None,
            breaker: BreakerConfig::default(),
            timeout: Duration::from_secs(10),
        }
    }

    /// The master itself, asked a second time under another name: where it differs from its first
    /// answer is noise.
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
