//! The project's own tasks: `cargo xtask test | servers | tidy | deny | bench | causes |
//! experiments | pictures | dist | k6 | sim`.
//!
//! A task runs the tools a person would run and prints each command, so nothing
//! here has to be trusted: any line can be repeated by hand.
// A task's output is its purpose: it speaks on stdout and stderr directly.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod causes;
mod command;
mod debian;
mod deny;
mod dist;
mod experiments;
mod features;
mod golang;
mod k6;
mod pictures;
mod suite;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask TASK

  test [--quick]     format, lints, tidy, build, all tests (--quick: says what it leaves out); what
                     fails is run again alone, and named in the summary; packages that are missing
                     are installed or named, and Go is fetched where it is too old
  servers            builds the servers in Go that tests run against, a step of `test`; fetches Go
                     where it is too old
  tidy               the walls between the crates and the rules of the house
  deny               licences, bans and sources of the dependencies, against deny.toml
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

fn main() -> ExitCode {
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
        "servers" => golang::main(rest),
        "tidy" => tidy::main(rest),
        "deny" => deny::main(rest),
        "bench" => bench::main(rest),
        "causes" => causes::main(rest),
        "experiments" => experiments::main(rest),
        "pictures" => pictures::main(rest),
        "dist" => dist::main(rest),
        "k6" => k6::main(rest),
        "sim" => {
            let study = ["run", "--release", "-p", "gake-judge", "--example", "study", "--"];
            let rest = rest.iter().map(String::as_str);
            command::run("cargo", &study.into_iter().chain(rest).collect::<Vec<_>>()).map(drop)
        }
        // Started by the bench alone: processes of their own, so that they can be pinned.
        "recorder" => bench::recorder::main(rest),
        "metronome" => bench::metronome::main(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("no task is called `{other}`\n\n{USAGE}"),
    }
}
