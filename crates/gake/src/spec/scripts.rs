//! Scripts as targets: what flags say of them, and their load.

use gake_core::spec::value::UsersValue;
use gake_core::spec::{RunDraft, ScenarioDraft};
use gake_k6::options::Options;
use gake_run::script::{ScriptSettings, expand};
use gake_session::run::writes::WRITES_BY;
use gake_session::script::{ScriptLoader, environment, log};
use gake_session::spec_error::failure;
use gake_session::{Console, Failure};

use crate::cli::RunArgs;

/// Users of a script at a rate, when no flag says how many.
const USERS_AT_A_RATE: u64 = 100;

/// Loads the scripts of `draft`, and gives it the scenarios that their options describe. `None`
/// when it has no script.
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
    let options = match target.filter(|_| args.spec.spec.is_none()) {
        Some(target) => options(target)?,
        None => Options::default(),
    };
    let settings = ScriptSettings {
        options,
        system: environment(),
        shows_system: true,
        variables: args.script.env.iter().cloned().collect(),
        seed: args.load.seed,
        body_memory: args.script.body_memory,
        failed_bodies: args.request.body_errors,
        profile: args.script.script_profile,
        keys: args.judge.reconcile.iter().map(|_| WRITES_BY.to_owned()).collect(),
        ..ScriptSettings::default()
    };
    let log = log::log(console, None, log::ScriptLogFormat::Text, args.output.verbose);
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

/// What the flags of a scenario say in k6's options, which join those of its script: its users, its
/// duration and its iterations. A rate, stages or a spike are a load of their own.
fn options(scenario: &mut ScenarioDraft) -> Result<Options, Failure> {
    let mut options = Options::default();
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
