//! The trend page: figures of a target from run to run.

use serde::Serialize;

use super::{SCHEMA, bounded, cut};

const RUNS_MAX: usize = 2_000;

/// One run of a trend.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TrendRun {
    /// Its number in the history.
    pub id: i64,
    /// The start of the run.
    pub started: String,
    /// The short commit; empty if unknown.
    pub commit: String,
    /// Its verdict in a word.
    pub verdict: String,
    /// The median response time.
    pub p50_ns: Option<u64>,
    /// The 99th percentile of the response time.
    pub p99_ns: Option<u64>,
    /// Ok requests per second.
    pub goodput: Option<f64>,
    /// The share of requests that failed.
    pub errors: Option<f64>,
    /// For a search, the capacity and its 95 % interval.
    pub capacity: Option<[f64; 3]>,
}

#[derive(Serialize)]
struct TrendJson<'a> {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    target: String,
    runs: &'a [TrendRun],
}

/// The page of the runs of a target, the newest last.
#[must_use]
pub fn trend(target: &str, runs: Vec<TrendRun>) -> String {
    bounded(RUNS_MAX, |most| TrendJson {
        schema: SCHEMA,
        kind: "trend",
        gake: env!("CARGO_PKG_VERSION"),
        target: cut(target),
        runs: &runs[runs.len().saturating_sub(most)..],
    })
}
