//! gake as k6: scripts in JavaScript, k6's options, summary and exit codes.

mod agents;
mod api;
mod archive;
pub mod attach;
mod beside;
mod ending;
mod environment;
mod flags;
mod inspect;
pub mod journey;
mod life;
mod load;

mod new;
mod open_loop;
mod out;
mod progress;
mod prometheus;

use beside::BesideArgs;
use flags::RunFlags;
use gake_compat::NativeResult as Native;
use gake_session::Console;
use gake_session::{Exit, Failure};

/// k6's code for all other failures.
const ANY: Exit = Exit::Tool(255);

/// The commands that ask a run through its API.
const RUNNING: [&str; 5] = ["pause", "resume", "scale", "stats", "status"];

const VERSION: &str = concat!("k6 gake/", env!("CARGO_PKG_VERSION"), "\n");
const VERSION_JSON: &str = concat!("{\"version\":\"gake/", env!("CARGO_PKG_VERSION"), "\"}\n");

/// What k6 prints of a flag that has a successor.
const OLD_NO_SUMMARY: &str =
    "Flag --no-summary has been deprecated, use --summary-mode=disabled instead\n";

/// Commands of k6 that are not there, and why.
const ABSENT: &[(&str, &str)] = &[("cloud", "gake has no cloud"), ("login", "gake has no cloud")];

/// `gake as k6`.
///
/// # Errors
/// Why it cannot be run as asked.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    match command_first(args).split_first() {
        Some((command, rest)) if command == "run" => run(rest, native, console),
        Some((command, rest)) if RUNNING.contains(&command.as_str()) => {
            api::main(command, rest, console)
        }
        Some((command, rest)) if command == "archive" => archive::main(rest, console),
        Some((command, rest)) if command == "inspect" => inspect::main(rest, console),
        Some((command, rest)) if command == "new" => new::main(rest, console),
        Some((command, rest)) if command == "version" || command == "--version" => {
            let is_json = rest.iter().any(|arg| arg == "--json");
            console.result(if is_json { VERSION_JSON } else { VERSION })?;
            Ok(Exit::Done)
        }
        Some((command, _)) => {
            if matches!(command.as_str(), "help" | "--help" | "-h") {
                return usage(console);
            }
            let known = ABSENT.iter().find(|(name, _)| name == command);
            let why = known.map_or("it is not a command of k6", |(_, why)| why);
            console.error(&format!("the command {command:?} cannot be honoured: {why}"));
            Ok(ANY)
        }
        None => usage(console),
    }
}

/// The arguments with the command before the flags of all commands, which k6 takes before it, too.
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

fn usage(console: &Console) -> Result<Exit, Failure> {
    console.result(
        "Usage: gake as k6 run [flags] script.js
       gake as k6 archive [-O archive.tar] [flags] script.js
       gake as k6 inspect [flags] script.js
       gake as k6 new [flags] [script.js]
       gake as k6 pause|resume|scale|stats|status [--address HOST:PORT]
       gake as k6 version [--json]
",
    )?;
    Ok(Exit::Done)
}

fn run(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    let (own, args) = BesideArgs::take(args)?;
    if args.iter().any(|arg| arg == "--no-summary") {
        console.result(OLD_NO_SUMMARY)?;
    }
    let flags = environment::with_flags(&args, &gake_session::script::environment());
    match flags.and_then(|args| RunFlags::read(&args)) {
        Ok(Some(flags)) => {
            if let Some(format) = flags.print_spec {
                return life::print_spec(&flags, format, console);
            }
            life::run(&flags, &own, native, console)
        }
        Ok(None) => {
            console.result(
                "Usage: gake as k6 run [flags] script.js\nThe flags are those of k6; those that \
                 gake does not support are refused by name. docs/k6.md lists what it supports.\n",
            )?;
            Ok(Exit::Done)
        }
        Err(why) => {
            console.error(&why);
            Ok(ANY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_all_commands_may_stand_before_the_command() {
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
