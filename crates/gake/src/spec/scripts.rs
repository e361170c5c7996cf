//! Scripts as targets: their flags and their load.

use std::path::Path;

use gake_core::spec::value::UsersValue;
use gake_core::spec::{HttpVersion, RunDraft, ScenarioDraft};
use gake_judge::Objective;
use gake_k6::options::K6Options;
use gake_k6::version::K6Version;
use gake_run::script::{ConfiguredScript, ScriptSettings, expand};
use gake_session::options::RedactionArgs;
use gake_session::run::writes::WRITES_BY;
use gake_session::script::{ScriptLoader, environment, log};
use gake_session::spec_error::failure;
use gake_session::{Console, Failure};

use crate::cli::{FindArgs, RunArgs};

/// Default number of users of a script at a rate.
const USERS_AT_A_RATE: u64 = 100;

/// Larger files are targets or nothing known.
const OTHER_TOOLS_MAX: u64 = 16 << 20;

/// Refuses a file of another tool, and says what to do with it.
///
/// # Errors
/// When it is one.
pub fn refuse_other_tools(path: &Path) -> Result<(), Failure> {
    let text = gake_files::read_to_string(path, "the target", OTHER_TOOLS_MAX);
    match text.ok().and_then(|text| gake_convert::how_to_run(&text)) {
        Some(how) => Err(Failure::usage(format!("{} is {how}", path.display()))),
        None => Ok(()),
    }
}

/// Loads the scripts of `draft` and adds the scenarios of their options. `None` without a script.
///
/// # Errors
/// When a script cannot be loaded, or flags contradict it.
pub fn load(
    draft: &mut RunDraft,
    args: &RunArgs,
    console: &Console,
) -> Result<Option<ScriptLoader>, Failure> {
    if !draft.scenarios.iter().any(|scenario| scenario.script.is_some()) {
        return Ok(None);
    }
    let target = draft.scenarios.iter_mut().find(|one| one.script.is_some());
    let mut options = match target.filter(|_| args.spec.spec.is_none()) {
        Some(target) => options(target)?,
        None => K6Options::default(),
    };
    set_http(&mut options, draft)?;
    let settings = ScriptSettings {
        options,
        variables: args.script.env.iter().cloned().collect(),
        seed: args.load.seed,
        body_memory: args.script.body_memory,
        failed_bodies: args.request.body_errors,
        profile: args.script.script_profile,
        keys: args.judge.reconcile.iter().map(|_| WRITES_BY.to_owned()).collect(),
        ..settings(&args.redaction)?
    };
    let log = log::log(console, None, log::ScriptLogFormat::default(), args.output.verbose);
    let loader = ScriptLoader::new(settings, log.map_err(Failure::usage)?);
    for (path, script) in expand(draft, &loader).map_err(|error| failure(&error))? {
        if script.script.has("handleSummary") && !args.output.quiet {
            let path = path.display();
            console.note(&format!(
                "{path}: handleSummary is not called, since the summary is gake's; `gake as k6 run` \
                 calls it"
            ));
        }
        loader.keep(&path, script);
    }
    Ok(Some(loader))
}

/// What every script has: the environment of the process, the version of k6 that it names, and logs
/// without secrets.
fn settings(redaction: &RedactionArgs) -> Result<ScriptSettings, Failure> {
    let system = environment();
    Ok(ScriptSettings {
        version: K6Version::of(&system).map_err(Failure::usage)?,
        system,
        shows_system: true,
        redactor: Some(gake_session::redaction::mask(redaction)),
        ..ScriptSettings::default()
    })
}

/// Loads the script of a search, if the target is one, and replaces the scenario of `draft` by the
/// function to search. Without objectives, its thresholds are the objectives.
///
/// # Errors
/// When the script cannot be loaded, or has no single function to search.
pub fn load_journey(
    draft: &mut RunDraft,
    args: &FindArgs,
    console: &Console,
) -> Result<Option<ScriptLoader>, Failure> {
    if !draft.scenarios.iter().any(|scenario| scenario.script.is_some()) {
        return Ok(None);
    }
    for objective in &args.search.slo {
        objective.clone().of_script().map_err(Failure::usage)?;
    }
    let given = draft.objectives.clone();
    let mut options = K6Options::default();
    set_http(&mut options, draft)?;
    let settings = ScriptSettings {
        options,
        failed_bodies: args.request.body_errors,
        ..settings(&args.redaction)?
    };
    let loader = ScriptLoader::new(settings, log::first_error(console));
    let loaded = expand(draft, &loader).map_err(|error| failure(&error))?;
    draft.objectives = given;
    for (path, script) in loaded {
        let shown = path.display();
        if script.options.paused == Some(true) {
            let why = "a search starts at once: remove the option paused";
            return Err(Failure::usage(format!("{shown}: {why}")));
        }
        if draft.objectives.is_empty() {
            draft.objectives = searchable(&script.threshold_texts(), console);
        }
        draft.scenarios = vec![journey(&path, &draft.scenarios, &script)?];
        loader.keep(&path, script);
    }
    Ok(Some(loader))
}

