//! `cargo xtask test`: everything the project is checked with, in one order.
//!
//! The cheap checks come first, so a slip of format is reported in a second. One
//! build profile (dev) serves clippy's artefacts apart, the build and the tests.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use gake_testkit::PROGRAMS;

use crate::{command, debian, features, golang, suite, tidy, ui};

/// How a step is done.
enum Action {
    Packages,
    Tidy,
    Deny,
    /// The files that Node.js makes.
    Bundles,
    /// Builds without default features.
    Features,
    Cargo(&'static [&'static str]),
    /// The servers in Go that tests run against.
    Servers,
    /// A profile of .config/nextest.toml, and which tests of it.
    Tests(&'static str, &'static [&'static str]),
}

/// In which kind of run a step has its place.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Always,
    /// Too slow for `--quick`, whose summary says that it was left out.
    Whole,
    /// A part of a later step of the whole run.
    Quick,
}

/// One step.
struct Step {
    name: &'static str,
    when: When,
    action: Action,
}

const STEPS: &[Step] = &[
    Step { name: "packages", when: When::Whole, action: Action::Packages },
    Step { name: "format", when: When::Always, action: Action::Cargo(FORMAT) },
    Step { name: "lints", when: When::Always, action: Action::Cargo(LINTS) },
    Step { name: "tidy", when: When::Always, action: Action::Tidy },
    Step { name: "dependencies", when: When::Always, action: Action::Deny },
    Step { name: "bundles", when: When::Whole, action: Action::Bundles },
    Step { name: "features", when: When::Whole, action: Action::Features },
    Step { name: "build", when: When::Whole, action: Action::Cargo(BUILD) },
    Step { name: "servers", when: When::Whole, action: Action::Servers },
    Step { name: "doc tests", when: When::Whole, action: Action::Cargo(DOC_TESTS) },
    Step { name: "unit tests", when: When::Quick, action: Action::Tests("default", UNIT_TESTS) },
    Step { name: "all tests", when: When::Whole, action: Action::Tests("everything", &[]) },
];

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const LINTS: &[&str] = &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
/// As the tests have it: without their dependencies, features differ, and all is built twice.
const BUILD: &[&str] = &["test", "--workspace", "--no-run"];
const UNIT_TESTS: &[&str] = &["--lib", "--bins"];
/// nextest does not run them.
const DOC_TESTS: &[&str] = &["test", "--doc", "--workspace", "--quiet"];

/// How many seeds the simulation of the fleet plays.
const SEEDS: (&str, &str) = ("GAKE_SIM_SEEDS", "4000");

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    let quick = match args {
        [] => false,
        [flag] if flag == "--quick" => true,
        _ => bail!("usage: cargo xtask test [--quick]"),
    };
    let mut report = Vec::new();
    let mut failed = None;
    for step in STEPS {
        if !quick && step.when == When::Quick {
            continue;
        }
        if quick && step.when == When::Whole {
            report.push(format!("{:12} not run (--quick)", step.name));
        } else if failed.is_some() {
            report.push(format!("{:12} not run", step.name));
        } else {
            println!("\n== {}", step.name);
            let (line, error) = run(step);
            report.push(line);
            failed = error;
        }
    }
    println!("\n== summary\n{}", report.join("\n"));
    failed.map_or(Ok(()), Err)
}

/// Runs a step; returns its line of the summary and its error.
fn run(step: &Step) -> (String, Option<anyhow::Error>) {
    let started = Instant::now();
    let mut told = Vec::new();
    let result = match step.action {
        Action::Packages => {
            debian::ensure("the test run", PROGRAMS).and_then(|()| golang::ensure())
        }
        Action::Tidy => {
            println!("$ cargo xtask tidy");
            tidy::main(&[])
        }
        Action::Deny => {
            println!("$ cargo xtask deny");
            crate::deny(&[])
        }
        Action::Bundles => {
            println!("$ cargo xtask ui --check");
            ui::main(&["--check".to_owned()])
        }
        Action::Features => features::check(),
        Action::Cargo(args) => command::run("cargo", args).map(drop),
        Action::Servers => golang::build_peers(),
        Action::Tests(profile, args) => tests(step, profile, args).and_then(|(lines, ended)| {
            told = lines;
            ended
        }),
    };
    let word = if result.is_ok() { "ok" } else { "FAILED" };
    let mut line = summary_line(step.name, word, started.elapsed());
    for about in told {
        line += &format!("\n             {about}");
    }
    (line, result.err())
}

/// Runs tests; returns the lines about them.
fn tests(step: &Step, profile: &str, args: &[&str]) -> Result<(Vec<String>, Result<()>)> {
    // The unit tests of a quick run have no servers, and do not ask for them.
    let whole = step.when == When::Whole;
    let mut variables = Vec::from_iter(whole.then(golang::peers_variable).transpose()?);
    variables.extend(whole.then(|| (SEEDS.0, SEEDS.1.to_owned())));
    suite::run(profile, args, &variables)
}

fn summary_line(name: &str, word: &str, took: Duration) -> String {
    format!("{name:12} {word:6} {:6.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_run_ends_with_all_tests() {
        assert_eq!(STEPS.last().map(|step| step.name), Some("all tests"));
    }

    #[test]
    fn the_summary_lines_up() {
        assert_eq!(
            summary_line("tidy", "ok", Duration::from_millis(1500)),
            "tidy         ok        1.5 s"
        );
    }
}
