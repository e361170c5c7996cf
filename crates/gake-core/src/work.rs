//! The contract between the loop and the work that it fires, with static dispatch.
//!
//! One arrival fires one iteration: any number of exchanges, recorded through [`Iteration`] as they
//! happen, and one end. A plain request is an iteration of one exchange.

use crate::record::Tally;
pub use crate::record::{Gauges, Iteration, IterationEnd, IterationStatus};
pub use crate::schedule::Arrival;

/// The source of requests is exhausted: this arrival does not count, and no more come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// Fires arrivals: HTTP requests, iterations of a script. Owned by one lane of a worker, which
/// fires one arrival at a time.
pub trait Work {
    /// Runs the iteration of one arrival and records its exchanges through `iteration`.
    /// `iteration.fired` is the current time.
    ///
    /// If the future is dropped before it completes, [`Work::abandon`] is called next.
    fn fire(
        &mut self,
        iteration: &Iteration<'_>,
    ) -> impl Future<Output = Result<IterationEnd, Exhausted>>;

    /// Ends an iteration whose `fire` was dropped: records the exchanges in flight as unfinished.
    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd;
}

/// Makes the [`Work`] of each lane of one worker, for one scenario. Lives on the worker's thread.
pub trait Factory {
    /// The work of a lane.
    type Work: Work + 'static;

    /// Called once on the worker's runtime, before the epoch and before any call of
    /// [`Factory::work`]: acquires what `lanes` lanes need.
    ///
    /// # Errors
    /// Why the run cannot start, in a sentence.
    fn prepare(&self, lanes: usize) -> impl Future<Output = Result<(), String>> {
        let _ = lanes;
        std::future::ready(Ok(()))
    }

    /// Whether arrivals of a closed load are numbered in the order in which they begin, over all
    /// workers. Costs an increment of a shared counter for each arrival.
    fn wants_order(&self) -> bool {
        false
    }

    /// The work of a lane, counted from 0 within the worker. Called before the epoch.
    fn work(&self, lane: usize) -> Self::Work;

    /// Called once at the epoch.
    fn begin(&self) {}

    /// Adds to `tally` the counts since the last call that belong to no single arrival (connections
    /// opened, retransmits), and returns the current gauges.
    fn observe(&self, tally: &mut Tally) -> Gauges;

    /// Called once after the last arrival has ended, before the last [`Factory::observe`]: aborts
    /// what is still in progress besides the lanes.
    fn finish(&self) {}
}
