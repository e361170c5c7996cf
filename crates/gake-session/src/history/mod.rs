//! The history of a project: summaries of its runs in `.gake/history.db`, and their run files.

mod revision;
mod store;

use std::path::{Path, PathBuf};

use gake_judge::search::CapacityResult;
use gake_judge::stats::RunRates;
use gake_judge::{Summary, Validity};
use gake_report::find::FindReport;

use crate::exit::Failure;
pub use revision::Revision;
pub use store::HistoryStore;

/// The folder of a project's history.
const FOLDER: &str = ".gake";

/// Prefix of a redacted secret, before its hash in hexadecimal digits.
const REDACTED: &str = "redacted-";

/// Digits of the hash.
const HASH_LENGTH: usize = 16;

/// The folder of run files within it.
const RUNS: &str = "runs";

/// A saved run or search.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryEntry {
    /// Its number; 0 before it is saved.
    pub id: i64,
    /// The start, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The target.
    pub target: String,
    /// The plan in one line.
    pub plan: String,
    /// The Git commit and branch.
    pub revision: Revision,
    /// The measurement in a word, whether the target was overloaded, or the kind of result of a
    /// search.
    pub verdict: String,
    /// Objectives that were missed.
    pub missed: u64,
    /// Requests due: sent or dropped.
    pub due: u64,
    /// Requests that met the expectation.
    pub ok: u64,
    /// Successful requests a second.
    pub goodput: f64,
    /// Response times in nanoseconds: p50 and p99; `None` without a sample.
    pub times: Option<[u64; 2]>,
    /// The capacity that a search found, and its 95 % interval: low, high.
    pub capacity: Option<[f64; 3]>,
    /// The name of the run file in the history's folder.
    pub file: Option<String>,
    /// The printed result of a search, which has no run file.
    pub text: Option<String>,
}

impl HistoryEntry {
    /// The entry of a run with the run file `file`.
    pub fn of_run(summary: &Summary, file: String) -> Self {
        let run = &summary.run;
        let counts = &run.tally.counts;
        let verdict = match summary.verdict.validity {
            _ if summary.verdict.nothing_ok.is_some() => "nothing ok",
            Validity::Valid => "valid",
            Validity::Suspect => "suspect",
            Validity::Invalid => "invalid",
        };
        let response = run.tally.latency.response();
        let missed = summary.verdict.objectives.iter().filter(|objective| !objective.met);
        let times = [0.5, 0.99].map(|quantile| response.quantile(quantile));
        Self {
            id: 0,
            started_unix_ns: run.started_unix_ns,
            target: without_hashes(&run.plan.target),
            plan: run.plan.to_string(),
            revision: Revision::current(),
            verdict: match summary.verdict.saturation {
                Some(_) => format!("{verdict}, overloaded"),
                None => verdict.to_owned(),
            },
            missed: missed.count() as u64,
            due: counts.due(),
            ok: counts.ok,
            goodput: RunRates::of(run).goodput,
            times: (!response.is_empty()).then_some(times),
            capacity: None,
            file: Some(file),
            text: None,
        }
    }

    /// The verdict, with a missed objective.
    #[must_use]
    pub fn statements(&self) -> String {
        format!("{}{}", self.verdict, if self.missed > 0 { ", missed" } else { "" })
    }

    /// The entry of a search that printed `text`.
    pub fn of_search(report: &FindReport, text: String) -> Self {
        let (verdict, capacity) = match &report.result.found {
            CapacityResult::Capacity(estimate) => {
                ("capacity", Some([estimate.capacity, estimate.low, estimate.high]))
            }
            CapacityResult::AtLeast { .. } => ("at least", None),
            CapacityResult::Infeasible { .. } => ("infeasible", None),
            CapacityResult::Unknown => ("unknown", None),
        };
        Self {
            id: 0,
            started_unix_ns: report.started_unix_ns,
            target: without_hashes(&report.target),
            plan: format!("find {}", report.target),
            revision: Revision::current(),
            verdict: verdict.to_owned(),
            missed: 0,
            due: 0,
            ok: 0,
            goodput: 0.0,
            times: None,
            capacity,
            file: None,
            text: Some(text),
        }
    }

    /// Share of due requests that did not succeed, or 0 when none was due.
    pub fn errors(&self) -> f64 {
        if self.due == 0 {
            0.0
        } else {
            (self.due - self.ok.min(self.due)) as f64 / self.due as f64
        }
    }

    /// The start to the minute, in UTC.
    pub fn when(&self) -> String {
        let at = jiff::Timestamp::from_nanosecond(i128::from(self.started_unix_ns));
        at.map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
    }
}

/// Removes the hashes of secrets, which differ from process to process.
fn without_hashes(target: &str) -> String {
    let mut parts = target.split(REDACTED);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_hash = |hash: &&str| hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let hash = part.get(..HASH_LENGTH).filter(is_hash);
        text.push_str(if hash.is_some() { "redacted" } else { REDACTED });
        text.push_str(&part[hash.map_or(0, str::len)..]);
    }
    text
}

/// The folder of the history: in the nearest parent that has one or is the root of a Git
/// repository, else in the current folder.
///
/// # Errors
/// When there is no current folder.
pub fn folder() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::could_not(format!("the current folder: {error}")))?;
    let is_root = |path: &&Path| path.join(FOLDER).is_dir() || path.join(".git").exists();
    let root = here.ancestors().find(is_root).unwrap_or(&here);
    Ok(root.join(FOLDER))
}

/// The path of a run file of the history.
pub fn run_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(RUNS).join(name)
}

/// Name and path for the run file of a run that starts now; creates its folder.
///
/// # Errors
/// When the folder cannot be created.
pub fn new_run_file(folder: &Path) -> Result<(String, PathBuf), Failure> {
    let runs = folder.join(RUNS);
    gake_files::create_folder(&runs)
        .map_err(|error| Failure::could_not(format!("{}: {error}", runs.display())))?;
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S");
    let name = format!("{now}-{}.hlog", std::process::id());
    Ok((name.clone(), runs.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_secret_is_the_same_target() {
        for (target, expected) in [
            ("http://h/?key=redacted-0123456789abcdef&a=1", "http://h/?key=redacted&a=1"),
            ("http://h/redacted-news", "http://h/redacted-news"),
            ("http://h/redacted-é", "http://h/redacted-é"),
            ("http://h/", "http://h/"),
        ] {
            assert_eq!(without_hashes(target), expected);
        }
    }
}
