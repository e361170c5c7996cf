//! gake as another tool: its flags, defaults and output, on gake's engine.
//!
//! A personality converts the tool's flags to the spec of a run
//! ([`RunSpec`](gake_core::spec::RunSpec)), runs it, and prints the tool's output. It refuses flags
//! that it does not support by name.

#![forbid(unsafe_code)]

mod ab;
mod flags;
mod go_errors;
mod h2load;
mod hey;
mod k6;
mod native_result;
mod nighthawk;
mod oha;
mod outcome_stats;
mod spectrum;
mod spread;
#[cfg(test)]
mod testing;
mod tool_run;
mod vegeta;
mod wrk;

use std::ffi::OsString;
use std::path::Path;

use gake_session::{Console, Exit, Failure};

pub use k6::attach::attach;
pub use native_result::NativeResult;

/// Runs a personality: the tool's arguments, gake's own result, and the streams.
type Personality = fn(&[String], &NativeResult, &Console) -> Result<Exit, Failure>;

/// The tools by their names.
const TOOLS: &[(&str, Personality)] = &[
    ("ab", ab::main),
    ("h2load", h2load::main),
    ("hey", hey::main),
    ("k6", k6::main),
    ("nighthawk_client", nighthawk::main),
    ("oha", oha::main),
    ("vegeta", vegeta::main),
    ("wrk", wrk::wrk),
    ("wrk2", wrk::wrk2),
];

/// The tools' names, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    TOOLS.iter().map(|(name, _)| *name).collect()
}

/// Runs as another tool if the command line is `gake as TOOL` or the program has the tool's name;
/// otherwise `None`.
pub fn run(args: &[OsString], console: &Console) -> Option<Result<Exit, Failure>> {
    let called = args.first().and_then(|path| Path::new(path).file_name()?.to_str());
    let is_as = args.get(1).is_some_and(|word| word == "as");
    let by_name = called.and_then(|name| find(name).map(|main| (main, 1)));
    let (main, skip) = match (by_name, is_as, args.get(2).and_then(|tool| tool.to_str())) {
        (Some(found), _, _) => found,
        (None, true, Some(tool)) if !tool.starts_with('-') => match find(tool) {
            Some(main) => (main, 3),
            None => {
                let names = names().join(", ");
                let why = format!("gake cannot behave as {tool}; it can behave as {names}");
                return Some(Err(Failure::usage(why)));
            }
        },
        _ => return None,
    };
    Some(behave(main, &args[skip..], console))
}

fn find(name: &str) -> Option<Personality> {
    TOOLS.iter().find(|(known, _)| *known == name).map(|(_, main)| *main)
}

fn behave(main: Personality, args: &[OsString], console: &Console) -> Result<Exit, Failure> {
    let mut args: Vec<String> = args
        .iter()
        .map(|arg| arg.to_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::usage("an argument is not UTF-8"))?;
    let native = NativeResult::extract(&mut args)?;
    main(&args, &native, console)
}
