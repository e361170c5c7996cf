//! The contract between the loop and the work that it fires.
//!
//! The engine never names HTTP and the wire never names schedules: a [`Work`] joins them, with
//! static dispatch. One arrival fires one iteration: any number of exchanges, each recorded through
//! [`Iteration`] as it happens, and one end. A plain request is the iteration of one exchange.

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;
use crate::metric::SeriesId;
use crate::record::{Exchange, Fault, Recorder, Start, Tally};
pub use crate::schedule::Arrival;

/// One arrival in progress, through which its work records. The loop makes it, on the stack.
#[derive(Debug, Clone, Copy)]
pub struct Iteration<'a> {
    /// Its number and the instant it was due.
    pub arrival: Arrival,
    /// How long it waited for a free lane because all were busy.
    pub blocked: Nanos,
    /// When its work was fired.
    pub fired: Nanos,
    recorder: &'a Recorder,
}

impl<'a> Iteration<'a> {
    /// The iteration of `arrival`, fired at `fired`, recorded by `recorder`.
    #[must_use]
    pub fn new(arrival: Arrival, blocked: Nanos, fired: Nanos, recorder: &'a Recorder) -> Self {
        Self { arrival, blocked, fired, recorder }
    }

    /// Records the arrival's own request: its response time counts from the instant the arrival
    /// was due.
    #[inline]
    pub fn exchange(&self, mut exchange: Exchange) {
        self.take_exchange(&mut exchange);
    }

    /// The same for an exchange that its owner will reuse: nothing is moved unless a log takes
    /// it.
    #[inline]
    pub fn take_exchange(&self, exchange: &mut Exchange) {
        let Self { arrival, blocked, fired, recorder } = *self;
        recorder.exchange(arrival.due, &Start { arrival, blocked, fired }, exchange);
    }

    /// Records a further request of the iteration, which it asked for at `start`: its response
    /// time counts from then.
    #[inline]
    pub fn exchange_from(&self, start: Nanos, mut exchange: Exchange) {
        let arrival = Arrival { number: self.arrival.number, due: start };
        let start = Start { arrival, blocked: 0, fired: start };
        self.recorder.exchange(self.arrival.due, &start, &mut exchange);
    }

    /// Counts whether a check passed: a sample of the rate that `series` is of.
    #[inline]
    pub fn check(&self, series: SeriesId, passed: bool) {
        self.sample(series, f64::from(passed));
    }

    /// Adds a sample to a series of a metric. Values that are not finite are counted separately.
    #[inline]
    pub fn sample(&self, series: SeriesId, value: f64) {
        self.recorder.sample(self.arrival.due, self.fired, series, value);
    }

    /// Adds the start of the body of an answer that failed to the run's most frequent ones.
    pub fn failed_body(&self, status: u16, body: &[u8]) {
        self.recorder.failed_body(self.arrival.due, status, body);
    }

    /// The recorder, for interning once and not per arrival.
    #[must_use]
    pub fn recorder(&self) -> &'a Recorder {
        self.recorder
    }

    /// The generator's own delay: from due to fired, without the wait for a free lane, which is
    /// the bound's and the server's.
    #[must_use]
    pub fn lateness(&self) -> Nanos {
        self.fired.saturating_sub(self.arrival.due).saturating_sub(self.blocked)
    }
}

/// The end of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When it ended.
    pub at: Nanos,
    /// How it ended.
    pub how: How,
}

/// How an iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It completed.
    Finished,
    /// It ended with this fault, perhaps without any wait: a loop that continues at once
    /// lets others run first.
    Failed(Fault),
    /// It was cut short.
    Interrupted,
}

impl Ended {
    /// An iteration that completed at `at`.
    #[must_use]
    pub fn finished(at: Nanos) -> Self {
        Self { at, how: How::Finished }
    }

    /// An iteration that ended at `at` with a fault.
    #[must_use]
    pub fn failed(at: Nanos, fault: Fault) -> Self {
        Self { at, how: How::Failed(fault) }
    }

    /// An iteration that was cut short at `at`.
    #[must_use]
    pub fn interrupted(at: Nanos) -> Self {
        Self { at, how: How::Interrupted }
    }
}

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
    -> impl Future<Output = Result<Ended, Exhausted>>;

    /// Ends an iteration whose `fire` was dropped before its end: records the exchanges in flight
    /// as unfinished.
    fn abandon(&mut self, iteration: &Iteration<'_>) -> Ended;
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

/// Levels, as opposed to counts: they are summed over workers; over time the maximum counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Connections open now.
    pub open: u64,
    /// Maximum number of open connections since the last look.
    pub peak: u64,
}

impl Gauges {
    /// The gauges of two workers at the same time.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            open: self.open.saturating_add(other.open),
            peak: self.peak.saturating_add(other.peak),
        }
    }
}
