//! The contract between the loop and the work that it fires.
//!
//! The engine never names HTTP and the wire never names schedules: a [`Work`] joins them, with
//! static dispatch. One arrival fires one iteration: any number of exchanges, each recorded through
//! [`Iteration`] as it happens, and one end. A plain request is the iteration of one exchange.

use crate::record::Tally;
pub use crate::record::{IterationEnd, Gauges, IterationStatus, Iteration};
pub use crate::schedule::Arrival;

/// The source of requests is exhausted: this arrival does not count, and no more come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted;

/// What an arrival fires: an HTTP request, a script's iteration. Belongs to one lane of a worker,
/// which fires one arrival at a time.
pub trait Work {
    /// Makes the iteration of one arrival: records what it does through `iteration` as it happens,
    /// and says how it ended. `iteration.fired` is the instant just read by the caller.
    ///
    /// The future may be dropped before its end; [`Work::abandon`] is called right after that.
    fn fire(&mut self, iteration: &Iteration<'_>)
    -> impl Future<Output = Result<IterationEnd, Exhausted>>;

    /// Ends an iteration whose `fire` was dropped before its end: records the exchanges in flight
    /// as unfinished.
    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd;
}

/// Makes the works of one worker, for one scenario. Lives on the worker's thread and is not shared.
pub trait Factory {
    /// The works it makes.
    type Work: Work + 'static;

    /// Called once on the worker's runtime before the epoch and before any work is made, for what
    /// `lanes` lanes need and what must run beside them.
    ///
    /// # Errors
    /// Why the run cannot start, in a sentence.
    fn prepare(&self, lanes: usize) -> impl Future<Output = Result<(), String>> {
        let _ = lanes;
        std::future::ready(Ok(()))
    }

    /// Whether the arrivals of a closed load are to be numbered as they begin, over all workers. It
    /// costs a step of a counter that workers share.
    fn wants_order(&self) -> bool {
        false
    }

    /// The work of a lane; `lane` counts from 0 within the worker. All are made before the epoch.
    fn work(&self, lane: usize) -> Self::Work;

    /// Called once at the epoch, to start what must not start before the run.
    fn begin(&self) {}

    /// Adds to `tally` what the works counted outside any single arrival (connections opened,
    /// retransmits) since the last call, and returns the gauges of this moment.
    fn observe(&self, tally: &mut Tally) -> Gauges;

    /// Called once after the last arrival has ended, before the last [`Factory::observe`]: what is
    /// still in progress beside the lanes will not complete.
    fn finish(&self) {}
}
