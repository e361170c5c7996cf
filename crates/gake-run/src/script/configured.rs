//! A script with its effective options, which join its own and the command's.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use gake_core::plan::Overflow;
use gake_k6::blocked::BlockedTargets;
use gake_k6::features::Features;
use gake_k6::metrics::registry;
use gake_k6::options::{
    ConsolidatedOptions, K6Options, OptionsError, ScenarioOptions, Tiers, from_environment,
    validate, validate_trend_stats,
};
use gake_k6::secrets::Secrets;
use gake_k6::test::{BrowserSettings, LogLevel, LogLine, ScriptLog, UserSettings};
use gake_k6::threshold::Thresholds;
use gake_k6::version::K6Version;
use gake_text::redact::{Redacted, Redactor};
use serde_json::Value;

use super::source::UnloadedScript;
use super::{LoadedScript, ScriptRun, ScriptRunError, network, settings, tls};

/// Maximum bytes of a file of options or secrets.
const SETTINGS_MAX: u64 = 16 << 20;

/// The settings of a script's run besides the script's own options.
#[derive(Debug, Clone, Default)]
pub struct ScriptSettings {
    /// Options that override all others.
    pub options: K6Options,
    /// The version of k6 whose options the script may have.
    pub version: K6Version,
    /// The names of experimental features.
    pub features: Vec<String>,
    /// The only scenarios that run, by name; all of them if empty.
    pub scenarios: Vec<String>,
    /// Whether each scenario is one iteration of one user.
    pub once: bool,
    /// The environment of the process, from which `K6_*` options are read.
    pub system: BTreeMap<String, String>,
    /// Whether `__ENV` contains that environment.
    pub shows_system: bool,
    /// Additional variables of `__ENV`.
    pub variables: BTreeMap<String, String>,
    /// A file of options, the lowest tier; by default the one that `K6_CONFIG` names.
    pub config: Option<String>,
    /// Redacts the log, in place of the masks for the built-in names of secrets.
    pub redactor: Option<Redactor>,
    /// Where secrets come from, as `mock=name=value` or `file=PATH`.
    pub secret_sources: Vec<String>,
    /// Whether thresholds are disabled.
    pub no_thresholds: bool,
    /// The seed of `Math.random` and of random arrivals.
    pub seed: Option<u64>,
    /// Whether an iteration that is due while all users are busy waits instead of being dropped.
    pub waits: bool,
    /// Maximum number of series of custom metrics, if not the default.
    pub max_series: Option<usize>,
    /// Maximum memory for response bodies of all users, in bytes, if not the default.
    pub body_memory: Option<u64>,
    /// Whether the bodies of failed responses are counted.
    pub failed_bodies: bool,
    /// Whether to profile the script by line.
    pub profile: bool,
    /// Additional tags by which series may be selected, besides the tags in thresholds.
    pub keys: Vec<String>,
}

/// A script with its effective options.
#[derive(Debug, Clone)]
pub struct ConfiguredScript {
    /// The script.
    pub script: LoadedScript,
    /// The effective options, with scenarios in place of shortcuts.
    pub options: K6Options,
    /// The effective options, with shortcuts as given.
    pub given: K6Options,
    /// The script's own options, as JSON.
    pub own: Option<String>,
    /// Its run.
    pub run: ScriptRun,
    /// Its thresholds.
    pub thresholds: Arc<Thresholds>,
    /// `__ENV` of its users.
    pub environment: Vec<(String, String)>,
}

