//! gake as k6: scripts in JavaScript, k6's options, summary and exit codes.

mod beside;
mod flags;
mod inspect;
pub mod journey;
mod life;
mod log;
mod network;
mod new;
mod open_loop;
mod out;
mod plan;

use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::personality::native::Native;
use beside::BesideArgs;
use flags::RunFlags;

/// k6's code for what has no code of its own.
const ANY: Exit = Exit::Tool(255);

/// Commands of k6 that are not there, and why.
const ABSENT: &[(&str, &str)] = &[
    ("archive", "gake runs scripts, not archives"),
    ("cloud", "gake has no cloud"),
    ("login", "gake has no cloud"),
    ("pause", "gake has no API yet"),
    ("resume", "gake has no API yet"),
    ("scale", "gake has no API yet"),
    ("stats", "gake has no API yet"),
    ("status", "gake has no API yet"),
];

/// `gake as k6`.
///
/// # Errors
/// Why it cannot be run as asked.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    match args.split_first() {
        Some((command, rest)) if command == "run" => run(rest, native, console),
        Some((command, rest)) if command == "inspect" => inspect::main(rest, console),
        Some((command, rest)) if command == "new" => new::main(rest, console),
        Some((command, _)) if command == "version" || command == "--version" => {
            console.result(concat!("k6 gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
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

fn usage(console: &Console) -> Result<Exit, Failure> {
    console.result(
        "Usage: gake as k6 run [flags] script.js\n       gake as k6 inspect [flags] \
                    script.js\n       gake as k6 new [flags] [script.js]\n       gake as k6 \
                    version\n",
    )?;
    Ok(Exit::Done)
}

fn run(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    let (own, args) = BesideArgs::take(args)?;
    match RunFlags::read(&args) {
        Ok(Some(flags)) => life::run(&flags, &own, native, console),
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
