//! A worker's own recorder: counts of the warm-up, and a tally of the figures.

use super::outcome::Outcome;
use super::tally::{Counts, Tally};
use crate::clock::Nanos;
use crate::plan::Expect;
use crate::work::Gauges;

/// What a worker hands over about once a second.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The worker.
    pub worker: usize,
    /// Seconds since the epoch that are complete with this interval.
    pub second: u64,
    /// What counts.
    pub tally: Tally,
    /// What the warm-up saw.
    pub warmup: Counts,
    /// Levels.
    pub gauges: Gauges,
    /// CPU time the worker's thread used since its last interval.
    pub cpu: Nanos,
    /// Time the worker's thread was runnable but not running since its last interval.
    pub run_delay: Nanos,
}

/// Records outcomes. Belongs to one worker; shares nothing.
#[derive(Debug)]
pub struct Recorder {
    expect: Expect,
    warmup_end: Nanos,
    tally: Tally,
    warmup: Counts,
}

impl Recorder {
    /// A recorder in which arrivals due before `warmup_end` are left out of the figures.
    #[must_use]
    pub fn new(expect: Expect, warmup_end: Nanos, labels: usize) -> Self {
        Self { expect, warmup_end, tally: Tally::new(labels), warmup: Counts::default() }
    }

    /// Adds what came of one arrival.
    #[inline]
    pub fn record(&mut self, outcome: &Outcome) {
        if outcome.arrival.due < self.warmup_end {
            self.warmup.merge(&Counts::of(outcome, &self.expect));
        } else {
            self.tally.record(outcome, &self.expect);
        }
    }

    /// Adds an arrival due at `due` that was given up at `now` without having been sent.
    pub fn record_dropped(&mut self, due: Nanos, now: Nanos) {
        if due < self.warmup_end {
            self.warmup.dropped += 1;
        } else {
            self.tally.record_dropped(now.saturating_sub(due));
        }
    }

    /// The tally of the figures, for what is counted outside any arrival.
    pub fn tally_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Takes what was recorded since the last time, and goes on with `spare`, an empty tally.
    #[must_use]
    pub fn take(&mut self, mut spare: Tally) -> (Tally, Counts) {
        spare.tell_labels(self.tally.labels().len());
        (std::mem::replace(&mut self.tally, spare), std::mem::take(&mut self.warmup))
    }

    /// Takes back what was taken and could not be handed over.
    pub fn put_back(&mut self, tally: &Tally, warmup: &Counts) {
        self.tally.merge(tally);
        self.warmup.merge(warmup);
    }
}
