//! Client CPU per unary call of gRPC, against ghz: 50 at once over 5 connections to the lab.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::process::{Launch, Running};
use super::report::Report;
use super::stats::{median, range, rotated};
use super::{Bench, http2, peers};
use xtask::workspace;

/// The module of ghz.
const GHZ: &str = "github.com/bojand/ghz/cmd/ghz@latest";

/// The method that is called.
const METHOD: &str = "gake.lab.v1.Echo/Say";

/// Its definition.
const PROTO: &str = r#"syntax = "proto3";
package gake.lab.v1;
message EchoRequest { string text = 1; }
message EchoReply { string text = 1; }
service Echo { rpc Say(EchoRequest) returns (EchoReply); }
"#;

const MESSAGE: &str = r#"{"text":"hello"}"#;

/// A tool and its arguments.
#[derive(Clone)]
struct Caller {
    name: &'static str,
    program: PathBuf,
    args: Vec<String>,
}

/// CPU time of a call in microseconds: in all, and of the tool's own code.
#[derive(Clone, Copy)]
struct Sample {
    cpu_us: f64,
    user_us: f64,
}

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    report.heading("grpc: unary calls, 50 at once over 5 connections, CPU per call against ghz");
    let ghz = peers::go_tool("ghz", GHZ, &workspace::target_dir()?.join("bench-tools"))?;
    let gake = bench.peers.path(peers::Tool::Gake).context("gake is not available")?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let _lab = lab(gake, port, bench.server_core)?;
    let calls = bench.pick(200_000, 50_000, 20_000);
    let callers = callers(gake, &ghz, &bench.dir, port, calls)?;
    let mut rounds = Vec::new();
    for round in 0..bench.options.rounds {
        let mut samples = [None; 2];
        for (at, caller) in rotated(&callers, round) {
            match measure(caller, bench.client_core, calls) {
                Ok(sample) => samples[at] = Some(sample),
                Err(error) => report.line(format!("  round {}: {error:#}", round + 1)),
            }
        }
        rounds.push(samples);
    }
    let head = ["tool", "µs/call", "of it user", "CPU × ghz", "(min–max)"];
    let rows: Vec<_> = (0..callers.len()).map(|at| row(callers[at].name, &rounds, at)).collect();
    report.table(&head, &rows);
    Ok(())
}

fn lab(gake: &Path, port: u16, core: usize) -> Result<Running> {
    let args = format!("serve --quiet --cores 1 --listen 127.0.0.1:{port}");
    let args: Vec<_> = args.split(' ').map(str::to_owned).collect();
    let limit = Duration::from_secs(24 * 3600);
    let running =
        Launch { program: gake, args: &args, stdin: None, core: Some(core), limit }.start()?;
    http2::until_listening(port)?;
    Ok(running)
}

fn callers(gake: &Path, ghz: &Path, dir: &Path, port: u16, calls: u64) -> Result<[Caller; 2]> {
    let proto = dir.join("echo.proto");
    fs::write(&proto, PROTO)?;
    let proto = proto.display();
    let address = format!("127.0.0.1:{port}");
    let ours = format!(
        "run grpc://{address}/{METHOD} --proto {proto} --data {MESSAGE} -n {calls} -c 5 \
         --streams 10 --threads 1 --format json"
    );
    let theirs = format!(
        "--insecure --proto {proto} --call {METHOD} -d {MESSAGE} -n {calls} -c 50 --connections 5 \
         --cpus 1 -O json {address}"
    );
    let caller = |name, program: &Path, line: &str| Caller {
        name,
        program: program.to_owned(),
        args: line.split_whitespace().map(str::to_owned).collect(),
    };
    Ok([caller("gake", gake, &ours), caller("ghz", ghz, &theirs)])
}

fn measure(caller: &Caller, core: usize, calls: u64) -> Result<Sample> {
    let Caller { name, program, args } = caller;
    let limit = Duration::from_secs(300);
    let launch = Launch { program, args, stdin: None, core: Some(core), limit };
    let ended = launch.start()?.wait()?.accept(name, &[0, 3])?;
    let said: Value = serde_json::from_slice(&ended.stdout)?;
    let done = match *name {
        "gake" => said["requests"]["ok"].as_u64(),
        _ => said["statusCodeDistribution"]["OK"].as_u64(),
    };
    if done != Some(calls) {
        bail!("{name}: {done:?} of {calls} calls succeeded");
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / calls as f64;
    Ok(Sample { cpu_us: each(ended.cpu()), user_us: each(ended.user) })
}

fn row(name: &str, rounds: &[[Option<Sample>; 2]], at: usize) -> Vec<String> {
    let of = |value: fn(&Sample) -> f64| -> f64 {
        let values: Vec<_> =
            rounds.iter().filter_map(|round| round[at].as_ref().map(value)).collect();
        median(&values)
    };
    let pairs = rounds.iter().filter_map(|round| Some((round[at]?, round[1]?)));
    let ratios: Vec<_> = pairs.map(|(own, ghz)| own.cpu_us / ghz.cpu_us).collect();
    let (least, most) = range(&ratios);
    vec![
        name.to_owned(),
        format!("{:.2}", of(|sample| sample.cpu_us)),
        format!("{:.2}", of(|sample| sample.user_us)),
        format!("{:.2}", median(&ratios)),
        format!("({least:.2}–{most:.2})"),
    ]
}
