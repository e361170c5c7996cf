//! The truth under a stall: what is reported when the server stops for a tenth of the run.
//!
//! Arrivals continue meanwhile, so one in ten waits, evenly from the whole
//! stall down to nothing: p99 is 90 % of the stall and p95 half of it. A tool
//! that waits for responses before it sends reports neither.

use std::time::Duration;

use anyhow::Result;

use super::calls::{self, Call, Reported};
use super::peers::Tool;
use super::recorder::Stall;
use super::recording::Recording;
use super::report::Report;
use super::stats::{median, rotated};
use super::{Bench, process};

const RATE: u64 = 1_000;
/// The runs are long, and the result does not depend on the machine's mood.
const ROUNDS_MAX: usize = 3;

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let seconds = bench.pick(10, 5, 2);
    let length = Duration::from_secs(seconds) / 10;
    let stall = Stall { after: length * 4, length };
    let rounds = bench.options.rounds.min(ROUNDS_MAX);
    let truth =
        Reported { p95_ms: length.as_secs_f64() * 500.0, p99_ms: length.as_secs_f64() * 900.0 };
    report.heading(format!(
        "stall: the server stops for {} ms in {seconds} s at {RATE}/s; rounds: {rounds}",
        length.as_millis()
    ));
    let tools: Vec<_> = bench.tools().collect();
    let calls = |url: &str| -> Vec<Call> {
        tools.iter().flat_map(|tool| calls::stalled(*tool, url, RATE, seconds)).collect()
    };
    let labels: Vec<String> = calls("").into_iter().map(|call| call.label).collect();
    let mut found: Vec<Vec<Reported>> = vec![Vec::new(); labels.len()];
    for round in 0..rounds {
        for (at, label) in rotated(&labels, round) {
            match measure(bench, |url| calls(url).swap_remove(at), stall, seconds) {
                Ok(reported) => found[at].push(reported),
                Err(error) => report.line(format!("  round {}: {label}: {error:#}", round + 1)),
            }
        }
    }
    let mut rows = vec![row("the truth", &[truth], truth)];
    rows.extend(labels.iter().zip(&found).map(|(label, found)| row(label, found, truth)));
    report.table(&["reported by", "p95 ms", "off", "p99 ms", "off"], &rows);
    Ok(())
}

fn row(label: &str, found: &[Reported], truth: Reported) -> Vec<String> {
    let p95 = median(&found.iter().map(|reported| reported.p95_ms).collect::<Vec<_>>());
    let p99 = median(&found.iter().map(|reported| reported.p99_ms).collect::<Vec<_>>());
    let off = |value: f64, truth: f64| format!("{:+.1} %", (value / truth - 1.0) * 100.0);
    vec![
        label.to_owned(),
        format!("{p95:.1}"),
        off(p95, truth.p95_ms),
        format!("{p99:.1}"),
        off(p99, truth.p99_ms),
    ]
}

fn measure(
    bench: &Bench,
    call: impl Fn(&str) -> Call,
    stall: Stall,
    seconds: u64,
) -> Result<Reported> {
    let limit = Duration::from_secs(seconds + 30);
    let recording = Recording::start(bench.server_core, Some(stall), limit * 2)?;
    let call = call(&recording.url());
    let ended = bench.run(&call, limit)?;
    recording.finish()?;
    let stdout = match call.tool {
        Tool::Vegeta => vegeta_report(bench, &ended.stdout)?,
        _ => ended.stdout,
    };
    calls::reported(call.tool, &stdout)
}

/// Vegeta's attack writes results; its report reads them.
fn vegeta_report(bench: &Bench, results: &[u8]) -> Result<Vec<u8>> {
    let call = Call {
        label: "vegeta report".to_owned(),
        tool: Tool::Vegeta,
        args: ["report", "-type", "json"].map(str::to_owned).to_vec(),
        input: String::new(),
    };
    let program = bench.peers.path(Tool::Vegeta).unwrap_or_else(|| "vegeta".as_ref());
    let stdin = Some(process::memory_file(results)?.into());
    let limit = Duration::from_secs(30);
    let core = bench.client_core;
    let launch = process::Launch { program, args: &call.args, stdin, core: Some(core), limit };
    Ok(launch.run()?.accept(&call.label, call.good_codes())?.stdout)
}
