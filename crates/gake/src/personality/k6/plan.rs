//! From k6's options to a run of the engine.

use std::path::Path;
use std::time::Duration;

use gake_core::spec::{RunSpec, TlsSpec};
use gake_k6::duration::GoDuration;
use gake_k6::options::{Options, scenario_specs};
use gake_k6::test::UserSettings;
use gake_k6::threshold::Selector;
use gake_run::script::ScriptRun;

/// What `setup` and `teardown` may take when nothing says so.
const STAGE_LIMIT: Duration = Duration::from_secs(60);

/// What users are told.
pub fn user_settings(options: &Options, environment: Vec<(String, String)>) -> UserSettings {
    let default = UserSettings::default();
    let count = |given: Option<i64>, default: usize| {
        given.map_or(default, |given| usize::try_from(given).unwrap_or(0))
    };
    UserSettings {
        environment,
        tags: options.tags.iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect(),
        max_redirects: count(options.max_redirects, default.max_redirects as usize) as u32,
        user_agent: options.user_agent.clone().unwrap_or(default.user_agent),
        batch: count(options.batch, default.batch),
        batch_per_host: count(options.batch_per_host, default.batch_per_host),
        throw: options.throw.unwrap_or(false),
        no_cookies_reset: options.no_cookies_reset.unwrap_or(false),
        discard_response_bodies: options.discard_response_bodies.unwrap_or(false),
        memory: default.memory,
    }
}

/// The run of a script with these options, which have been validated.
///
/// # Errors
/// An option that cannot be honoured, by name.
pub fn script_run(options: &Options, script: &Path) -> Result<ScriptRun, String> {
    refuse(options)?;
    let mut scenarios = scenario_specs(options, script).map_err(|error| error.to_string())?;
    let executors = scenarios.iter().map(|scenario| {
        let scenario = options.scenarios.as_ref().and_then(|all| all.get(&scenario.name));
        scenario.map_or("", |scenario| scenario.executor.name()).to_owned()
    });
    let executors = executors.collect();
    if scenarios.is_empty() {
        return Err("no scenario has a part in this execution segment".to_owned());
    }
    let first = scenarios.remove(0);
    let mut spec = RunSpec::new(first);
    spec.scenarios.append(&mut scenarios);
    spec.connection.keepalive = !options.no_connection_reuse.unwrap_or(false);
    for (host, address) in options.hosts.iter().flatten() {
        spec.connection.connect_to.push(connect_to(host, address)?);
    }
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
        keys: keys(options),
        least_iteration: std(options.min_iteration_duration).unwrap_or(Duration::ZERO),
        setup: (!options.no_setup.unwrap_or(false)).then_some(setup),
        teardown: (!options.no_teardown.unwrap_or(false)).then_some(teardown),
    })
}

/// The tags that thresholds select by.
fn keys(options: &Options) -> Vec<String> {
    let mut keys = Vec::new();
    for metric in options.thresholds.iter().flat_map(|all| all.keys()) {
        if let Ok(selector) = Selector::parse(metric) {
            keys.extend(selector.tags.pairs().iter().map(|(key, _)| key.clone()));
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Refuses what would change what is sent or to whom, and is not there.
fn refuse(options: &Options) -> Result<(), String> {
    let filled = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    for (is_asked, name) in [
        (options.rps.is_some_and(|rps| rps > 0), "rps"),
        (filled(&options.blacklist_ips), "blacklistIPs"),
        (filled(&options.block_hostnames), "blockHostnames"),
        (options.tls_auth.is_some(), "tlsAuth"),
        (options.tls_version.is_some(), "tlsVersion"),
        (filled(&options.tls_cipher_suites), "tlsCipherSuites"),
        (options.no_vu_connection_reuse == Some(true), "noVUConnectionReuse"),
        (options.paused == Some(true), "paused"),
    ] {
        if is_asked {
            return Err(format!("the option {name} cannot be honoured yet"));
        }
    }
    Ok(())
}

/// `host[:port]` to `address[:port]`, as curl's `--connect-to` has it.
fn connect_to(host: &str, address: &str) -> Result<String, String> {
    if host.contains('*') {
        return Err(format!("hosts: {host:?} cannot be honoured yet: name each host"));
    }
    let (host, from_port) = host.split_once(':').unwrap_or((host, ""));
    let (address, port) = match address.rsplit_once(':') {
        Some((address, port)) if !address.contains(':') || address.ends_with(']') => {
            (address, port)
        }
        _ => (address, ""),
    };
    Ok(format!("{host}:{from_port}:{address}:{port}"))
}
