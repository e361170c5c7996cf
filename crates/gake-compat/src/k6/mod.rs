//! gake as k6: scripts in JavaScript, k6's options, summary and exit codes.

mod agents;
mod api;
mod archive;
pub mod attach;
mod deps;
mod ending;
mod environment;
mod exit;
mod flags;
mod inspect;
mod lifecycle;
mod load;
mod native_outputs;
mod new;
mod open_loop;
mod opentelemetry;
mod out;
mod prepared_test;
mod progress;
mod prometheus;
mod sample_queue;
mod summary_figures;

use std::collections::BTreeMap;

use flags::RunFlags;
use gake_k6::features::Features;
use gake_k6::version::K6Version;
use gake_session::options::EmbeddedArgs;
use gake_session::{Console, Exit, Failure};

use crate::NativeResult as Native;

/// k6's code for all other failures.
const ANY: Exit = Exit::Tool(255);

/// The commands of 1.x that use the API of a run.
const RUNNING: [&str; 4] = ["pause", "resume", "scale", "status"];

/// The flag of all commands that chooses a [`K6Version`].
const VERSION_FLAG: &str = "--k6-version";

/// k6's message for a deprecated flag.
const OLD_NO_SUMMARY: &str =
    "Flag --no-summary has been deprecated, use --summary-mode=disabled instead\n";

/// Commands of k6 that gake does not have, and why.
const ABSENT: &[(&str, &str)] = &[("cloud", "gake has no cloud"), ("login", "gake has no cloud")];

/// The output of a command, or the reason why it has none and its exit code.
type CommandOutput = Result<String, (String, Exit)>;

/// An error for which k6 has no exit code of its own.
fn other_error(why: String) -> (String, Exit) {
    (why, ANY)
}

/// `gake as k6`.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    let environment = gake_session::script::environment();
    let (version, args) = match chosen_version(args, &environment) {
        Ok(chosen) => chosen,
        Err(why) => return show(Err(other_error(why)), console),
    };
    let args = command_first(&args);
    let Some((command, rest)) = args.split_first() else { return show(Ok(usage()), console) };
    let printed = match command.as_str() {
        "run" => return run(rest, version, native, console),
        "archive" => archive::main(rest, version, console),
        "inspect" => inspect::main(rest, version, console),
        "deps" => deps::main(rest, version, console),
        "new" => new::main(rest),
        "version" | "--version" => {
            Ok(version_text(version, rest.iter().any(|arg| arg == "--json")))
        }
        "features" => Ok(features_text(rest.iter().any(|arg| arg == "--json"))),
        "help" | "--help" | "-h" => Ok(usage()),
        "stats" => api::main(command, rest),
        running if RUNNING.contains(&running) && version == K6Version::One => {
            api::main(running, rest)
        }
        running if RUNNING.contains(&running) => Err(other_error(format!(
            "unknown command {running:?} for \"k6\": k6 2.0 removed it; {VERSION_FLAG} 1.8 has it"
        ))),
        other => {
            let known = ABSENT.iter().find(|(name, _)| *name == other);
            let why = known.map_or("it is not a command of k6", |(_, why)| why);
            Err(other_error(format!("the command {other:?} cannot be honoured: {why}")))
        }
    };
    show(printed, console)
}

fn show(printed: CommandOutput, console: &Console) -> Result<Exit, Failure> {
    match printed {
        Ok(text) => {
            console.result(&text)?;
            Ok(Exit::Done)
        }
        Err((why, exit)) => {
            console.error(&why);
            Ok(exit)
        }
    }
}

/// The arguments with the command moved before the flags of all commands, where k6 accepts it, too.
fn command_first(args: &[String]) -> Vec<String> {
    const PLAIN: [&str; 6] =
        ["-q", "--quiet", "-v", "--verbose", "--no-color", "--profiling-enabled"];
    const VALUED: [&str; 7] =
        ["-a", "--address", "-c", "--config", "--log-format", "--log-output", "--secret-source"];
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let name = arg.split_once('=').map_or(&**arg, |(name, _)| name);
        match name {
            _ if VALUED.contains(&name) && name == arg => at += 2,
            _ if VALUED.contains(&name) || PLAIN.contains(&name) => at += 1,
            _ => break,
        }
    }
    let (flags, rest) = args.split_at(at.min(args.len()));
    let (command, rest) = rest.split_at(rest.len().min(1));
    [command, flags, rest].concat()
}

