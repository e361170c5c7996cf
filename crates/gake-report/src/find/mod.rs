//! The result of a capacity search, for people and as JSON.

#[cfg(test)]
mod formula;
pub(crate) mod json;
pub(crate) mod map;
mod models;
pub(crate) mod text;

use std::time::Duration;

use gake_core::record::FailedBodies;
use gake_core::schedule::Process;
use gake_judge::overload::Overload;
use gake_judge::search::{Dimension, SearchResult, SearchStep};
use gake_judge::{Cause, Clause};

pub use json::json;
pub use text::text;

/// A finished capacity search.
#[derive(Debug, Clone)]
pub struct FindReport {
    /// The target: a URL or a targets file.
    pub target: String,
    /// The start, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// The searched dimension.
    pub dimension: Dimension,
    /// The arrival process.
    pub arrivals: Process,
    /// The time budget.
    pub budget: Duration,
    /// The requested precision, as a share of the capacity.
    pub precision: f64,
    /// The objectives, in the order of each step's ratios.
    pub clauses: Vec<Clause>,
    /// The result.
    pub result: SearchResult,
    /// Every step, in order.
    pub steps: Vec<SearchStep>,
    /// The behaviour beyond the capacity, when it was mapped.
    pub map: Option<Overload>,
    /// Causes found in the steps in which the target was at its limit.
    pub causes: Vec<Cause>,
    /// The number of those steps.
    pub overloaded: u64,
    /// Bodies of failed responses of all steps, when they were recorded.
    pub bodies: FailedBodies,
}

impl FindReport {
    pub(crate) fn objectives(&self) -> Vec<String> {
        self.clauses.iter().map(|clause| clause.text.clone()).collect()
    }
}
