//! `k6 inspect`: the options of a script, without running it.

use std::time::Duration;

use gake_core::Load;
use gake_core::spec::ScenarioSpec;
use gake_k6::duration::GoDuration;
use gake_k6::options::{K6Options, OptionsView};
use gake_k6::version::K6Version;
use gake_run::script::ConfiguredScript;
use serde_json::{Value, json};

use super::flags::RunFlags;
use super::load::{LoadRefusal, load};
use super::{CommandOutput, other_error};
use gake_session::Console;
use gake_session::script::log;

/// The flag that also shows the requirements of the merged options.
const REQUIREMENTS: &str = "--execution-requirements";

/// k6's value when `dns` is not set.
const NO_DNS: &str =
    "\"dns\": {\n    \"ttl\": null,\n    \"select\": null,\n    \"policy\": null\n  }";

/// `k6 inspect`.
pub(super) fn main(args: &[String], version: K6Version, console: &Console) -> CommandOutput {
    let (requested, args): (Vec<_>, Vec<_>) =
        args.iter().cloned().partition(|arg| arg.as_str() == REQUIREMENTS);
    let Some(flags) = RunFlags::read(&args, version).map_err(other_error)? else {
        return Ok("Usage: gake as k6 inspect [flags] script.js\n".to_owned());
    };
    let log = log::log(console, flags.log_output.as_deref(), flags.log_format, flags.verbose)
        .map_err(other_error)?;
    let loaded = load(&flags, log).map_err(LoadRefusal::into_error)?;
    let text = if requested.is_empty() { own(&loaded) } else { required(&loaded) };
    text.map_err(|error| other_error(error.to_string()))
}

/// The options that the script exports.
fn own(loaded: &ConfiguredScript) -> Result<String, serde_json::Error> {
    let given = loaded.own.as_deref().map_or(Ok(Value::Null), serde_json::from_str)?;
    exported(&given)
}

fn exported(given: &Value) -> Result<String, serde_json::Error> {
    // Reading succeeded before, when the script was loaded.
    let mut options = K6Options::read(given).map(|read| read.options).unwrap_or_default();
    if let Some(tags) = &mut options.system_tags {
        tags.sort();
        tags.dedup();
    }
    shown(options.shown_to_users(), "")
}

/// The options in force, the longest time they allow, and the most users at once.
fn required(loaded: &ConfiguredScript) -> Result<String, serde_json::Error> {
    let scenarios = &loaded.run.spec.scenarios;
    let end = scenarios.iter().map(end).max().unwrap_or(Duration::ZERO);
    let nanos = i64::try_from(end.as_nanos()).unwrap_or(i64::MAX);
    let total = GoDuration::from_nanos(nanos).to_string();
    let more = format!(
        ",\n  \"totalDuration\": {},\n  \"maxVUs\": {}",
        json!(total),
        most_users(scenarios)
    );
    shown(loaded.options.shown_to_users(), &more)
}

/// The JSON as Go writes it, with `more` as the last members.
fn shown(options: OptionsView<'_>, more: &str) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string_pretty(&options)?.replace("\"dns\": null", NO_DNS);
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    Ok(match text.strip_suffix("\n}") {
        Some(members) => format!("{members}{more}\n}}"),
        None => text,
    })
}

/// When the last iteration of a scenario must have ended.
fn end(scenario: &ScenarioSpec) -> Duration {
    let stages = match &scenario.load {
        Load::Open { stages, .. } => stages.iter().map(|stage| stage.duration).sum(),
        Load::Ramping { stages, .. } => stages.iter().map(|stage| stage.duration).sum(),
        _ => Duration::ZERO,
    };
    scenario.start + scenario.duration.unwrap_or(stages) + scenario.graceful_stop
}

/// The most users that scenarios have at one time.
fn most_users(scenarios: &[ScenarioSpec]) -> usize {
    let users = |one: &ScenarioSpec| one.load.users().unwrap_or(one.max_in_flight);
    let at = |instant: Duration| {
        let there = scenarios.iter().filter(|one| one.start <= instant && instant < end(one));
        there.map(users).sum()
    };
    // The number changes only when a scenario starts or ends.
    scenarios.iter().map(|one| at(one.start)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use gake_core::spec::RequestSource;

    use super::*;

    fn scenario(start: u64, seconds: u64, users: usize) -> ScenarioSpec {
        let source = RequestSource::Given("script".to_owned());
        let mut one = ScenarioSpec::new(source, Load::closed(users));
        one.start = Duration::from_secs(start);
        one.duration = Some(Duration::from_secs(seconds));
        one.graceful_stop = Duration::from_secs(30);
        one
    }

    #[test]
    fn users_of_scenarios_that_overlap_add_up() {
        let after = [scenario(0, 10, 5), scenario(40, 10, 7)];
        assert_eq!((most_users(&after), end(&after[1])), (7, Duration::from_secs(80)));
        let beside = [scenario(0, 10, 5), scenario(39, 10, 7)];
        assert_eq!(most_users(&beside), 12);
    }

    #[test]
    fn options_are_written_as_go_writes_them() {
        let options =
            K6Options::read(&json!({ "thresholds": { "checks": ["rate>0.9"] } })).unwrap();
        let text = shown(options.options.shown_to_users(), ",\n  \"maxVUs\": 1").unwrap();
        assert!(text.contains("\"rate\\u003e0.9\"") && text.contains("\"ttl\": null"), "{text}");
        assert!(text.ends_with("\"features\": null,\n  \"maxVUs\": 1\n}"), "{text}");
        assert!(serde_json::from_str::<Value>(&text).is_ok());
    }

    #[test]
    fn system_tags_are_a_set() {
        let text = exported(&json!({ "systemTags": ["url", "name", "check", "url"] })).unwrap();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["systemTags"], json!(["check", "name", "url"]));
    }
}
