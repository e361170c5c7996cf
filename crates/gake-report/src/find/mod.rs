//! The answer of a search, for people and as JSON.

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

/// A search that is over.
#[derive(Debug, Clone)]
pub struct FindReport {
    /// What was loaded: a URL or a targets file.
    pub target: String,
    /// When it began, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// What was searched.
    pub dimension: Dimension,
    /// How arrivals were spread.
    pub arrivals: Process,
    /// The time it might take.
    pub budget: Duration,
    /// The precision asked for, as a part of the capacity.
    pub precision: f64,
    /// The objectives, in the order of each step's ratios.
    pub clauses: Vec<Clause>,
    /// The answer.
    pub answer: SearchResult,
    /// The evidence.
    pub steps: Vec<SearchStep>,
    /// What comes after the capacity, when it was mapped.
    pub map: Option<Overload>,
    /// What limited the steps in which the target was at its limit.
    pub causes: Vec<Cause>,
    /// How many steps those were.
    pub overloaded: u64,
    /// Bodies of failed answers of all steps, when they were asked for.
    pub bodies: FailedBodies,
}

impl FindReport {
    /// The objectives as they are read.
    pub(crate) fn objectives(&self) -> Vec<String> {
        self.clauses.iter().map(|clause| clause.text.clone()).collect()
    }
}
