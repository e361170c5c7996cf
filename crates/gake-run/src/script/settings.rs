//! From k6's options to the settings of a run.

use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use gake_core::spec::{HttpVersion, RunSpec, TlsSpec};
use gake_k6::blocked::BlockedTargets;
use gake_k6::duration::GoDuration;
use gake_k6::options::{K6Options, scenario_specs, segment_users};
use gake_k6::test::{BrowserSettings, HttpDebug, UserSettings};
use gake_k6::threshold::MetricSelector;

use super::{ScriptRun, network, tls};

/// Default time limit of `setup` and `teardown`.
const STAGE_LIMIT: Duration = Duration::from_secs(60);

/// The settings of users.
///
/// # Errors
/// An option that is not valid, in k6's words.
pub(super) fn user_settings(
    options: &K6Options,
    environment: Vec<(String, String)>,
) -> Result<UserSettings, String> {
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let blocked =
        BlockedTargets::read(&list(&options.block_hostnames), &list(&options.blacklist_ips))?;
    let default = UserSettings::default();
    let count = |given: Option<i64>, default: usize| {
        given.map_or(default, |given| usize::try_from(given).unwrap_or(0))
    };
    Ok(UserSettings {
        browser: BrowserSettings::default(),
        environment,
        tags: options.tags.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect(),
        max_redirects: count(options.max_redirects, default.max_redirects as usize) as u32,
        user_agent: options.user_agent.clone().unwrap_or(default.user_agent),
        batch: count(options.batch, default.batch),
        batch_per_host: count(options.batch_per_host, default.batch_per_host),
        throw: options.throw.unwrap_or(false),
        no_cookies_reset: options.no_cookies_reset.unwrap_or(false),
        discard_response_bodies: options.discard_response_bodies.unwrap_or(false),
        no_vu_connection_reuse: options.no_vu_connection_reuse.unwrap_or(false),
        seed: default.seed,
        blocked,
        rps: options.rps.and_then(|rps| NonZeroU64::new(u64::try_from(rps).unwrap_or(0))),
        http_debug: options
            .http_debug
            .as_deref()
            .filter(|parts| !parts.is_empty())
            .map(|parts| if parts == "full" { HttpDebug::Full } else { HttpDebug::Headers }),
        features: default.features,
        version: default.version,
        memory: default.memory,
        bodies: default.bodies,
        failed_bodies: default.failed_bodies,
        redactor: default.redactor,
        profile: default.profile,
    })
}

/// The run of a script with these options, which have been validated.
///
/// # Errors
/// An option that is not supported, by name.
pub(super) fn script_run(options: &K6Options, script: &Path) -> Result<ScriptRun, String> {
    let mut scenarios = scenario_specs(options, script).map_err(|error| error.to_string())?;
    let executors = scenarios.iter().map(|scenario| {
        let scenario = options.scenarios.as_ref().and_then(|all| all.get(&scenario.name));
        scenario.map_or("", |scenario| scenario.executor.name()).to_owned()
    });
    let executors = executors.collect();
    if scenarios.is_empty() {
        return Err("no scenario has iterations in this execution segment".to_owned());
    }
    let first = scenarios.remove(0);
    let mut spec = RunSpec::new(first);
    spec.scenarios.append(&mut scenarios);
    spec.connection.keepalive = !options.no_connection_reuse.unwrap_or(false);
    spec.connection.connect_to = network::connect_to(options);
    spec.connection.family = network::family(options);
    spec.connection.dns_ttl = network::dns_ttl(options);
    spec.connection.first_address = network::takes_first(options);
    spec.connection.sources =
        options.local_ips.iter().flat_map(|all| all.split(',')).map(str::to_owned).collect();
    let insecure = options.insecure_skip_tls_verify.unwrap_or(false);
    spec.tls = TlsSpec { insecure, ..TlsSpec::default() };
    let std = |limit: Option<GoDuration>| limit.map(GoDuration::to_std);
    let setup = std(options.setup_timeout).unwrap_or(STAGE_LIMIT);
    let teardown = std(options.teardown_timeout).unwrap_or(STAGE_LIMIT);
    Ok(ScriptRun {
        spec,
        executors,
        segment_users: segment_users(options)?,
        http: http(options)?,
        keys: keys(options),
        tls: tls::tls(options)?,
        least_iteration: std(options.min_iteration_duration).unwrap_or(Duration::ZERO),
        setup: (!options.no_setup.unwrap_or(false)).then_some(setup),
        teardown: (!options.no_teardown.unwrap_or(false)).then_some(teardown),
    })
}

/// The version of HTTP; k6 has no such option, and negotiates.
fn http(options: &K6Options) -> Result<HttpVersion, String> {
    match options.http_version.as_deref() {
        None | Some("auto") => Ok(HttpVersion::Auto),
        Some("1.1") => Ok(HttpVersion::Http11),
        Some("2") => Ok(HttpVersion::Http2),
        Some("3") => Ok(HttpVersion::Http3),
        Some("auto3") => Ok(HttpVersion::Auto3),
        Some(other) => Err(format!(
            "httpVersion is {other:?}: it must be '1.1', '2', '3', 'auto' (2 or 1.1, as TLS \
             negotiates; the default) or 'auto3' (auto, and 3 where a response offers it)"
        )),
    }
}

/// Tags by which thresholds select.
fn keys(options: &K6Options) -> Vec<String> {
    let mut keys = Vec::new();
    for metric in options.thresholds.iter().flat_map(|all| all.keys()) {
        if let Ok(selector) = MetricSelector::parse(metric) {
            keys.extend(selector.tags.pairs().iter().map(|(key, _)| key.clone()));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
