//! One arrival in progress: what its work records, and how it ended.

use super::fault::Fault;
use super::exchange::Exchange;
use super::recorder::{Recorder, ExchangeStart};
use crate::clock::Nanos;
use crate::metric::SeriesId;
use crate::schedule::Arrival;

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
        recorder.exchange(arrival.due, &ExchangeStart { arrival, blocked, fired }, exchange);
    }

    /// Records a further request of the iteration, which it asked for at `start`: its response
    /// time counts from then.
    #[inline]
    pub fn exchange_from(&self, start: Nanos, mut exchange: Exchange) {
        let arrival = Arrival { number: self.arrival.number, due: start };
        let start = ExchangeStart { arrival, blocked: 0, fired: start };
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
pub struct IterationEnd {
    /// When it ended.
    pub at: Nanos,
    /// How it ended.
    pub status: IterationStatus,
}

/// How an iteration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IterationStatus {
    /// It completed.
    Finished,
    /// It ended with this fault, perhaps without any wait: a loop that continues at once
    /// lets others run first.
    Failed(Fault),
    /// It was cut short.
    Interrupted,
}

impl IterationEnd {
    /// An iteration that completed at `at`.
    #[must_use]
    pub fn finished(at: Nanos) -> Self {
        Self { at, status: IterationStatus::Finished }
    }

    /// An iteration that ended at `at` with a fault.
    #[must_use]
    pub fn failed(at: Nanos, fault: Fault) -> Self {
        Self { at, status: IterationStatus::Failed(fault) }
    }

    /// An iteration that was cut short at `at`.
    #[must_use]
    pub fn interrupted(at: Nanos) -> Self {
        Self { at, status: IterationStatus::Interrupted }
    }
}

impl Recorder {
    /// Counts an iteration that has ended.
    #[inline]
    pub fn end(&self, iteration: &Iteration<'_>, ended: IterationEnd) {
        let interrupted = ended.status == IterationStatus::Interrupted;
        let (due, lateness) = (iteration.arrival.due, iteration.lateness());
        self.end_arrival(due, lateness, iteration.blocked, interrupted);
    }
}
