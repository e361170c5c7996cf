//! The context in which workers start, and their messages.

use gake_core::record::{Interval, WorkerEnd};
use gake_core::schedule::Slice;

use crate::clock::RunClock;

/// A message from a worker.
#[derive(Debug)]
pub enum Message {
    /// Figures, once a second, or ten times in a short run.
    Interval(Box<Interval>),
    /// The last message, after all intervals.
    Ended(WorkerEnd),
}

/// The context for making a worker's factory.
#[derive(Debug, Clone)]
pub struct WorkerContext {
    /// The scenario's number in the run.
    pub scenario: usize,
    /// The worker's slice of the scenario.
    pub slice: Slice,
    /// The run's clock. Reads 0 until the epoch.
    pub clock: RunClock,
}
