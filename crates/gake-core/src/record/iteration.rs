//! An arrival in progress, and its end.

use super::exchange::Exchange;
use super::fault::Fault;
use super::recorder::{ExchangeStart, Recorder};
use crate::clock::Nanos;
use crate::metric::SeriesId;
use crate::schedule::Arrival;

/// An arrival in progress, through which its work records.
#[derive(Debug, Clone, Copy)]
pub struct Iteration<'a> {
    /// Its number and the instant it was due.
    pub arrival: Arrival,
    /// Time it waited for a free lane because all were busy.
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

    /// Records the arrival's own request. Its response time counts from the due instant.
    #[inline]
    pub fn exchange(&self, mut exchange: Exchange) {
        self.take_exchange(&mut exchange);
    }

    /// As [`Iteration::exchange`], for a reused exchange: moved out only if there is a log.
    #[inline]
    pub fn take_exchange(&self, exchange: &mut Exchange) {
        let Self { arrival, blocked, fired, recorder } = *self;
        recorder.exchange(arrival.due, &ExchangeStart { arrival, blocked, fired }, exchange);
    }

    /// Records a further request of the iteration. Its response time counts from `start`.
    #[inline]
    pub fn exchange_from(&self, start: Nanos, mut exchange: Exchange) {
        let arrival = Arrival { number: self.arrival.number, due: start };
        let start = ExchangeStart { arrival, blocked: 0, fired: start };
        self.recorder.exchange(self.arrival.due, &start, &mut exchange);
    }

    /// Adds the result of a check to its rate `series`.
    #[inline]
    pub fn check(&self, series: SeriesId, passed: bool) {
        self.sample(series, f64::from(passed));
    }

    /// Adds a sample to a series of a metric. Values that are not finite are counted separately.
    #[inline]
    pub fn sample(&self, series: SeriesId, value: f64) {
        self.recorder.sample(self.arrival.due, self.fired, series, value);
    }

    /// Adds the body of a failed response, or its start.
    pub fn failed_body(&self, status: u16, body: &[u8]) {
        self.recorder.failed_body(self.arrival.due, status, body);
    }

    /// The recorder, to intern series once.
    #[must_use]
    pub fn recorder(&self) -> &'a Recorder {
        self.recorder
    }

    /// The generator's own delay: from due to fired, without the wait for a free lane.
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
    /// It ended with this fault, perhaps without waiting: yield before the next iteration.
    Failed(Fault),
    /// It was interrupted.
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

    /// An iteration that was interrupted at `at`.
    #[must_use]
    pub fn interrupted(at: Nanos) -> Self {
        Self { at, status: IterationStatus::Interrupted }
    }
}

impl Recorder {
    /// Counts the end of an iteration.
    #[inline]
    pub fn end(&self, iteration: &Iteration<'_>, ended: IterationEnd) {
        let interrupted = ended.status == IterationStatus::Interrupted;
        let (due, lateness) = (iteration.arrival.due, iteration.lateness());
        self.end_arrival(due, lateness, iteration.blocked, interrupted);
    }
}
