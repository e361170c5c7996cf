//! Large inputs: a file of a million targets, and a million rows of `--data-file`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use super::calls::Call;
use super::memory::peak;
use super::peers::Tool;
use super::recording::Recording;
use super::report::Report;

const LIMIT: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The part.
pub fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let lines: u32 = bench.pick(1_000_000, 1_000_000, 20_000);
    report.heading(format!("inputs: {lines} lines, until the first request is read by the server"));
    let recording = Recording::start(bench.server_core, None, LIMIT * 8)?;
    recording.await_ready()?;
    let url = recording.url();
    let targets = write(bench, "targets.txt", lines, |text, at| {
        let _ = write!(text, "GET {url}items/{at}?kind=book&page={}\nX-Item: {at}\n\n", at % 977);
    })?;
    let rows = write(bench, "rows.csv", lines, |text, at| {
        let _ = if at == 0 {
            writeln!(text, "id,name")
        } else {
            writeln!(text, "{at},customer number {at}")
        };
    })?;
    let (targets_file, rows_file) = (targets.display(), rows.display());
    let calls = [
        ("gake run FILE", Tool::Gake, &targets, format!("run {targets_file} -n 1 --threads 1")),
        (
            "vegeta -targets FILE",
            Tool::Vegeta,
            &targets,
            format!("attack -targets {targets_file} -rate 1 -duration 1s -output /dev/null"),
        ),
        (
            "gake run --data-file FILE",
            Tool::Gake,
            &rows,
            format!("run {url}${{id}}?name=${{name}} --data-file {rows_file} -n 1 --threads 1"),
        ),
    ];
    let mut lines = Vec::new();
    for (label, tool, file, line) in calls {
        if bench.peers.path(tool).is_none() {
            continue;
        }
        let args = line.split_whitespace().map(str::to_owned).collect();
        let call = Call { label: label.to_owned(), tool, args, input: String::new() };
        match measure(bench, &call) {
            Ok((started, peak_mb)) => lines.push((label, size_mb(file), started, peak_mb)),
            Err(error) => report.line(format!("  {label}: {error:#}")),
        }
    }
    // The first request of each call is the first arrival after its start.
    let arrivals = recording.finish()?;
    let rows = lines.into_iter().filter_map(|(label, file_mb, started, peak_mb)| {
        let first = arrivals.iter().find(|at| **at > started)?;
        Some(vec![
            label.to_owned(),
            format!("{file_mb:.0}"),
            format!("{:.2}", (first - started) as f64 / 1e9),
            format!("{peak_mb:.0}"),
            format!("{:.1}", peak_mb / file_mb),
        ])
    });
    let head = ["call", "file MB", "seconds", "peak MB", "× the file"];
    report.table(&head, &rows.collect::<Vec<_>>());
    Ok(())
}

/// When it was started, and its peak in MB.
fn measure(bench: &Bench, call: &Call) -> Result<(u64, f64)> {
    let running = bench.start(call, LIMIT)?;
    let started = running.started_ns();
    let mut peak_kb = None;
    let ended = running.wait_watching(LOOK_EVERY, |pid| peak_kb = peak(pid).or(peak_kb))?;
    ended.accept(&call.label, call.good_codes())?;
    let peak_kb = peak_kb.context("it ended before its memory could be read")?;
    Ok((started, peak_kb as f64 / 1024.0))
}

fn write(
    bench: &Bench,
    name: &str,
    lines: u32,
    line: impl Fn(&mut String, u32),
) -> Result<PathBuf> {
    let mut text = String::new();
    (0..lines).for_each(|at| line(&mut text, at));
    let path = bench.dir.join(name);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn size_mb(file: &Path) -> f64 {
    fs::metadata(file).map_or(0.0, |file| file.len() as f64 / 1e6)
}
