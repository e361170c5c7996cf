//! The recorder of a worker: counts of the warm-up, and a tally of the figures.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::exchange::{Exchange, Outcome};
use super::failed_bodies::FailedBodies;
use super::gauges::Gauges;
use super::plain::{PlainExchange, PlainTally};
use super::tally::Tally;
use crate::clock::Nanos;
use crate::metric::{Definition, SeriesId, SeriesTable, Tags};
use crate::plan::ExpectedStatus;
use crate::schedule::Arrival;

/// What a worker recorded in a second, or in a tenth of one in the first minute of a short run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The worker's number.
    pub worker: usize,
    /// Its end, in tenths of a second since the epoch.
    pub tenth: u64,
    /// By scenario of the worker.
    #[serde(rename = "parts")]
    pub scenarios: Vec<ScenarioInterval>,
    /// CPU time the worker's thread used since its last interval.
    pub cpu: Nanos,
    /// Time the worker's thread was runnable but not running since its last interval.
    pub run_delay: Nanos,
}

/// What a worker recorded of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioInterval {
    /// The scenario's number in the run.
    pub scenario: usize,
    /// The tally after the warm-up.
    pub tally: Tally,
    /// The counts of the warm-up.
    pub warmup: Counts,
    /// Levels at its end.
    pub gauges: Gauges,
    /// Bodies of failed responses, on request.
    #[serde(default, skip_serializing_if = "FailedBodies::is_empty")]
    pub bodies: FailedBodies,
}

/// Receives every exchange.
pub trait ExchangeLog {
    /// Takes an exchange. Never blocks: the log drops and counts exchanges when it is full.
    fn push(&self, outcome: Outcome);
}

/// Records the exchanges and samples of iterations, for one worker and scenario.
pub struct Recorder {
    expect: ExpectedStatus,
    warmup_end: Nanos,
    figures: RefCell<RecordedFigures>,
    log: Option<Box<dyn ExchangeLog>>,
}

/// Recorded since the last call of [`Recorder::take`].
#[derive(Debug)]
struct RecordedFigures {
    tally: Tally,
    /// Not yet in the tally.
    plain: PlainTally,
    warmup: Counts,
    bodies: FailedBodies,
    /// The instant of the last sample.
    sampled: Nanos,
}

/// The origin of an exchange.
pub(super) struct ExchangeStart {
    pub(super) arrival: Arrival,
    pub(super) blocked: Nanos,
    pub(super) fired: Nanos,
}

impl Recorder {
    /// A recorder that leaves arrivals due before `warmup_end` out of the figures. Every exchange
    /// also goes to `log`.
    #[must_use]
    pub fn new(
        expect: ExpectedStatus,
        warmup_end: Nanos,
        labels: usize,
        log: Option<Box<dyn ExchangeLog>>,
    ) -> Self {
        let (tally, warmup) = (Tally::new(labels), Counts::default());
        let bodies = FailedBodies::default();
        let plain = PlainTally::default();
        let figures = RecordedFigures { tally, plain, warmup, bodies, sampled: 0 };
        Self { expect, warmup_end, figures: RefCell::new(figures), log }
    }

    /// Limits the distinct series of the run's own metrics to `limit`.
    #[must_use]
    pub fn with_max_series(self, limit: usize) -> Self {
        self.figures.borrow_mut().tally.series = SeriesTable::with_limit(limit);
        self
    }

    /// Adds an exchange of the iteration whose arrival was due at `due`; moves it out if there is a
    /// log.
    #[inline]
    pub(super) fn exchange(&self, due: Nanos, start: &ExchangeStart, exchange: &mut Exchange) {
        let mut figures = self.figures.borrow_mut();
        if due < self.warmup_end {
            figures.warmup.add_exchange(exchange, exchange.is_ok(&self.expect));
        } else {
            figures.tally.record_exchange(start.arrival.due, exchange, &self.expect);
        }
        drop(figures);
        if let Some(log) = &self.log {
            let &ExchangeStart { arrival, blocked, fired } = start;
            let exchange = std::mem::replace(exchange, Exchange::unfinished(exchange.done));
            log.push(Outcome { arrival, blocked, fired, exchange });
        }
    }

