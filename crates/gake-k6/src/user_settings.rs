//! Settings of a test's users, from its options and from its environment.

use std::num::NonZeroU64;
use std::sync::Arc;

use gake_text::redact::{Redactor, SecretNames};
use gake_wire::ConnectTo;

use crate::blocked::BlockedTargets;
use crate::bodies::default_bound;
use crate::features::Features;
use crate::profile::ScriptProfile;
use crate::version::K6Version;

/// Settings of users.
#[derive(Debug, Clone)]
pub struct UserSettings {
    /// `__ENV`.
    pub environment: Vec<(String, String)>,
    /// Tags of every sample.
    pub tags: Vec<(String, String)>,
    /// Redirects followed for one request.
    pub max_redirects: u32,
    /// The header `User-Agent`; none when it is empty.
    pub user_agent: String,
    /// Concurrent requests of one `http.batch`.
    pub batch: usize,
    /// Concurrent requests of one `http.batch` to one host.
    pub batch_per_host: usize,
    /// Whether a request that fails throws.
    pub throw: bool,
    /// Whether cookies are kept across iterations.
    pub no_cookies_reset: bool,
    /// Whether response bodies are dropped unless a request asks for them.
    pub discard_response_bodies: bool,
    /// Whether each iteration opens connections of its own.
    pub no_vu_connection_reuse: bool,
    /// Seeds the `Math.random` of each user, together with the user's number.
    pub seed: Option<u64>,
    /// Targets to which no request is sent.
    pub blocked: BlockedTargets,
    /// Maximum requests a second, of all users together.
    pub rps: Option<NonZeroU64>,
    /// Whether requests and responses are logged.
    pub http_debug: Option<HttpDebug>,
    /// Experimental features.
    pub features: Features,
    /// The version of k6 that scripts see.
    pub version: K6Version,
    /// Maximum bytes of a user's heap.
    pub memory: usize,
    /// Maximum bytes of response bodies that all users of the process hold outside of their heaps.
    pub bodies: u64,
    /// Whether the bodies of failed responses are counted.
    pub failed_bodies: bool,
    /// Redacts the log. If it is off, lines of the console are as the script writes them, as in k6.
    pub redactor: Redactor,
    /// Takes samples of the running lines, if set.
    pub profile: Option<Arc<ScriptProfile>>,
    /// The browser of scripts.
    pub browser: BrowserSettings,
}

/// The browser of scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrowserSettings {
    /// The scenarios whose users have one.
    pub scenarios: Vec<String>,
    /// The variables that say how it is started: `PATH` and those that begin with `K6_BROWSER_`.
    pub environment: Vec<(String, String)>,
    /// The option `hosts`: addresses by host name or pattern, each maybe with a port. The first
    /// that matches holds.
    pub hosts: Vec<(String, String)>,
    /// The same as rules of connections.
    pub connect_to: Vec<ConnectTo>,
    /// The options `blockHostnames` and `blacklistIPs`.
    pub blocked: BlockedTargets,
}

/// The value of `httpDebug`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpDebug {
    /// Start lines and headers.
    Headers,
    /// Start lines, headers and bodies.
    Full,
}

impl Default for UserSettings {
    fn default() -> Self {
        Self {
            environment: Vec::new(),
            tags: Vec::new(),
            max_redirects: 10,
            user_agent: format!("gake/{} (k6 script)", env!("CARGO_PKG_VERSION")),
            batch: 20,
            batch_per_host: 6,
            throw: false,
            no_cookies_reset: false,
            discard_response_bodies: false,
            no_vu_connection_reuse: false,
            seed: None,
            blocked: BlockedTargets::default(),
            rps: None,
            http_debug: None,
            features: Features::default(),
            version: K6Version::default(),
            memory: 512 << 20,
            bodies: default_bound(),
            failed_bodies: false,
            redactor: Redactor::masking(SecretNames::default()),
            browser: BrowserSettings::default(),
            profile: None,
        }
    }
}
