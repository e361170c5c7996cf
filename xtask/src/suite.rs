//! The tests, and a second look at those that failed beside others.
//!
//! A test of a real clock needs a core now and then, which neighbours on a shared machine may take
//! from it for seconds. What fails is run once more with nothing beside it: what fails again is
//! wrong, and what passes then is named at the end, so that nobody overlooks it. The slowest binaries
//! are named too: they are where a shorter run begins.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Command;

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
    print!("{}", slowest(&first.times));
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
    let exact = &["--no-fail-fast", "--", "--exact", "--test-threads=1"];
    let alone = [&["test"], args, targets, exact, &names].concat();
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

/// Most tests wait most of their time, for a run to end: two a core take half as long as one. Three
/// take no less, and some of them fail for want of a core.
fn threads() -> Option<Variable> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::env::var_os(THREADS).is_none().then(|| (THREADS, (2 * cores).to_string()))
}

/// What a run of the tests said.
#[derive(Default)]
struct Said {
    passed: bool,
    ok: BTreeSet<String>,
    failed: BTreeSet<String>,
    /// The binaries and their seconds, in the order in which they ran.
    times: Vec<(String, f64)>,
}

/// Binaries whose times are shown.
const SLOWEST: usize = 10;

/// The slowest binaries, a line each.
fn slowest(times: &[(String, f64)]) -> String {
    let mut times: Vec<_> = times.iter().collect();
    times.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: f64 = times.iter().map(|time| time.1).sum();
    let lines = times.iter().take(SLOWEST).map(|(name, time)| format!("{time:8.1} s  {name}\n"));
    format!("\nthe slowest of {} binaries, {all:.0} s in all:\n", times.len())
        + &lines.collect::<String>()
}

/// Runs cargo with its output passed on line by line, and notes how each test ended.
fn watched(args: &[&str], env: &[Variable]) -> Result<Said> {
    let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    println!("$ {}", command::shown("cargo", args, &env));
    // One pipe for both: cargo names a binary on stderr, and its tests speak on stdout.
    let (output, writer) = std::io::pipe().context("no pipe")?;
    let mut command = Command::new(workspace::cargo());
    command.args(args).envs(env).current_dir(workspace::root());
    command.stdout(writer.try_clone().context("no pipe")?).stderr(writer);
    let mut child = command.spawn().context("`cargo` could not be started")?;
    // It holds the writing end, which would keep the pipe open.
    drop(command);
    let (mut said, mut binary) = (Said::default(), String::new());
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cargo's output cannot be read")?;
        let line = String::from_utf8_lossy(&line);
        writeln!(std::io::stdout(), "{line}").context("stdout is closed")?;
        match ended(&line) {
            Some((name, true)) => _ = said.ok.insert(name.to_owned()),
            Some((name, false)) => _ = said.failed.insert(name.to_owned()),
            None => {}
        }
        if let Some(name) = begun(&line) {
            name.clone_into(&mut binary);
        } else if let Some(seconds) = took(&line) {
            said.times.push((binary.clone(), seconds));
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

/// The binary, or the crate whose documentation has the tests, that a line of cargo's names.
fn begun(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ").map(|_| line))
}

/// The seconds that the last line of a binary tells.
fn took(line: &str) -> Option<f64> {
    let time = line.strip_prefix("test result: ")?.rsplit_once("finished in ")?.1;
    time.trim_end().strip_suffix('s')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_binaries_are_named_with_their_times() {
        let line = "     Running tests/run/main.rs (target/debug/deps/run-1f2)";
        assert_eq!(begun(line), Some("tests/run/main.rs (target/debug/deps/run-1f2)"));
        assert_eq!(begun("   Doc-tests gake_core"), Some("Doc-tests gake_core"));
        assert_eq!(begun("running 3 tests"), None);
        let line = "test result: ok. 1 passed; 0 failed; 0 ignored; finished in 3.58s";
        assert_eq!((took(line), took("test a ... ok")), (Some(3.58), None));
        let times: Vec<_> = (0..12).map(|n| (format!("t{n}"), f64::from(n))).collect();
        let text = slowest(&times);
        assert!(text.contains("12 binaries, 66 s in all:\n    11.0 s  t11\n"), "{text}");
        assert!(text.contains(" t2\n") && !text.contains(" t1\n"), "{text}");
    }

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
