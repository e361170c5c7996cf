//! The tests, and a second look at those that failed beside others.
//!
//! A test of a real clock needs a core now and then, which neighbours on a shared machine may take
//! from it for seconds. What fails is run once more with nothing beside it: what fails again is
//! wrong, and what passes then is named at the end, so that nobody overlooks it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{command, workspace};

/// More than this fail for a reason that a second look will not change.
const MOST_FAILED: usize = 8;

/// A variable in the environment of the tests.
type Variable = (&'static str, String);

/// Runs `cargo test` with `args` and a variable; returns the tests that passed only when they were
/// alone.
///
/// # Errors
/// If something does not compile, a test fails twice, or more fail than a machine explains.
pub fn run(args: &[&str], variable: Option<Variable>) -> Result<Vec<String>> {
    let mut env = Vec::from_iter(variable.into_iter().chain(threads()));
    let first = watched(&[&["test"], args, &["--no-fail-fast"]].concat(), &env)?;
    if first.passed {
        return Ok(Vec::new());
    }
    let failed: Vec<_> = first.failed.into_iter().collect();
    match failed.len() {
        0 => bail!("`cargo test` failed, and no test of it: see above"),
        1..=MOST_FAILED => {}
        many => bail!("{many} tests failed: {}", failed.join(", ")),
    }
    println!("\nfailed, and run again alone: {}", failed.join(", "));
    let names: Vec<_> = failed.iter().map(String::as_str).collect();
    // Tests in documentation wait for nothing: one that failed is not run again, and stays failed.
    let targets: &[&str] = if args.contains(&"--lib") { &[] } else { &["--tests"] };
    let alone = [&["test"], args, targets, &["--", "--exact", "--test-threads=1"], &names].concat();
    env.retain(|(name, _)| *name != THREADS);
    let second = watched(&alone, &env)?;
    let again: Vec<_> = failed.iter().filter(|name| !second.ok.contains(*name)).cloned().collect();
    if !second.passed || !again.is_empty() {
        bail!("failed alone too: {}", again.join(", "));
    }
    Ok(failed)
}

/// Tests at once, unless the caller says how many.
const THREADS: &str = "RUST_TEST_THREADS";

/// Most tests wait most of their time, for a run to end: two a core take half as long as one.
fn threads() -> Option<Variable> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var_os(THREADS).is_none().then(|| (THREADS, (2 * cores).to_string()))
}

/// What a run of the tests said.
struct Said {
    passed: bool,
    ok: BTreeSet<String>,
    failed: BTreeSet<String>,
}

/// Runs cargo with its output passed on line by line, and notes how each test ended.
fn watched(args: &[&str], env: &[Variable]) -> Result<Said> {
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    println!("$ {}", command::shown("cargo", args, &env));
    let mut child = Command::new(workspace::cargo())
        .args(args)
        .envs(env)
        .current_dir(workspace::root())
        .stdout(Stdio::piped())
        .spawn()
        .context("`cargo` could not be started")?;
    let mut said = Said { passed: false, ok: BTreeSet::new(), failed: BTreeSet::new() };
    let output = child.stdout.take().context("cargo has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cargo's output cannot be read")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(std::io::stdout(), "{line}").context("stdout is closed")?;
        match ended(&line) {
            Some((name, true)) => _ = said.ok.insert(name.to_owned()),
            Some((name, false)) => _ = said.failed.insert(name.to_owned()),
            None => {}
        }
    }
    said.passed = child.wait().context("cargo was lost")?.success();
    Ok(said)
}

/// The test whose end a line tells, and whether it passed.
fn ended(line: &str) -> Option<(&str, bool)> {
    let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    match result.trim_end() {
        "ok" => Some((name, true)),
        "FAILED" => Some((name, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_test_is_read_from_its_line() {
        assert_eq!(ended("test pages::a_page ... ok"), Some(("pages::a_page", true)));
        assert_eq!(ended("test a ... FAILED"), Some(("a", false)));
        let documented = "src/lib.rs - clock::Clock (line 9)";
        assert_eq!(ended(&format!("test {documented} ... FAILED")), Some((documented, false)));
    }

    #[test]
    fn other_lines_tell_no_end() {
        for line in ["running 3 tests", "test matrix ... ignored, minutes", "test result: ok. 3"] {
            assert_eq!(ended(line), None, "{line}");
        }
    }
}
