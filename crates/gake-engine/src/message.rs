//! The workers' start context, and the messages that they send.

use gake_core::record::{Interval, WorkerEnd};
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