/// Why a script cannot be run with these settings.
#[derive(Debug, thiserror::Error)]
pub enum ScriptRefusal {
    /// The script cannot be loaded.
    #[error(transparent)]
    Load(#[from] ScriptRunError),
    /// It exports no function.
    #[error("no exported functions in script")]
    NoFunctions,
    /// The options that the script exports cannot be read.
    #[error("{0}")]
    OwnOptions(String),
    /// The options are not valid.
    #[error("{0}")]
    Options(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl ScriptRefusal {
    /// The reason as k6 writes it: exceptions include their stack.
    #[must_use]
    pub fn with_stack(&self) -> String {
        match self {
            Self::Load(error) => error.with_stack(),
            other => other.to_string(),
        }
    }
}

impl ConfiguredScript {
    /// Whether a scenario drives a browser.
    #[must_use]
    pub fn wants_browser(&self) -> bool {
        self.options.scenarios.iter().flatten().any(|(_, scenario)| scenario.wants_browser())
    }

    /// Loads a script and joins the options of all tiers. The script logs to `log`.
    ///
    /// # Errors
    /// Why it cannot be run, in k6's words.
    pub fn load(
        source: UnloadedScript,
        asked: &ScriptSettings,
        log: ScriptLog,
    ) -> Result<Self, ScriptRefusal> {
        let UnloadedScript { path, files, archived } = source;
        let mut environment =
            if asked.shows_system { asked.system.clone() } else { BTreeMap::new() };
        environment.extend(archived.iter().flat_map(|archived| archived.environment.clone()));
        environment.extend(asked.variables.clone());
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        let secrets = Secrets::read(&asked.secret_sources, |path| {
            gake_files::read_to_string(path, "secrets", SETTINGS_MAX).map_err(io::Error::other)
        })
        .map_err(ScriptRefusal::Other)?;
        let default = || UserSettings::default().redactor;
        let redactor = asked.redactor.clone().unwrap_or_else(default);
        let features = features(&asked.features, &log);
        let early = UserSettings {
            features,
            environment: environment.clone(),
            redactor,
            version: asked.version,
            ..UserSettings::default()
        };
        let script = LoadedScript::load(&path, files, early, secrets, log)?;
        if !script.has_functions() {
            return Err(ScriptRefusal::NoFunctions);
        }
        let own = match archived {
            Some(archived) => Some(archived.options),
            None => script.options.clone(),
        };
        let (consolidated, thresholds) = consolidated(&script, own.as_deref(), asked)?;
        let ConsolidatedOptions { mut options, given, warnings } = consolidated;
        for tag in features.tags() {
            options.tags.get_or_insert_default().insert(tag, "true".to_owned());
        }
        for warning in warnings {
            script.test.log(LogLevel::Warning, &warning, &[]);
        }
        remove_browser_scenarios(&script, &mut options)?;
        validate(&options, &|name| script.has(name))
            .map_err(|error| ScriptRefusal::Options(error.to_string()))?;
        if let Some(why) = network::wrong_ttl(&options) {
            return Err(ScriptRefusal::Other(why));
        }
        let run = run(&options, &path, asked)?;
        for warning in tls::warnings(&options) {
            script.test.log(LogLevel::Warning, &warning, &[]);
        }
        let mut settings =
            settings::user_settings(&options, environment.clone()).map_err(|why| match &own {
                Some(own) if own.contains("blockHostnames") => ScriptRefusal::OwnOptions(why),
                _ => ScriptRefusal::Options(why),
            })?;
        settings.seed = asked.seed;
        settings.bodies = asked.body_memory.unwrap_or(settings.bodies);
        settings.failed_bodies = asked.failed_bodies;
        settings.redactor = script.test.early.redactor.clone();
        settings.version = asked.version;
        settings.features = features;
        settings.profile = asked.profile.then(Arc::default);
        settings.browser = browser_settings(&options, &settings.blocked, &asked.system);
        // Cannot fail: set once, before any user runs.
        let _ = script.test.settings.set(settings);
        let shown = serde_json::to_string(&options.shown_to_scripts()).unwrap_or_default();
        let _ = script.test.options.set(shown);
        let thresholds = if asked.no_thresholds { thresholds.off() } else { thresholds };
        let thresholds = Arc::new(thresholds);
        Ok(Self { script, options, given, own, run, thresholds, environment })
    }
}

/// The features of these names; the log says which they are, as in k6.
fn features(names: &[String], log: &ScriptLog) -> Features {
    let mut features = Features::default();
    for name in names {
        let is_known = features.enable(name);
        let (level, message, fields) = match is_known {
            true => (
                LogLevel::Info,
                "Experimental feature enabled",
                [("lifecycle", "experimental")].as_slice(),
            ),
            false => (
                LogLevel::Error,
                "Unknown feature flag",
                [("outcome", "unknown"), ("source", "cli")].as_slice(),
            ),
        };
        let fields = [("feature", name.as_str())].into_iter().chain(fields.iter().copied());
        let fields = fields.map(|(key, value)| (key, Redactor::off().text(value))).collect();
        log(&LogLine { level, message: Redacted::plain(message), fields });
    }
    features
}

/// The browser of the users.
fn browser_settings(
    options: &K6Options,
    blocked: &BlockedTargets,
    system: &BTreeMap<String, String>,
) -> BrowserSettings {
    let scenarios = options.scenarios.iter().flatten();
    let scenarios = scenarios.filter(|(_, scenario)| scenario.wants_browser());
    let is_its = |name: &str| name == "PATH" || name.starts_with("K6_BROWSER_");
    let environment = system.iter().filter(|(name, _)| is_its(name));
    let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
    BrowserSettings {
        scenarios: scenarios.map(|(name, _)| name.clone()).collect(),
        environment: environment.map(owned).collect(),
        hosts: network::hosts(options).into_iter().map(owned).collect(),
        // An invalid rule is an error of the run's own connections.
        connect_to: network::connect_to(options)
            .iter()
            .filter_map(|rule| rule.parse().ok())
            .collect(),
        blocked: blocked.clone(),
    }
}

/// Removes scenarios that need a browser when there is none, and logs an error for each.
///
/// # Errors
/// When no scenario is left.
fn remove_browser_scenarios(
    script: &LoadedScript,
    options: &mut K6Options,
) -> Result<(), ScriptRefusal> {
    if script.test.extensions.have_browser() {
        return Ok(());
    }
    let Some(scenarios) = &mut options.scenarios else { return Ok(()) };
    let wants = ScenarioOptions::wants_browser;
    let names: Vec<String> =
        scenarios.iter().filter(|one| wants(one.1)).map(|one| one.0.clone()).collect();
    scenarios.retain(|_, scenario| !wants(scenario));
    if !names.is_empty() && scenarios.is_empty() {
        let names = names.join(", ");
        return Err(ScriptRefusal::Other(format!("{NO_BROWSER} by every scenario ({names})")));
    }
    for name in names {
        let message = format!("{NO_BROWSER} by the scenario {name}: it is left out");
        script.test.log(LogLevel::Error, &message, &[("scenario", &name)]);
    }
    Ok(())
}

/// The start of messages about scenarios of `k6/browser`.
const NO_BROWSER: &str = "this build drives no browser, which is asked for";

/// Checks, before the scenarios as in k6, the statistics of trends and the thresholds.
fn thresholds(
    script: &LoadedScript,
    options: &K6Options,
    asked: &ScriptSettings,
) -> Result<Thresholds, ScriptRefusal> {
    validate_trend_stats(options).map_err(|error| ScriptRefusal::Other(error.to_string()))?;
    let mut bounds = options.thresholds.clone().unwrap_or_default();
    if asked.no_thresholds {
        // Disabled thresholds may be invalid.
        bounds.values_mut().for_each(Vec::clear);
    }
    Thresholds::new(&bounds, &registry(&script.metrics))
        .map_err(|error| ScriptRefusal::Options(error.to_string()))
}

fn run(
    options: &K6Options,
    path: &std::path::Path,
    asked: &ScriptSettings,
) -> Result<ScriptRun, ScriptRefusal> {
    let mut run = settings::script_run(options, path).map_err(ScriptRefusal::Options)?;
    run.tls.check().map_err(|error| ScriptRefusal::Options(error.to_string()))?;
    run.keys.extend(asked.keys.iter().cloned());
    run.spec.seed = asked.seed.unwrap_or(run.spec.seed);
    if asked.waits {
        for scenario in &mut run.spec.scenarios {
            scenario.overflow = Overflow::Wait;
        }
    }
    run.spec.max_series = asked.max_series.unwrap_or(run.spec.max_series);
    Ok(run)
}

/// Joins the options of all tiers.
fn consolidated(
    script: &LoadedScript,
    own: Option<&str>,
    asked: &ScriptSettings,
) -> Result<(ConsolidatedOptions, Thresholds), ScriptRefusal> {
    let mut unknown = None;
    let mut read = |text: &str| -> Result<K6Options, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let read = K6Options::read(&value).map_err(|error| error.to_string())?;
        asked.version.check(&read.options).map_err(|error| error.to_string())?;
        unknown = unknown.take().or(read.unknown);
        Ok(read.options)
    };
    let file = match asked.config.as_ref().or_else(|| asked.system.get("K6_CONFIG")) {
        Some(path) => {
            let text = gake_files::read_to_string(path.as_ref(), "options", SETTINGS_MAX);
            let text = text.map_err(|error| match error.io() {
                Some(error) => format!("{path}: {error}"),
                None => error.to_string(),
            });
            text.and_then(|text| read(&text)).map_err(ScriptRefusal::Options)?
        }
        None => K6Options::default(),
    };
    let own = own.map_or_else(|| Ok(K6Options::default()), &mut read);
    let invalid = |error: OptionsError| ScriptRefusal::Options(error.to_string());
    let tiers = Tiers {
        file,
        script: own.map_err(ScriptRefusal::OwnOptions)?,
        environment: from_environment(&asked.system).map_err(invalid)?,
        flags: asked.options.clone(),
        merges_tags: script.test.early.features.merge_run_tags,
    };
    if let Some(unknown) = unknown {
        let what = "There were unknown fields in the options exported in the script";
        let why = format!("json: unknown field {unknown:?}");
        script.test.log(LogLevel::Warning, what, &[("error", &why)]);
    }
    let merged = tiers.merge();
    let thresholds = thresholds(script, &merged.options, asked)?;
    let mut consolidated = merged.derive().map_err(invalid)?;
    consolidated.options.keep_scenarios(&asked.scenarios).map_err(invalid)?;
    if asked.once {
        consolidated.options.run_once();
    }
    Ok((consolidated, thresholds))
}
