//! How p99 and capacity of a target changed from run to run.

use std::io::Write;
use std::path::Path;

use gake_files::Access;
use gake_report::html::{TrendRun, trend};
use gake_text::units::{duration, rate};

use gake_session::Console;
use gake_session::history::HistoryEntry;
use gake_session::{Exit, Failure};

/// Characters of the longest bar.
const BAR: f64 = 40.0;

/// Prints the trend, and writes its page.
pub(super) fn show(
    target: &str,
    entries: &[HistoryEntry],
    html: Option<&Path>,
    console: &Console,
) -> Result<Exit, Failure> {
    if let Some(path) = html {
        let page = trend(target, entries.iter().map(point).collect());
        gake_files::create(path, Access::Mask)
            .and_then(|mut file| file.write_all(page.as_bytes()))
            .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    }
    console.result(&text(target, entries))?;
    Ok(Exit::Done)
}

fn point(entry: &HistoryEntry) -> TrendRun {
    TrendRun {
        id: entry.id,
        started: entry.when(),
        commit: entry.revision.short(),
        verdict: entry.statements(),
        p50_ns: entry.times.map(|times| times[0]),
        p99_ns: entry.times.map(|times| times[1]),
        goodput: entry.file.is_some().then_some(entry.goodput),
        errors: entry.file.is_some().then(|| entry.errors()),
        capacity: entry.capacity,
    }
}

fn text(target: &str, entries: &[HistoryEntry]) -> String {
    let mut text = format!("{target}\n");
    let p99 = |entry: &HistoryEntry| entry.times.map(|times| times[1] as f64);
    let capacity = |entry: &HistoryEntry| entry.capacity.map(|found| found[0]);
    text.push_str(&bars("p99", entries, &p99, &duration));
    text.push_str(&bars("capacity", entries, &capacity, &rate));
    if !text.contains('█') {
        text.push_str("the history has neither p99 nor capacity of this target\n");
    }
    text
}

/// A bar for each entry that has a value; nothing when none has.
fn bars(
    title: &str,
    entries: &[HistoryEntry],
    of: &dyn Fn(&HistoryEntry) -> Option<f64>,
    read: &dyn Fn(f64) -> String,
) -> String {
    let values: Vec<(&HistoryEntry, f64)> =
        entries.iter().filter_map(|entry| Some((entry, of(entry)?))).collect();
    let most = values.iter().map(|value| value.1).fold(0.0, f64::max);
    if values.is_empty() || most <= 0.0 {
        return String::new();
    }
    let mut text = format!("\n{title}\n");
    for (entry, value) in values {
        let bar = "█".repeat((value / most * BAR).round().max(1.0) as usize);
        let commit = entry.revision.short();
        let (id, when, value) = (entry.id, entry.when(), read(value));
        text.push_str(&format!("{id:>5}  {when}  {commit:<9}  {value:>9}  {bar}\n"));
    }
    text
}
