//! The project's own tasks: `cargo xtask help` lists them.
//!
//! A task runs the tools a person would run and prints each command, so nothing
//! here has to be trusted: any line can be repeated by hand.
// A task's output is its purpose: it speaks on stdout and stderr directly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub mod command;
pub mod debian;
pub mod features;
mod golang;
mod suite;
mod test;
mod tidy;
mod tools;
mod ui;
mod vendored;
pub mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--quick]     format, lints, tidy, build, all tests; --quick lists what it leaves out. Tests
                     that fail are run again and named. Missing packages and tools are installed
  nextest ARGS       cargo-nextest: `nextest run` runs the tests that need no other program
  servers            builds the servers in Go that tests run against
  tidy               the walls between the crates and the rules of the house
  ui [--check]       makes the HTML page of ui/ and the TypeScript stripper of typescript/, with
                     Node.js, or checks that those in the tree are up to date
  deny               licences, bans and sources of the dependencies; the vendored code
  docs               the documentation as a site, in target/docs
  dist [--target T] [--binary FILE] [--repository URL] [--check], or --registry
                     archive, wheel, npm, deb, rpm, container image, SBOM (docs/packages.md)
  bench [PART ...]   gake and its peers, side by side (bench/README.md)
  causes [--runs N] [--only PART]
                     findings on real servers against the truth: the matrix of docs/causes.md
  experiments [--runs N] [--only NAME] [--gake PATH]
                     every experiment with --quick, and the unexpected steps
  pictures [--pages]
                     draws docs/cliffs.md from its tables; takes the README's pictures
  k6 --record | --live | --soak MINUTES
                     the scripts of crates/gake/tests/k6 with the real k6; a soak for leaks
  sim [RUNS] [SERVER ...]
                     searches of simulated servers: the table of docs/capacity.md
";

/// Runs the task that the arguments name.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((task, rest)) = args.split_first() else {
        bail!("no task named\n\n{USAGE}");
    };
    match task.as_str() {
        "test" => test::main(rest),
        "nextest" => tools::NEXTEST.run(&strs(rest), &[]),
        "servers" => golang::main(rest),
        "tidy" => tidy::main(rest),
        "ui" => ui::main(rest),
        "deny" => deny(rest),
        "docs" => docs(),
        "bench" => of_package("gake-bench", &[], rest),
        "causes" | "experiments" | "k6" | "pictures" => of_package("gake-bench", &[task], rest),
        "dist" => of_package("gake-packaging", &[], rest),
        "sim" => {
            let study = ["run", "--release", "-p", "gake-judge", "--example", "study", "--"];
            command::run("cargo", &[&study[..], &strs(rest)].concat()).map(drop)
        }
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("no task is called `{other}`\n\n{USAGE}"),
    }
}

/// The documentation as a site.
fn docs() -> Result<()> {
    let out = workspace::target_dir()?.join("docs").display().to_string();
    tools::MDBOOK.run(&["build", "docs", "--dest-dir", &out], &[])?;
    println!("{out}/index.html");
    Ok(())
}

/// The dependencies against deny.toml, and what is vendored against its patch.
fn deny(args: &[String]) -> Result<()> {
    let usual = ["bans", "licenses", "sources"];
    let args = if args.is_empty() { usual.to_vec() } else { strs(args) };
    tools::DENY
        .run(&[&["--locked", "check", "--hide-inclusion-graph"], &args[..]].concat(), &[])?;
    vendored::check()
}

/// A task of a crate that is built when it is asked for: it measures, or makes packages. Optimized, for
/// what is measured is compared with its own loop, and packages are compressed.
fn of_package(package: &str, task: &[&str], args: &[String]) -> Result<()> {
    let run = ["run", "--quiet", "--release", "--package", package, "--"];
    command::run("cargo", &[&run[..], task, &strs(args)].concat()).map(drop)
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}
