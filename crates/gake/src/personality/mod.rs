//! gake as another tool: its flags, defaults and output, on our engine.
//!
//! `gake as hey ...`, or gake called by the name `hey`. A personality turns the tool's flags into
//! the spec of a run ([`RunSpec`](gake_core::spec::RunSpec)), runs it ([`attack`]), and prints as
//! the tool does. What it cannot honour it refuses by name.

mod ab;
mod attack;
mod flags;
mod gathered;
mod goish;
mod h2load;
mod hey;
pub mod k6;
mod native;
mod nighthawk;
mod oha;
mod vegeta;
mod wrk;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use gake_files::InputError;
use gake_run::BODY_BYTES_MAX;

use gake_session::Console;
use gake_session::{Exit, Failure};
use native::Native;

/// How a personality runs: the tool's arguments, gake's own beside them, and the streams.
type Main = fn(&[String], &Native, &Console) -> Result<Exit, Failure>;

/// The tools, by the names under which they are called.
const TOOLS: &[(&str, Main)] = &[
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

/// The tools' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|(name, _)| *name)
}

/// Behaves as another tool when the arguments say so: by `as TOOL` or by the program's own name.
pub fn run(args: &[OsString], console: &Console) -> Option<Result<Exit, Failure>> {
    let called = args.first().and_then(|path| Path::new(path).file_name()?.to_str());
    let is_as = args.get(1).is_some_and(|word| word == "as");
    let by_name = called.and_then(|name| find(name).map(|main| (main, 1)));
    let (main, skip) = match (by_name, is_as, args.get(2).and_then(|tool| tool.to_str())) {
        (Some(found), _, _) => found,
        (None, true, Some(tool)) if !tool.starts_with('-') => match find(tool) {
            Some(main) => (main, 3),
            None => {
                let known: Vec<_> = names().collect();
                return Some(Err(Failure::usage(format!(
                    "gake cannot behave as {tool}; it can behave as {}",
                    known.join(", ")
                ))));
            }
        },
        _ => return None,
    };
    Some(behave(main, &args[skip..], console))
}

fn find(name: &str) -> Option<Main> {
    TOOLS.iter().find(|(known, _)| *known == name).map(|(_, main)| *main)
}

fn behave(main: Main, args: &[OsString], console: &Console) -> Result<Exit, Failure> {
    let mut args: Vec<String> = args
        .iter()
        .map(|arg| arg.to_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::usage("an argument is not UTF-8"))?;
    let native = Native::take(&mut args)?;
    main(&args, &native, console)
}

/// Checks that a tool's spec means the same when it is written and read.
#[cfg(test)]
fn assert_comes_back(spec: &gake_core::spec::RunSpec) {
    use gake_core::spec::Syntax;
    use gake_core::spec::file::SpecFile;
    for (name, syntax) in [("a.toml", Syntax::Toml), ("a.json", Syntax::Json)] {
        let text = spec.draft().write(syntax).unwrap();
        let read = SpecFile::read(name, text.as_bytes()).unwrap().spec();
        assert_eq!(read.as_ref(), Ok(spec), "{text}");
    }
}

/// A body, whose file other tools read whole.
///
/// # Errors
/// The system's, or that it is too large.
pub fn body_file(path: &str) -> io::Result<Vec<u8>> {
    gake_files::read(Path::new(path), "a body", BODY_BYTES_MAX).map_err(|error| match error {
        InputError::Io { error, .. } => error,
        error => io::Error::other(error),
    })
}
