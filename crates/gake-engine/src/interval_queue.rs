//! What the workers hand over, joined by piece of time: a second, or a tenth of one.

use std::collections::BTreeMap;

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Interval, Tally};
use gake_core::work::Gauges;

use crate::handover::TENTHS;

/// Tenths of a second that may wait for a worker that hands nothing over. Past that the oldest
/// piece goes on without it, and what it hands over later counts with a later piece.
const PENDING_MAX: u64 = 64 * TENTHS;

/// One piece of time of all workers.
#[derive(Debug, Default)]
pub(crate) struct JoinedInterval {
    /// What was recorded in it, after the warm-up.
    pub(crate) tally: Tally,
    /// What each scenario recorded in it, when the run has several.
    pub(crate) scenarios: Vec<Tally>,
    /// What the warm-up saw in it.
    pub(crate) warmup: Counts,
    /// Levels at its end.
    pub(crate) gauges: Gauges,
    /// Those of each worker that told them.
    told: BTreeMap<usize, Gauges>,
    /// CPU time of the workers in it.
    pub(crate) cpu: Nanos,
    has_tally: bool,
}

/// Pieces that not every worker has handed over yet, by the tenth in which they end. Their memory
/// does not grow with the run.
#[derive(Debug)]
pub(crate) struct IntervalQueue {
    pending: BTreeMap<u64, JoinedInterval>,
    /// Where the last piece that went on ends.
    gone: u64,
    /// Empty tallies to be used again.
    retired: Vec<Tally>,
    workers: Vec<WorkerProgress>,
}

/// What is known of a worker.
#[derive(Debug, Clone, Copy, Default)]
struct WorkerProgress {
    /// The last tenth that it has handed over.
    handed: u64,
    is_over: bool,
    /// Its open connections, of the pieces that went on. One that wakes late still has them.
    open: u64,
}

impl IntervalQueue {
    pub(crate) fn new(workers: usize) -> Self {
        let (pending, retired) = (BTreeMap::new(), Vec::new());
        Self { pending, gone: 0, retired, workers: vec![WorkerProgress::default(); workers] }
    }

    /// Whether every worker has ended.
    pub(crate) fn are_over(&self) -> bool {
        self.workers.iter().all(|worker| worker.is_over)
    }

    /// A worker has ended.
    pub(crate) fn end(&mut self, worker: usize) {
        self.workers[worker].is_over = true;
    }

    /// Where the last piece that went on ends, in tenths of a second.
    pub(crate) fn gone(&self) -> u64 {
        self.gone
    }

    /// Joins what a worker recorded up to `tenth`, and gives as many empty tallies back as there
    /// are, up to as many as it takes. `scenarios` is how many are told apart.
    pub(crate) fn add(
        &mut self,
        interval: Interval,
        scenarios: usize,
        mut spare: impl FnMut(Tally),
    ) {
        let Interval { worker, tenth, parts, cpu, .. } = interval;
        self.workers[worker].handed = self.workers[worker].handed.max(tenth);
        let piece = self.pending.entry(tenth.max(self.gone + 1)).or_default();
        piece.scenarios.resize_with(scenarios, Tally::default);
        piece.cpu += cpu;
        let gauges = parts.iter().fold(Gauges::default(), |sum, part| sum.plus(part.gauges));
        let told = piece.told.entry(worker).or_default();
        *told = Gauges { peak: told.peak.max(gauges.peak), ..gauges };
        for part in parts {
            if let Some(tally) = piece.scenarios.get_mut(part.scenario) {
                tally.merge(&part.tally);
            }
            piece.warmup.merge(&part.warmup);
            let mut tally = part.tally;
            if std::mem::replace(&mut piece.has_tally, true) {
                piece.tally.merge(&tally);
                tally.clear();
                spare(tally);
            } else {
                piece.tally = tally;
                self.retired.pop().into_iter().for_each(&mut spare);
            }
        }
    }

    /// The tenth in which the next piece ends that every worker has handed over, in order.
    pub(crate) fn ready(&self) -> Option<u64> {
        let going = self.workers.iter().filter(|worker| !worker.is_over);
        let complete = going.map(|worker| worker.handed).min().unwrap_or(u64::MAX);
        let (first, last) = (self.pending.first_key_value()?.0, self.pending.last_key_value()?.0);
        (*first <= complete || last - first >= PENDING_MAX).then_some(*first)
    }

    /// Takes the piece that ends in `tenth`, which is ready.
    pub(crate) fn take(&mut self, tenth: u64) -> JoinedInterval {
        self.gone = tenth;
        let mut piece = self.pending.remove(&tenth).unwrap_or_default();
        for (number, worker) in self.workers.iter_mut().enumerate() {
            let gauges = match piece.told.get(&number) {
                Some(told) => *told,
                // After its end it has none.
                None if worker.is_over && worker.handed < tenth => Gauges::default(),
                None => Gauges { open: worker.open, peak: worker.open },
            };
            worker.open = gauges.open;
            piece.gauges = piece.gauges.plus(gauges);
        }
        piece
    }

    /// How many pieces wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.pending.len()
    }

    /// Takes an empty tally back, so that its room is used again: the memory it has is warm.
    pub(crate) fn retire(&mut self, tally: Tally) {
        if self.retired.len() < self.workers.len() {
            self.retired.push(tally);
        }
    }
}
