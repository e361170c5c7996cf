//! Loading a script, and the options of all tiers.

use std::collections::BTreeMap;
use std::sync::Arc;

use gake_core::plan::Overflow;
use gake_k6::metrics::registry;
use gake_k6::options::{
    Consolidated, Options, Tiers, from_environment, validate, validate_trend_stats,
};
use gake_k6::secrets::Secrets;
use gake_k6::test::{LogLevel, ScriptLog};
use gake_k6::threshold::Thresholds;
use gake_run::script::{LoadedScript, ScriptRun};
use serde_json::Value;

use super::flags::RunFlags;
use super::life::{code, exit_of, told};
use super::out::OutSettings;
use super::prometheus::PrometheusSettings;
use super::source::ScriptSource;
use super::writes::WRITES_BY;
use super::{ANY, environment, network, plan, tls};
use gake_session::Exit;

/// Why there is no run.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) exit: Exit,
    /// Where that is told, once there is a log.
    pub(super) log: Option<ScriptLog>,
}

/// A script with its options in force.
pub(super) struct Loaded {
    pub(super) script: LoadedScript,
    pub(super) options: Options,
    /// The same with the shortcuts as they were given.
    pub(super) given: Options,
    /// Those of the script alone, as JSON.
    pub(super) own: Option<String>,
    pub(super) run: ScriptRun,
    pub(super) thresholds: Thresholds,
    pub(super) outs: OutSettings,
    /// What its users see as `__ENV`.
    pub(super) environment: Vec<(String, String)>,
}

/// Loads the script, and joins the options of all tiers.
pub(super) fn load(flags: &RunFlags, log: ScriptLog) -> Result<Loaded, Refused> {
    let system = environment::of_process();
    match ScriptSource::read(&flags.script) {
        Ok(source) => load_source(source, flags, &system, log),
        Err(why) => Err(Refused { why, exit: ANY, log: Some(log) }),
    }
}

/// The same for a script that is read already, in an environment.
pub(super) fn load_source(
    source: ScriptSource,
    flags: &RunFlags,
    system: &BTreeMap<String, String>,
    log: ScriptLog,
) -> Result<Loaded, Refused> {
    let told_to = Arc::clone(&log);
    let refused = |why: String, exit: Exit| Refused { why, exit, log: Some(Arc::clone(&told_to)) };
    let ScriptSource { path, files, archived } = source;
    let mut environment = if flags.system_environment { system.clone() } else { BTreeMap::new() };
    environment.extend(archived.iter().flat_map(|archived| archived.environment.clone()));
    environment.extend(flags.environment.clone());
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let secrets = Secrets::read(&flags.secret_sources, |path| std::fs::read_to_string(path))
        .map_err(|why| refused(why, ANY))?;
    let script = LoadedScript::load(&path, files, environment.clone(), secrets, log)
        .map_err(|error| refused(told(&error), exit_of(&error)))?;
    if !script.has_functions() {
        return Err(refused("no exported functions in script".to_owned(), ANY));
    }
    let own = match archived {
        Some(archived) => Some(archived.options),
        None => script.options.clone(),
    };
    let invalid = |why: String| refused(why, code::INVALID);
    let Consolidated { options, given, warnings } =
        consolidated(&script, own.as_deref(), flags, system).map_err(invalid)?;
    for warning in warnings {
        script.test.log(LogLevel::Warning, &warning, &[]);
    }
    validate_trend_stats(&options).map_err(|error| refused(error.to_string(), ANY))?;
    validate(&options, &|name| script.has(name)).map_err(|error| invalid(error.to_string()))?;
    let none = BTreeMap::new();
    let asked = options.thresholds.as_ref().filter(|_| !flags.no_thresholds).unwrap_or(&none);
    let thresholds = Thresholds::new(asked, &registry(&script.metrics))
        .map_err(|error| invalid(error.to_string()))?;
    if let Some(why) = network::wrong_ttl(&options) {
        return Err(refused(why, ANY));
    }
    let mut run = plan::script_run(&options, &path).map_err(invalid)?;
    run.tls.check().map_err(|error| invalid(error.to_string()))?;
    if flags.reconcile.is_some() {
        run.keys.push(WRITES_BY.to_owned());
    }
    run.spec.seed = flags.seed.unwrap_or(run.spec.seed);
    if flags.is_open_loop {
        for scenario in &mut run.spec.scenarios {
            scenario.overflow = Overflow::Wait;
        }
    }
    run.spec.max_series = flags.max_series.unwrap_or(run.spec.max_series);
    for warning in network::warnings(&options).into_iter().chain(tls::warning(&options)) {
        script.test.log(LogLevel::Warning, &warning, &[]);
    }
    let mut settings = plan::user_settings(&options, environment.clone()).map_err(invalid)?;
    settings.seed = flags.seed;
    settings.bodies = flags.body_memory.unwrap_or(settings.bodies);
    settings.failed_bodies = flags.body_errors;
    settings.profile = flags.script_profile.then(Arc::default);
    // Set once, before any user runs.
    let _ = script.test.settings.set(settings);
    let shown = serde_json::to_string(&options.shown_to_scripts()).unwrap_or_default();
    let _ = script.test.options.set(shown);
    let csv_times = system.get("K6_CSV_TIME_FORMAT").cloned();
    let outs = OutSettings { csv_times, prometheus: PrometheusSettings::of(system) };
    Ok(Loaded { script, options, given, own, run, thresholds, outs, environment })
}

/// The options of all tiers.
fn consolidated(
    script: &LoadedScript,
    own: Option<&str>,
    flags: &RunFlags,
    environment: &BTreeMap<String, String>,
) -> Result<Consolidated, String> {
    let mut unknown = None;
    let mut read = |text: &str| -> Result<Options, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let read = Options::read(&value).map_err(|error| error.to_string())?;
        unknown = unknown.take().or(read.unknown);
        Ok(read.options)
    };
    let file = match flags.config.as_ref().or_else(|| environment.get("K6_CONFIG")) {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            read(&text)?
        }
        None => Options::default(),
    };
    let own = own.map_or_else(|| Ok(Options::default()), &mut read)?;
    let tiers = Tiers {
        file,
        script: own,
        environment: from_environment(environment).map_err(|error| error.to_string())?,
        flags: flags.options.clone(),
    };
    let consolidated = tiers.consolidate().map_err(|error| error.to_string())?;
    if let Some(unknown) = unknown {
        let what = "There were unknown fields in the options exported in the script";
        let why = format!("json: unknown field {unknown:?}");
        script.test.log(LogLevel::Warning, what, &[("error", &why)]);
    }
    Ok(consolidated)
}
