//! The workers' start context, and the messages that they send.

use gake_core::clock::Nanos;
use gake_core::record::Interval;
use gake_core::schedule::Slice;

use crate::clock::RunClock;

/// A message from a worker.
#[derive(Debug)]
pub enum Message {
    /// Once a second, or ten times in a short run: what was recorded.
    Interval(Box<Interval>),
    /// Its last message, after every interval.
    Ended(WorkerEnd),
}

/// How a worker's part of the run ended.
#[derive(Debug, Clone)]
pub struct WorkerEnd {
    /// The worker.
    pub worker: usize,
    /// The end of each scenario in which it had a part, with the scenario's number.
    pub scenarios: Vec<(usize, ScenarioEnd)>,
    /// Exchanges that the log could not take in time.
    pub log_lost: u64,
}

/// How a worker's part of a scenario ended.
#[derive(Debug, Clone, Copy)]
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

/// The context in which a worker's factory is made.
#[derive(Debug, Clone)]
pub struct WorkerContext {
    /// The scenario's number in the run.
    pub scenario: usize,
    /// Which of the scenario's workers it is.
    pub slice: Slice,
    /// The run's clock. It stands at 0 until the epoch.
    pub clock: RunClock,
}
