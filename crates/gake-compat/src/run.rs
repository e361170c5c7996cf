//! gake as another tool, by `gake as hey ...` or by the name `hey`: k6 here, the others in
//! `gake-compat`.

pub mod k6;

use std::ffi::OsString;
use std::path::Path;

#[cfg(feature = "compat")]
use gake_compat::TOOLS;
use gake_compat::{NativeResult, Personality};
use gake_session::{Console, Exit, Failure};

/// Without the feature `compat` gake behaves as k6 only.
#[cfg(not(feature = "compat"))]
const TOOLS: &[(&str, Personality)] = &[];

/// The tools' names, in order.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = TOOLS.iter().map(|(name, _)| *name).chain(["k6"]).collect();
    names.sort_unstable();
    names
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
            None => return Some(Err(Failure::usage(unknown(tool)))),
        },
        _ => return None,
    };
    Some(behave(main, &args[skip..], console))
}

fn find(name: &str) -> Option<Personality> {
    let k6: (&str, Personality) = ("k6", k6::main);
    TOOLS.iter().chain([&k6]).find(|(known, _)| *known == name).map(|(_, main)| *main)
}

/// Why gake does not behave as `tool`.
fn unknown(tool: &str) -> String {
    if cfg!(feature = "compat") {
        format!("gake cannot behave as {tool}; it can behave as {}", names().join(", "))
    } else {
        format!(
            "gake cannot behave as {tool}: this build has no personalities but k6's (it was \
                 made without the feature `compat`)"
        )
    }
}

fn behave(main: Personality, args: &[OsString], console: &Console) -> Result<Exit, Failure> {
    let mut args: Vec<String> = args
        .iter()
        .map(|arg| arg.to_str().map(str::to_owned))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::usage("an argument is not UTF-8"))?;
    let native = NativeResult::take(&mut args)?;
    main(&args, &native, console)
}
