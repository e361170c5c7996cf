//! Joins the intervals of workers, until all workers have reported an interval.

use std::collections::BTreeMap;

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Interval, Tally};
use gake_core::work::Gauges;

use crate::handover::TENTHS;

/// Tenths of a second that wait for a silent worker. Beyond that the oldest interval is completed
/// without it, and its late figures count with a later interval.
const PENDING_MAX: u64 = 64 * TENTHS;

/// An interval, over all workers.
#[derive(Debug, Default)]
pub(crate) struct JoinedInterval {
    /// The tally after the warm-up.
    pub(crate) tally: Tally,
    /// The tallies of scenarios, if there are several.
    pub(crate) scenarios: Vec<Tally>,
    pub(crate) warmup: Counts,
    /// Levels at its end.
    pub(crate) gauges: Gauges,
    /// Levels by worker.
    by_worker: BTreeMap<usize, Gauges>,
    /// CPU time of the workers.
    pub(crate) cpu: Nanos,
    has_tally: bool,
}

/// Intervals that not all workers have reported, by the tenth in which they end. Bounded memory.
#[derive(Debug)]
pub(crate) struct IntervalQueue {
    pending: BTreeMap<u64, JoinedInterval>,
    /// The end of the last completed interval.
    joined_until: u64,
    /// Empty tallies for reuse.
    retired: Vec<Tally>,
    workers: Vec<WorkerProgress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct WorkerProgress {
    /// The last tenth reported.
    reported: u64,
    is_over: bool,
    /// Open connections in the last completed interval; a silent worker still has them.
    open: u64,
}

impl IntervalQueue {
    pub(crate) fn new(workers: usize) -> Self {
        let (pending, retired) = (BTreeMap::new(), Vec::new());
        Self {
            pending,
            joined_until: 0,
            retired,
            workers: vec![WorkerProgress::default(); workers],
        }
    }

    /// Whether every worker has ended.
    pub(crate) fn are_over(&self) -> bool {
        self.workers.iter().all(|worker| worker.is_over)
    }

    /// Called when a worker has ended.
    pub(crate) fn end(&mut self, worker: usize) {
        self.workers[worker].is_over = true;
    }

    /// The end of the last completed interval, in tenths of a second.
    pub(crate) fn joined_until(&self) -> u64 {
        self.joined_until
    }

    /// Adds an interval of a worker, and returns up to as many empty tallies as it takes.
    /// `scenarios` is the number of scenarios to distinguish.
    pub(crate) fn add(
        &mut self,
        interval: Interval,
        scenarios: usize,
        mut spare: impl FnMut(Tally),
    ) {
        let Interval { worker, tenth, scenarios: recorded, cpu, .. } = interval;
        self.workers[worker].reported = self.workers[worker].reported.max(tenth);
        let joined = self.pending.entry(tenth.max(self.joined_until + 1)).or_default();
        joined.scenarios.resize_with(scenarios, Tally::default);
        joined.cpu += cpu;
        let gauges = recorded.iter().fold(Gauges::default(), |sum, one| sum.plus(one.gauges));
        let levels = joined.by_worker.entry(worker).or_default();
        *levels = Gauges { peak: levels.peak.max(gauges.peak), ..gauges };
        for one in recorded {
            if let Some(tally) = joined.scenarios.get_mut(one.scenario) {
                tally.merge(&one.tally);
            }
            joined.warmup.merge(&one.warmup);
            let mut tally = one.tally;
            if std::mem::replace(&mut joined.has_tally, true) {
                joined.tally.merge(&tally);
                tally.clear();
                spare(tally);
            } else {
                joined.tally = tally;
                self.retired.pop().into_iter().for_each(&mut spare);
            }
        }
    }

    /// The end of the next interval that is complete.
    pub(crate) fn ready(&self) -> Option<u64> {
        let going = self.workers.iter().filter(|worker| !worker.is_over);
        let complete = going.map(|worker| worker.reported).min().unwrap_or(u64::MAX);
        let (first, last) = (self.pending.first_key_value()?.0, self.pending.last_key_value()?.0);
        (*first <= complete || last - first >= PENDING_MAX).then_some(*first)
    }

    /// Takes the interval that ends in `tenth`, which must be [`Self::ready`].
    pub(crate) fn take(&mut self, tenth: u64) -> JoinedInterval {
        self.joined_until = tenth;
        let mut joined = self.pending.remove(&tenth).unwrap_or_default();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let gauges = match joined.by_worker.get(&number) {
                Some(gauges) => *gauges,
                None if worker.is_over && worker.reported < tenth => Gauges::default(),
                None => Gauges { open: worker.open, peak: worker.open },
            };
            worker.open = gauges.open;
            joined.gauges = joined.gauges.plus(gauges);
        }
        joined
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Keeps an empty tally for reuse.
    pub(crate) fn retire(&mut self, tally: Tally) {
        if self.retired.len() < self.workers.len() {
            self.retired.push(tally);
        }
    }
}