    /// Adds a plain exchange and the end of its iteration, in a tenth of the time of
    /// [`Iteration::exchange`](super::Iteration::exchange) and [`Recorder::end`]. False if it has
    /// to take that way: there is a log, labels are distinguished, it belongs to the warm-up, or
    /// its status is not the usual one.
    #[inline]
    pub fn plain(&self, exchange: &PlainExchange) -> bool {
        let figures = &mut *self.figures.borrow_mut();
        let is_plain = exchange.due >= self.warmup_end
            && self.log.is_none()
            && figures.tally.labels().is_empty()
            && figures.plain.takes(exchange.status, &self.expect);
        if is_plain {
            figures.plain.add(exchange);
        }
        is_plain
    }

    /// Maps memory for plain exchanges.
    pub fn make_room_for_plain(&self) {
        self.figures.borrow_mut().plain.make_room();
    }

    /// The index of a series, valid as long as the recorder exists: intern once, record by index.
    #[must_use]
    pub fn intern(&self, metric: &Arc<Definition>, tags: &Tags) -> SeriesId {
        self.figures.borrow_mut().tally.series.intern(metric, tags)
    }

    /// Adds a sample of the iteration whose arrival was due at `due` and fired at `fired`.
    #[inline]
    pub(super) fn sample(&self, due: Nanos, fired: Nanos, series: SeriesId, value: f64) {
        if due < self.warmup_end {
            return;
        }
        let mut figures = self.figures.borrow_mut();
        // Without reading the clock, later samples get later instants: a gauge keeps its last
        // value.
        figures.sampled = fired.max(figures.sampled + 1);
        let at = figures.sampled;
        figures.tally.series.add(series, value, at);
    }

    /// Adds the body of a failed response of the iteration whose arrival was due at `due`.
    pub(super) fn failed_body(&self, due: Nanos, status: u16, body: &[u8]) {
        if due >= self.warmup_end {
            self.figures.borrow_mut().bodies.add(status, body);
        }
    }

    /// Takes the bodies of failed responses.
    #[must_use]
    pub fn take_bodies(&self) -> FailedBodies {
        std::mem::take(&mut self.figures.borrow_mut().bodies)
    }

    /// Counts the end of an iteration whose arrival was due at `due`.
    #[inline]
    pub(super) fn end_arrival(
        &self,
        due: Nanos,
        lateness: Nanos,
        blocked: Nanos,
        interrupted: bool,
    ) {
        let mut figures = self.figures.borrow_mut();
        if due < self.warmup_end {
            figures.warmup.end_arrival(interrupted);
        } else {
            figures.tally.record_arrival(lateness, blocked, interrupted);
        }
    }

    /// Counts an arrival due at `due` that was dropped at `now`.
    pub fn drop_arrival(&self, due: Nanos, now: Nanos) {
        let mut figures = self.figures.borrow_mut();
        if due < self.warmup_end {
            figures.warmup.dropped += 1;
        } else {
            figures.tally.record_dropped(now.saturating_sub(due));
        }
    }

    /// Lets `add` change the tally, for counts that belong to no arrival.
    pub fn with_tally<T>(&self, add: impl FnOnce(&mut Tally) -> T) -> T {
        add(&mut self.figures.borrow_mut().tally)
    }

    /// Takes what was recorded since the last call, and continues with `spare`, an empty tally.
    #[must_use]
    pub fn take(&self, mut spare: Tally) -> (Tally, Counts) {
        let figures = &mut *self.figures.borrow_mut();
        figures.plain.move_to(&mut figures.tally);
        spare.follow(&figures.tally);
        (std::mem::replace(&mut figures.tally, spare), std::mem::take(&mut figures.warmup))
    }

    /// Restores figures that could not be delivered.
    pub fn put_back(&self, part: &ScenarioInterval) {
        let mut figures = self.figures.borrow_mut();
        figures.tally.merge(&part.tally);
        figures.warmup.merge(&part.warmup);
        figures.bodies.merge(&part.bodies);
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("figures", &self.figures).finish_non_exhaustive()
    }
}
