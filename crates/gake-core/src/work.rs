//! The contract between the loop and what it fires.
//!
//! The engine never names HTTP and the wire never names schedules: a [`Work`] joins them, with
//! static dispatch.

use crate::clock::Nanos;
use crate::record::{Exchange, Tally};

/// One scheduled unit: its number and the instant it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its place in the whole run's schedule, from 0, over all workers.
    pub number: u64,
    /// When it is due.
    pub due: Nanos,
}

/// What an arrival fires: an HTTP request, a script iteration. Belongs to one lane of a worker,
/// which fires one arrival at a time.
pub trait Work {
    /// Fires one arrival and says what came of it. `now` is the instant just read by the caller.
    ///
    /// The future may be dropped before its end; [`Work::abandon`] is called right after that.
    fn fire(&mut self, arrival: Arrival, now: Nanos) -> impl Future<Output = Exchange>;

    /// What is known of an arrival whose `fire` was dropped before its end.
    fn abandon(&mut self) -> Exchange;
}

/// Makes the works of one worker. Lives on the worker's thread and is not shared.
pub trait Factory {
    /// What it makes.
    type Work: Work + 'static;

    /// Called once on the worker's runtime before the first arrival, for what must run beside
    /// the lanes.
    fn begin(&self) {}

    /// A work for a new lane; `lane` counts from 0 within the worker.
    fn work(&self, lane: usize) -> Self::Work;

    /// Adds to `tally` what the works counted outside any single arrival (connections opened,
    /// retransmits) since the last call, and returns the gauges of this moment.
    fn observe(&self, tally: &mut Tally) -> Gauges;

    /// Called once after the last arrival has ended, before the last [`Factory::observe`]: what is
    /// still under way beside the lanes will not come to its end.
    fn finish(&self) {}
}

/// Levels, as against counts: they add up over workers and take the maximum over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections open now.
    pub open: u64,
    /// Most connections open at once since the last look.
    pub peak: u64,
}

impl Gauges {
    /// The gauges of two workers at the same time.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self { open: self.open + other.open, peak: self.peak + other.peak }
    }
}
