//! From the start of the binary to its first request at the server.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::calls;
use super::peers::Tool;
use super::recording::Recording;
use super::report::Report;
use super::stats::{median, range, rotated};

const LIMIT: Duration = Duration::from_secs(20);

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let times = bench.pick(20, 20, 5);
    report.heading(format!(
        "start: from spawn to the first request read by the server, {times} runs"
    ));
    // Those that can send exactly one request.
    let tools: Vec<Tool> =
        bench.tools().filter(|tool| calls::counted(*tool, "", 1, 1).is_some()).collect();
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); tools.len()];
    for round in 0..times {
        for (at, tool) in rotated(&tools, round) {
            match measure(bench, *tool) {
                Ok(millis) => found[at].push(millis),
                Err(error) => {
                    report.line(format!("  run {}: {}: {error:#}", round + 1, tool.name()))
                }
            }
        }
    }
    let rows: Vec<_> = tools.iter().zip(&found).map(|(tool, found)| row(*tool, found)).collect();
    report.table(&["tool", "median ms", "min ms", "max ms"], &rows);
    Ok(())
}

fn row(tool: Tool, found: &[f64]) -> Vec<String> {
    let (least, most) = range(found);
    let cells = [median(found), least, most].map(|millis| format!("{millis:.2}"));
    [vec![tool.name().to_owned()], cells.to_vec()].concat()
}

fn measure(bench: &Bench, tool: Tool) -> Result<f64> {
    let recording = Recording::start(bench.server_core, None, LIMIT * 2)?;
    // The recorder itself must be up, or its own start would be measured.
    recording.await_ready()?;
    let call = calls::counted(tool, &recording.url(), 1, 1).context("it cannot count")?;
    let running = bench.start(&call, LIMIT)?;
    let started = running.started_ns();
    running.wait()?.accept(&call.label, call.good_codes())?;
    let first = recording.finish()?.into_iter().find(|at| *at > started);
    Ok((first.context("nothing arrived")? - started) as f64 / 1e6)
}