/// The version that the arguments choose, or else the environment, and the other arguments.
fn chosen_version(
    args: &[String],
    environment: &BTreeMap<String, String>,
) -> Result<(K6Version, Vec<String>), String> {
    let mut others = Vec::new();
    let mut chosen = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix(VERSION_FLAG) {
            Some("") => chosen = args.next().map(String::as_str).or(Some("")),
            Some(value) if value.starts_with('=') => chosen = Some(&value[1..]),
            _ => others.push(arg.clone()),
        }
    }
    let version = match chosen {
        Some(text) => K6Version::parse(text).map_err(|why| format!("{VERSION_FLAG}: {why}"))?,
        None => K6Version::of(environment)?,
    };
    Ok((version, others))
}

/// What `version` prints.
fn version_text(version: K6Version, is_json: bool) -> String {
    let (own, k6) = (env!("CARGO_PKG_VERSION"), version.name());
    if is_json {
        return format!("{{\"version\":\"gake/{own}\",\"k6\":\"{k6}\"}}\n");
    }
    let other = match version {
        K6Version::One => K6Version::Two,
        K6Version::Two => K6Version::One,
    };
    format!(
        "k6 gake/{own} (as k6 {k6}; {VERSION_FLAG} {other} or {}={other} for k6 {other})\n",
        K6Version::VARIABLE,
        other = other.name()
    )
}

/// What `features` prints.
fn features_text(is_json: bool) -> String {
    if is_json {
        let all = Features::ALL.map(|(feature, description)| {
            serde_json::json!({
                "feature": feature, "lifecycle": "Experimental", "description": description
            })
        });
        return serde_json::to_string_pretty(&all).unwrap_or_default() + "\n";
    }
    let line = |(feature, description)| format!("{feature:<23}Experimental   {description}\n");
    let lines: String = Features::ALL.into_iter().map(line).collect();
    format!("{:<23}LIFECYCLE      DESCRIPTION\n{lines}", "FEATURE")
}

fn usage() -> String {
    "Usage: gake as k6 run [flags] script.js
       gake as k6 archive [-O archive.tar] [flags] script.js
       gake as k6 inspect [flags] script.js
       gake as k6 deps [--json] [--lock] script.js
       gake as k6 new [flags] [script.js]
       gake as k6 stats [--address HOST:PORT]
       gake as k6 features [--json]
       gake as k6 version [--json]
As k6 2.3. --k6-version 1.8 (or GAKE_K6_VERSION=1.8) adds pause, resume, scale and status, and the
executor externally-controlled.
"
    .to_owned()
}

fn run(
    args: &[String],
    version: K6Version,
    native: &Native,
    console: &Console,
) -> Result<Exit, Failure> {
    let (own, args) = EmbeddedArgs::take(args)?;
    if version == K6Version::One && args.iter().any(|arg| arg == "--no-summary") {
        console.result(OLD_NO_SUMMARY)?;
    }
    let flags = environment::with_flags(&args, &gake_session::script::environment(), version);
    let printed = match flags.and_then(|args| RunFlags::read(&args, version)) {
        Ok(Some(flags)) => match flags.print_spec {
            Some(format) => return lifecycle::print_spec(&flags, format, console),
            None => return lifecycle::run(&flags, &own, native, console),
        },
        Ok(None) => {
            Ok("Usage: gake as k6 run [flags] script.js\nThe flags are those of k6; those \
                        that gake does not support are refused by name. docs/k6.md lists what it \
                        supports.\n"
                .to_owned())
        }
        Err(why) => Err(other_error(why)),
    };
    show(printed, console)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_flags_may_precede_the_command() {
        let ordered = |line: &str| {
            let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
            command_first(&args).join(" ")
        };
        assert_eq!(ordered("-q run --vus 2 a.js"), "run -q --vus 2 a.js");
        assert_eq!(ordered("--address=h:1 -v run a.js"), "run --address=h:1 -v a.js");
        assert_eq!(ordered("-a h:1 status"), "status -a h:1");
        assert_eq!(ordered("run -q a.js"), "run -q a.js");
        assert_eq!(ordered("-q"), "-q");
        assert_eq!(ordered("-c"), "-c");
        assert_eq!(ordered("--help"), "--help");
    }
}
