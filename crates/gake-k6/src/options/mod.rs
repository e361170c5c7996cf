//! k6's options from scripts, files, the environment and flags.
//!
//! Each source is a tier: [`K6Options`] in which most fields are unset. [`Tiers`] merges them and
//! converts shortcuts into scenarios; [`validate()`] reports errors in k6's words.

mod chosen;
mod describe;
mod dns;
mod env;
mod load;
mod progress;
mod scenario;
mod segment;
mod shortcuts;
mod threshold;
mod tiers;
mod validate;
mod value;

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::duration::GoDuration;
pub use describe::described;
pub use dns::DnsOptions;
pub use env::from_environment;
pub use load::{scenario_specs, vus_needed};
pub use progress::{RunProgress, ScenarioState, progressed};
pub use scenario::{Executor, RampStage, ScenarioOptions};
pub use segment::{ExecutionSegment, SegmentError, SegmentSequence, segment_users};
pub use threshold::ThresholdOptions;
pub use tiers::{ConsolidatedOptions, MergedOptions, Tier, Tiers};
pub use validate::{validate, validate_trend_stats};
use value::{OptionValue, known, object};

/// The name of the scenario that a shortcut defines.
pub const DEFAULT_SCENARIO: &str = "default";

/// Defines the options: the struct, its keys, and how one tier overrides another.
macro_rules! options {
    ($($(#[$doc:meta])* $field:ident $key:literal: $type:ty,)*) => {
        /// The options that one tier sets; `None` leaves an option to the tier below.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct K6Options {
            $($(#[$doc])* pub $field: Option<$type>,)*
        }

        impl K6Options {
            /// The keys of all options, as scripts write them, in the order in which k6 shows them.
            pub const KEYS: &[&str] = &[$($key),*];

            /// Sets everything that `higher` sets.
            fn set(&mut self, higher: Self) {
                $(if higher.$field.is_some() { self.$field = higher.$field; })*
            }

            fn read_entry(&mut self, key: &str, value: &Value) -> Result<(), String> {
                match key {
                    $($key => self.$field = OptionValue::from_json(value)?,)*
                    _ => {}
                }
                Ok(())
            }

            fn write<M: SerializeMap>(&self, map: &mut M, left_out: &[&str]) -> Result<(), M::Error> {
                $(if !left_out.contains(&$key) { map.serialize_entry($key, &self.$field)?; })*
                Ok(())
            }
        }
    };
}

options! {
    /// Whether the run waits for a command before it starts.
    paused "paused": bool,
    /// The number of users.
    vus "vus": i64,
    /// How long users iterate.
    duration "duration": GoDuration,
    /// The total of iterations of all users.
    iterations "iterations": i64,
    /// Numbers of users over time.
    stages "stages": Vec<RampStage>,
    /// Scenarios by name.
    scenarios "scenarios": BTreeMap<String, ScenarioOptions>,
    /// This process's segment of the run.
    execution_segment "executionSegment": ExecutionSegment,
    /// All segments of the run.
    execution_segment_sequence "executionSegmentSequence": SegmentSequence,
    /// Whether `setup` is left out.
    no_setup "noSetup": bool,
    /// Time limit of `setup`.
    setup_timeout "setupTimeout": GoDuration,
    /// Whether `teardown` is left out.
    no_teardown "noTeardown": bool,
    /// Time limit of `teardown`.
    teardown_timeout "teardownTimeout": GoDuration,
    /// Time limit of `handleSummary`.
    handle_summary_timeout "handleSummaryTimeout": GoDuration,
    /// Maximum requests a second, of all users together.
    rps "rps": i64,
    /// Name resolution.
    dns "dns": DnsOptions,
    /// Maximum redirects followed for one request.
    max_redirects "maxRedirects": i64,
    /// The version of HTTP: gake's own option.
    http_version "httpVersion": String,
    /// The default `User-Agent`.
    user_agent "userAgent": String,
    /// Maximum concurrent requests of a `batch`.
    batch "batch": i64,
    /// Maximum concurrent requests of a `batch` to one host.
    batch_per_host "batchPerHost": i64,
    /// Logs requests and responses: `headers`, or `full` with bodies.
    http_debug "httpDebug": String,
    /// Whether any certificate is accepted.
    insecure_skip_tls_verify "insecureSkipTLSVerify": bool,
    /// The cipher suites that are offered.
    tls_cipher_suites "tlsCipherSuites": Vec<String>,
    /// The versions of TLS that are offered: a string, or an object of `min` and `max`.
    tls_version "tlsVersion": Value,
    /// Client certificates, each for some domains.
    tls_auth "tlsAuth": Value,
    /// Whether certificates that a server leaves out are fetched.
    tls_aia_fetch "tlsAIAFetch": bool,
    /// Whether a failed request throws.
    throw "throw": bool,
    /// Thresholds by metric.
    thresholds "thresholds": BTreeMap<String, Vec<ThresholdOptions>>,
    /// Networks to which no request is sent.
    blacklist_ips "blacklistIPs": Vec<String>,
    /// Host names to which no request is sent; `*` only at the start.
    block_hostnames "blockHostnames": Vec<String>,
    /// Addresses by host name, as in `/etc/hosts`.
    hosts "hosts": BTreeMap<String, String>,
    /// Whether every request opens a connection.
    no_connection_reuse "noConnectionReuse": bool,
    /// Whether every iteration opens connections.
    no_vu_connection_reuse "noVUConnectionReuse": bool,
    /// Minimum duration of an iteration.
    min_iteration_duration "minIterationDuration": GoDuration,
    /// Options of k6's cloud.
    cloud "cloud": Value,
    /// Options of extensions.
    ext "ext": Value,
    /// The statistics of trends in the summary.
    summary_trend_stats "summaryTrendStats": Vec<String>,
    /// The unit of times in the summary.
    summary_time_unit "summaryTimeUnit": String,
    /// The tags that k6 itself adds to samples.
    system_tags "systemTags": Vec<String>,
    /// Tags of every sample.
    tags "tags": BTreeMap<String, String>,
    /// Ignored: the size of a k6 buffer that gake does not have.
    metric_samples_buffer_size "metricSamplesBufferSize": i64,
    /// Whether cookies are kept across iterations.
    no_cookies_reset "noCookiesReset": bool,
    /// Whether bodies are dropped unless a request asks for them.
    discard_response_bodies "discardResponseBodies": bool,
    /// Experimental features. Only flags and environment switch them on.
    features "features": Vec<String>,
    /// The file for a script's log. Only a flag sets it.
    console_output "consoleOutput": String,
    /// The source addresses of connections. Only a flag sets it.
    local_ips "localIPs": String,
}

/// The options that only flags and environment set.
const FLAGS_ONLY: [&str; 2] = ["consoleOutput", "localIPs"];

/// The shortcuts for one scenario.
const SHORTCUTS: [&str; 4] = ["vus", "duration", "iterations", "stages"];

/// An error in options, in k6's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub(crate) String);

/// Parsed options.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedOptions {
    /// The options that are set.
    pub options: K6Options,
    /// The first unknown key, of which k6 warns in scripts.
    pub unknown: Option<String>,
}

impl K6Options {
    /// Parses the options of a script or file. `null` and `undefined` set nothing.
    ///
    /// # Errors
    /// When a value is invalid, in k6's words.
    pub fn read(value: &Value) -> Result<ParsedOptions, OptionsError> {
        if value.is_null() {
            return Ok(ParsedOptions::default());
        }
        let wrong =
            |reason| OptionsError(format!("parsing options from script got error: {reason}"));
        let object = object(value, "lib.Options").map_err(wrong)?;
        let readable: Vec<_> =
            Self::KEYS.iter().filter(|key| !FLAGS_ONLY.contains(key)).copied().collect();
        let (entries, unknown) = known(object, &readable);
        let mut options = Self::default();
        for (key, value) in entries {
            options.read_entry(key, value).map_err(OptionsError)?;
        }
        Ok(ParsedOptions { options, unknown: unknown.map(str::to_owned) })
    }

    /// These options as `exec.test.options` shows them: scenarios replace the shortcuts.
    #[must_use]
    pub const fn shown_to_scripts(&self) -> OptionsView<'_> {
        OptionsView { options: self, left_out: &SHORTCUTS }
    }

    /// These options as `k6 inspect` shows them.
    #[must_use]
    pub const fn shown_to_users(&self) -> OptionsView<'_> {
        OptionsView { options: self, left_out: &FLAGS_ONLY }
    }
}

/// Options as k6 shows them.
#[derive(Debug, Clone, Copy)]
pub struct OptionsView<'a> {
    options: &'a K6Options,
    left_out: &'static [&'static str],
}

impl Serialize for OptionsView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut left_out = self.left_out.to_vec();
        if self.options.cloud.is_none() {
            left_out.push("cloud");
        }
        if self.options.tls_aia_fetch.is_none() {
            left_out.push("tlsAIAFetch");
        }
        if self.options.http_version.is_none() {
            left_out.push("httpVersion");
        }
        self.options.write(&mut map, &left_out)?;
        map.end()
    }
}
