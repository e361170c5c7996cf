//! The page of a trend: figures of a target from run to run.

use serde::Serialize;

use super::{NoUi, SCHEMA, bounded, cut};

/// Runs that are shown.
const RUNS_MAX: usize = 2_000;

/// One run of a trend.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrendRun {
    /// Its number in the history.
    pub id: i64,
    /// When it began.
    pub started: String,
    /// The commit, short; empty when it is not known.
    pub commit: String,
    /// Its verdict in a word.
    pub verdict: String,
    /// The median of the response time.
    pub p50_ns: Option<u64>,
    /// Its 99th percentile.
    pub p99_ns: Option<u64>,
    /// Requests a second that ended ok.
    pub goodput: Option<f64>,
    /// The share of requests that did not.
    pub errors: Option<f64>,
    /// Of a search: the capacity and its 95 % interval.
    pub capacity: Option<[f64; 3]>,
}

#[derive(Serialize)]
struct TrendForm<'a> {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    target: String,
    runs: &'a [TrendRun],
}

/// The page of the runs of a target, the newest last.
///
/// # Errors
/// When this gake was built without the page.
pub fn trend(target: &str, runs: Vec<TrendRun>) -> Result<String, NoUi> {
    bounded(RUNS_MAX, |most| TrendForm {
        schema: SCHEMA,
        kind: "trend",
        gake: env!("CARGO_PKG_VERSION"),
        target: cut(target),
        runs: &runs[runs.len().saturating_sub(most)..],
    })
}
