//! gake as k6: scripts in JavaScript, k6's options, summary and exit codes.

mod agents;
mod api;
mod archive;
pub mod attach;
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
mod out;
mod prepared_test;
mod progress;
mod prometheus;
mod sample_queue;

use crate::NativeResult as Native;
use flags::RunFlags;
use gake_session::Console;
use gake_session::options::EmbeddedArgs;
use gake_session::{Exit, Failure};

/// k6's code for all other failures.
const ANY: Exit = Exit::Tool(255);

/// The commands that use the API of a run.
const RUNNING: [&str; 5] = ["pause", "resume", "scale", "stats", "status"];

const VERSION: &str = concat!("k6 gake/", env!("CARGO_PKG_VERSION"), "\n");
const VERSION_JSON: &str = concat!("{\"version\":\"gake/", env!("CARGO_PKG_VERSION"), "\"}\n");

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
    let args = command_first(args);
    let Some((command, rest)) = args.split_first() else { return show(Ok(usage()), console) };
    let printed = match command.as_str() {
        "run" => return run(rest, native, console),
        "archive" => archive::main(rest, console),
        "inspect" => inspect::main(rest, console),
        "new" => new::main(rest),
        "version" | "--version" => {
            let is_json = rest.iter().any(|arg| arg == "--json");
            Ok(if is_json { VERSION_JSON } else { VERSION }.to_owned())
        }
        "help" | "--help" | "-h" => Ok(usage()),
        running if RUNNING.contains(&running) => api::main(running, rest),
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

fn usage() -> String {
    "Usage: gake as k6 run [flags] script.js
       gake as k6 archive [-O archive.tar] [flags] script.js
       gake as k6 inspect [flags] script.js
       gake as k6 new [flags] [script.js]
       gake as k6 pause|resume|scale|stats|status [--address HOST:PORT]
       gake as k6 version [--json]
"
    .to_owned()
}

fn run(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    let (own, args) = EmbeddedArgs::take(args)?;
    if args.iter().any(|arg| arg == "--no-summary") {
        console.result(OLD_NO_SUMMARY)?;
    }
    let flags = environment::with_flags(&args, &gake_session::script::environment());
    let printed = match flags.and_then(|args| RunFlags::read(&args)) {
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
