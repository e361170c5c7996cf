//! The end of a worker's slice of a run.

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// The end of a worker's slice of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// The worker's number.
    pub worker: usize,
    /// Scenario number and end, for each scenario of the worker.
    pub scenarios: Vec<(usize, ScenarioEnd)>,
    /// Exchanges lost because the log was too slow.
    pub log_lost: u64,
}

/// The end of a worker's slice of a scenario.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioEnd {
    /// When arrivals ended.
    pub arrivals_end: Nanos,
    /// When the last arrival was fired.
    pub last_fired: Nanos,
    /// When the last arrival completed; interrupted ones do not count.
    pub last_ended: Nanos,
    /// When the last figure was recorded.
    pub done: Nanos,
    /// Whether the source of requests was exhausted.
    pub exhausted: bool,
}

impl ScenarioEnd {
    /// A scenario ends with the last of its workers.
    pub fn merge(&mut self, other: &Self) {
        self.arrivals_end = self.arrivals_end.max(other.arrivals_end);
        self.last_fired = self.last_fired.max(other.last_fired);
        self.last_ended = self.last_ended.max(other.last_ended);
        self.done = self.done.max(other.done);
        self.exhausted |= other.exhausted;
    }

    pub(crate) fn instants(&self) -> [Nanos; 4] {
        [self.arrivals_end, self.last_fired, self.last_ended, self.done]
    }
}
