//! The project's own tasks: `cargo xtask test | nextest | servers | tidy | deny | bench | causes |
//! experiments | pictures | dist | k6 | sim`.
//!
//! A task runs the tools a person would run and prints each command, so nothing
//! here has to be trusted: any line can be repeated by hand.
// A task's output is its purpose: it speaks on stdout and stderr directly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub mod command;
pub mod debian;
mod dist;
mod features;
mod golang;
mod suite;
mod test;
mod tidy;
mod tools;
mod vendored;
pub mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--quick]     format, lints, tidy, build, all tests (--quick: says what it leaves out); what
                     fails is run again, and named in the summary; packages that are missing are
                     installed or named, Go and nextest are fetched where they are missing or old
  nextest ARGS       cargo-nextest, fetched where it is missing: `nextest run` runs the tests that
                     need no other program
  servers            builds the servers in Go that tests run against, a step of `test`; fetches Go
                     where it is too old
  tidy               the walls between the crates and the rules of the house
  deny               licences, bans and sources of the dependencies, against deny.toml, by
                     cargo-deny, fetched where it is missing; what is vendored against its patch
  bench [PART ...]   gake and its peers, measured side by side: cpu, arrival, stall, memory and
                     start; over HTTP/2 beside h2load: http2; the shadow proxy beside nginx:
                     shadow (about 3 minutes); scripts beside the real k6: k6; what sinks
                     cost the load: sinks
      --rounds N     rounds of each comparison (5)
      --only PART    the same as PART; may be repeated
      --quick        short runs, to see that the bench works; its figures are not kept
      --with-oha     build oha too (cargo install, some minutes)
      --gake PATH    measure this binary and do not build one
      --out FILE     write the report here (a whole run writes bench/YYYY-MM-DD.txt,
                     http2, shadow, k6 and sinks alone YYYY-MM-DD-http2.txt and so on)
  causes             what is said of each limit on real servers, beside the truth: the matrix of
                     docs/causes.md (about 2 minutes a run)
      --runs N       runs of each cell (3)
      --only PART    the cells with this in their names
  experiments        every experiment with --quick: its time, and the steps that were not as expected
      --runs N       runs of the whole set (1)
      --only NAME    this experiment alone
      --gake PATH    this binary, and do not build one
  pictures           draws the pictures of docs/cliffs.md from its tables
  dist               target/dist/gake-VERSION-TARGET.tar.gz: the binary, manual pages, completions,
                     docs, and a checksum beside it; the same sources give the same bytes
      --target T     for this target (x86_64-unknown-linux-musl, which is static)
      --binary FILE  pack this binary and do not build one
  k6 --record        runs the scripts of crates/gake/tests/k6 by the real k6 and writes down what
                     it makes of them
     --live          compares gake with the real k6 instead of with what is written down
     --soak MINUTES  200 users with exceptions, time-outs and cancelled iterations; fails when
                     memory or open files keep growing (--gake PATH: this binary)
  sim [RUNS] [SERVER ...]
                     searches of virtual servers (200 of each): the table of docs/capacity.md
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
        "deny" => deny(rest),
        "bench" => bench(&[], rest),
        "causes" | "experiments" | "k6" | "pictures" => bench(&[task], rest),
        "dist" => dist::main(rest),
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

/// The dependencies against deny.toml, and what is vendored against its patch.
fn deny(args: &[String]) -> Result<()> {
    let usual = ["bans", "licenses", "sources"];
    let args = if args.is_empty() { usual.to_vec() } else { strs(args) };
    tools::DENY
        .run(&[&["--locked", "check", "--hide-inclusion-graph"], &args[..]].concat(), &[])?;
    vendored::check()
}

/// The crate that measures, which is built when it is asked for.
fn bench(task: &[&str], args: &[String]) -> Result<()> {
    let run = ["run", "--quiet", "--package", "gake-bench", "--"];
    command::run("cargo", &[&run[..], task, &strs(args)].concat()).map(drop)
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}