/// The version of HTTP that flags or spec name, which replaces the one of the script's options.
fn set_http(options: &mut K6Options, draft: &RunDraft) -> Result<(), Failure> {
    let Some(version) = draft.connection.http else { return Ok(()) };
    let name = match version {
        HttpVersion::Http10 => {
            return Err(Failure::usage("--http 1.0: scripts send HTTP/1.1, 2 or 3"));
        }
        HttpVersion::Http11 => "1.1",
        HttpVersion::Http2 => "2",
        HttpVersion::Auto => "auto",
        HttpVersion::Http3 => "3",
        HttpVersion::Auto3 => "auto3",
    };
    options.http_version = Some(name.to_owned());
    Ok(())
}

/// The scenario whose function, environment and tags a search takes; of several the default
/// function.
fn journey(
    path: &Path,
    scenarios: &[ScenarioDraft],
    script: &ConfiguredScript,
) -> Result<ScenarioDraft, Failure> {
    let own = ScenarioDraft { script: Some(path.to_owned()), ..ScenarioDraft::default() };
    if let [only] = scenarios {
        return Ok(ScenarioDraft {
            function: only.function.clone(),
            environment: only.environment.clone(),
            tags: only.tags.clone(),
            body_errors: only.body_errors,
            ..own
        });
    }
    let names: Vec<&str> = scenarios.iter().filter_map(|one| one.name.as_deref()).collect();
    match script.script.has("default") {
        true => Ok(own),
        false => Err(Failure::usage(format!(
            "{} has the scenarios {}: a search loads one function, so export the journey as the \
             default function",
            path.display(),
            names.join(", ")
        ))),
    }
}

/// The thresholds that a search can bound.
fn searchable(thresholds: &[String], console: &Console) -> Vec<String> {
    let can_be = |text: &&String| {
        let objective = text.parse::<Objective>().map_err(|error| error.to_string());
        let objective = objective.and_then(Objective::of_script);
        match objective.and_then(|objective| objective.clause()) {
            Ok(_) => true,
            Err(why) => {
                console.note(&format!("the threshold {text} is left out: {why}"));
                false
            }
        }
    };
    thresholds.iter().filter(can_be).cloned().collect()
}

/// A scenario's flags as k6 options, which override the script's own: users, duration, iterations.
/// A rate, stages or a spike are a load of their own.
fn options(scenario: &mut ScenarioDraft) -> Result<K6Options, Failure> {
    let mut options = K6Options::default();
    if scenario.rate.is_some() || scenario.stages.is_some() {
        let users = match scenario.users.take() {
            Some(UsersValue::Number(users)) => Some(users as u64),
            other => {
                scenario.users = other;
                None
            }
        };
        let users = users.or(scenario.connections.map(|count| count.0));
        scenario.connections =
            Some(gake_core::spec::value::CountValue(users.unwrap_or(USERS_AT_A_RATE)));
        return Ok(options);
    }
    let is_own = scenario.iterations_per_user.is_some()
        || matches!(scenario.users, Some(UsersValue::Stages(_)));
    if is_own {
        return Ok(options);
    }
    let mut set = |key: &str, text: String| {
        let set = options.set_text(key, &text);
        set.map_err(|error| Failure::usage(format!("{key} {text}: {error}")))
    };
    if let Some(UsersValue::Number(users)) = scenario.users.take() {
        set("vus", users.to_string())?;
    }
    if let Some(time) = scenario.duration.take() {
        set("duration", format!("{}ms", time.0.as_millis()))?;
    }
    if let Some(count) = scenario.requests.take() {
        set("iterations", count.0.to_string())?;
    }
    Ok(options)
}
