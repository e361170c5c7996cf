//! `cargo xtask test`: everything the project is checked with, in one order.
//!
//! The cheap checks come first, so a slip of format is told in a second. One
//! build profile (dev) serves clippy's artefacts apart, the build and the tests.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::debian::Need;
use crate::{command, debian, deny, features, golang, suite, tidy};

/// A module of Python is no program: the package is there when its file is.
const PYTHON_KUBERNETES: &str = "/usr/lib/python3/dist-packages/kubernetes/__init__.py";

/// What the build needs for the HTML page, and what the end-to-end tests run against or with.
const NEEDS: &[Need] = &[
    Need { program: "node", package: "nodejs" },
    Need { program: "npm", package: "npm" },
    Need { program: "chromium", package: "chromium" },
    Need { program: "nginx", package: "nginx-light" },
    Need { program: "curl", package: "curl" },
    Need { program: "ss", package: "iproute2" },
    Need { program: "go", package: "golang-go" },
    Need { program: "javac", package: "default-jdk-headless" },
    Need { program: "mvn", package: "maven" },
    Need { program: "mariadbd", package: "mariadb-server-core" },
    Need { program: "postgres", package: "postgresql" },
    Need { program: "influxd", package: "influxdb" },
    Need { program: "prometheus", package: "prometheus" },
    Need { program: "cc", package: "gcc" },
    Need { program: "python3", package: "python3-minimal" },
    Need { program: "zstd", package: "zstd" },
    Need { program: "nats-server", package: "nats-server" },
    Need { program: PYTHON_KUBERNETES, package: "python3-kubernetes" },
    Need { program: "wrk", package: "wrk" },
    Need { program: "ab", package: "apache2-utils" },
    Need { program: "h2load", package: "nghttp2-client" },
    Need { program: "nghttpd", package: "nghttp2-server" },
    Need { program: "git", package: "git" },
    Need { program: "strace", package: "strace" },
];

/// How a step is done.
enum Action {
    Packages,
    Tidy,
    Deny,
    /// Builds without default features.
    Features,
    Cargo(&'static [&'static str]),
    /// The servers in Go that tests run against.
    Servers,
    Tests(&'static [&'static str]),
    /// The fleet on a simulated network.
    Simulation,
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
    Step { name: "features", when: When::Whole, action: Action::Features },
    Step { name: "build", when: When::Whole, action: Action::Cargo(BUILD) },
    Step { name: "servers", when: When::Whole, action: Action::Servers },
    Step { name: "unit tests", when: When::Quick, action: Action::Tests(UNIT_TESTS) },
    Step { name: "simulation", when: When::Whole, action: Action::Simulation },
    Step { name: "all tests", when: When::Whole, action: Action::Tests(ALL_TESTS) },
];

const FORMAT: &[&str] = &["fmt", "--all", "--check"];
const LINTS: &[&str] = &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
/// As the tests have it: without their dependencies, features differ, and all is built twice.
const BUILD: &[&str] = &["test", "--workspace", "--no-run"];
const UNIT_TESTS: &[&str] = &["--workspace", "--lib", "--bins"];
/// Unit, property, integration, end-to-end and doc tests.
const ALL_TESTS: &[&str] = &["--workspace"];

/// One test of the fleet; the other crates have none of the name, but the same features.
const SIMULATION: &[&str] = &["test", "--quiet", "--workspace", "--lib", "sim::seeds::whatever"];
/// How many seeds it plays.
const SEEDS: [(&str, &str); 1] = [("GAKE_SIM_SEEDS", "10000")];

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
    let mut alone = Vec::new();
    let result = match step.action {
        Action::Packages => debian::ensure("the test run", NEEDS).and_then(|()| golang::ensure()),
        Action::Tidy => {
            println!("$ cargo xtask tidy");
            tidy::main(&[])
        }
        Action::Deny => {
            println!("$ cargo xtask deny");
            deny::main(&[])
        }
        Action::Features => features::check(),
        Action::Cargo(args) => command::run("cargo", args).map(drop),
        Action::Servers => golang::build_peers(),
        Action::Simulation => command::run_with("cargo", SIMULATION, &SEEDS).map(drop),
        Action::Tests(args) => tests(step, args).map(|tests| alone = tests),
    };
    let word = if result.is_ok() { "ok" } else { "FAILED" };
    let mut line = summary_line(step.name, word, started.elapsed());
    for test in alone {
        line += &format!("\n             passed only alone: {test}");
    }
    (line, result.err())
}

/// Runs tests; returns those that passed only alone.
fn tests(step: &Step, args: &[&str]) -> Result<Vec<String>> {
    // The unit tests of a quick run have no servers, and do not ask for them.
    let servers = (step.when == When::Whole).then(golang::peers_variable).transpose()?;
    suite::run(args, servers)
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
