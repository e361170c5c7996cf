//! How a worker's part of a run ended.

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// How a worker's part of the run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// The worker.
    pub worker: usize,
    /// The end of each scenario in which it had a part, with the scenario's number.
    pub scenarios: Vec<(usize, ScenarioEnd)>,
    /// Exchanges that the log could not take in time.
    pub log_lost: u64,
}

/// How a worker's part of a scenario ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioEnd {
    /// When arrivals ended.
    pub arrivals_end: Nanos,
    /// When the last one was fired.
    pub last_fired: Nanos,
    /// When the last one completed; those cut short do not count.
    pub last_ended: Nanos,
    /// When its last figure was recorded.
    pub done: Nanos,
    /// Whether its source had no more to send.
    pub exhausted: bool,
}

impl ScenarioEnd {
    /// Adds the end of another worker's part: a scenario ends with the last of its workers.
    pub fn merge(&mut self, other: &Self) {
        self.arrivals_end = self.arrivals_end.max(other.arrivals_end);
        self.last_fired = self.last_fired.max(other.last_fired);
        self.last_ended = self.last_ended.max(other.last_ended);
        self.done = self.done.max(other.done);
        self.exhausted |= other.exhausted;
    }

    /// Its instants.
    pub(crate) fn instants(&self) -> [Nanos; 4] {
        [self.arrivals_end, self.last_fired, self.last_ended, self.done]
    }
}
