//! The queue of samples between the users and the writer of an output.
//!
//! The writer is in the lowest scheduling class, so that it delays no user. When it falls behind on a
//! busy machine, a thread of the normal class takes it over: k6 loses no sample, and so it costs the
//! CPU that it costs there. Only a writer that cannot keep up even then loses the newest times, before
//! counts, gauges and checks.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gake_core::metric::MetricKind;
use gake_k6::test::RawSample;

/// Samples of an iteration, for all outputs.
pub(super) type SampleBatch = Arc<Vec<RawSample>>;

/// Samples that wait before the writer gets a share of the CPU like any other thread's.
const BEHIND: usize = 50_000;
/// Samples that wait at most, besides counts, gauges and checks ...
const SAMPLES_MAX: usize = 1_000_000;
/// ... and with them.
const ALL_MAX: usize = 1_500_000;

/// The queue of one output.
#[derive(Debug, Default)]
pub(super) struct SampleQueue {
    state: Mutex<SampleQueueState>,
    filled: Condvar,
}

#[derive(Debug, Default)]
struct SampleQueueState {
    batches: VecDeque<SampleBatch>,
    samples: usize,
    lost: u64,
    /// No samples follow.
    is_closed: bool,
    /// The writer has failed.
    is_abandoned: bool,
}

/// What a writer gets.
pub(super) enum NextSamples {
    Batch(SampleBatch),
    /// None came for a while.
    Idle,
    /// The queue is too long for the lowest class, or the run is over.
    Behind,
    /// All samples were taken.
    Closed,
}

impl SampleQueue {
    /// Adds samples, or counts those as lost for which there is no room.
    pub(super) fn push(&self, batch: &SampleBatch) {
        let mut state = self.lock();
        if state.is_abandoned {
            return;
        }
        let after = state.samples + batch.len();
        if after <= SAMPLES_MAX {
            state.add(Arc::clone(batch));
        } else {
            let is_figure = |sample: &&RawSample| sample.metric.kind != MetricKind::Trend;
            let figures: Vec<_> = match after <= ALL_MAX {
                true => batch.iter().filter(is_figure).cloned().collect(),
                false => Vec::new(),
            };
            state.lost += (batch.len() - figures.len()) as u64;
            state.add(Arc::new(figures));
        }
        drop(state);
        self.filled.notify_one();
    }

    /// The next samples, waited for at most `time`. `in_background`: the writer is in the lowest class.
    pub(super) fn next(&self, time: Duration, in_background: bool) -> NextSamples {
        let mut state = self.lock();
        if state.batches.is_empty() && !state.is_closed {
            let waited = self.filled.wait_timeout(state, time);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if in_background && (state.is_closed || state.samples > BEHIND) {
            return NextSamples::Behind;
        }
        match state.batches.pop_front() {
            Some(batch) => {
                state.samples -= batch.len();
                NextSamples::Batch(batch)
            }
            None if state.is_closed => NextSamples::Closed,
            None => NextSamples::Idle,
        }
    }

    /// Ends the queue; what it holds is still taken.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_all();
    }

    /// The writer has failed: it takes no more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        state.batches.clear();
        state.samples = 0;
    }

    pub(super) fn lost(&self) -> u64 {
        self.lock().lost
    }

    fn lock(&self) -> MutexGuard<'_, SampleQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SampleQueueState {
    fn add(&mut self, batch: SampleBatch) {
        if !batch.is_empty() {
            self.samples += batch.len();
            self.batches.push_back(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use gake_core::metric::{Definition, MetricUnit, Tags};

    use super::*;

    fn batch(kinds: &[MetricKind]) -> SampleBatch {
        let sample = |kind: &MetricKind| RawSample {
            metric: Arc::new(Definition {
                name: "m".to_owned(),
                kind: *kind,
                unit: MetricUnit::Number,
            }),
            tags: Tags::default(),
            metadata: Tags::default(),
            value: 1.0,
            unix_ns: 1,
        };
        Arc::new(kinds.iter().map(sample).collect())
    }

    #[test]
    fn a_writer_that_falls_behind_is_taken_over() {
        let queue = SampleQueue::default();
        let next = |in_background| queue.next(Duration::ZERO, in_background);
        assert!(matches!(next(true), NextSamples::Idle));
        queue.push(&batch(&[MetricKind::Trend; 10]));
        assert!(matches!(next(true), NextSamples::Batch(_)));
        queue.push(&batch(&vec![MetricKind::Trend; BEHIND + 1]));
        assert!(matches!(next(true), NextSamples::Behind));
        assert!(matches!(next(false), NextSamples::Batch(_)));
        queue.push(&batch(&[MetricKind::Trend]));
        queue.close();
        assert!(matches!(next(true), NextSamples::Behind));
        assert!(matches!(next(false), NextSamples::Batch(_)));
        assert!(matches!(next(false), NextSamples::Closed));
    }

    #[test]
    fn at_the_bound_times_are_lost_before_counts_and_checks() {
        let queue = SampleQueue::default();
        queue.push(&batch(&vec![MetricKind::Trend; SAMPLES_MAX]));
        queue.push(&batch(&[MetricKind::Counter, MetricKind::Trend, MetricKind::Rate]));
        assert_eq!((queue.lost(), queue.lock().samples), (1, SAMPLES_MAX + 2));
        queue.push(&batch(&vec![MetricKind::Gauge; ALL_MAX - SAMPLES_MAX]));
        assert_eq!(queue.lost(), 1 + (ALL_MAX - SAMPLES_MAX) as u64);
        queue.abandon();
        queue.push(&batch(&[MetricKind::Gauge]));
        assert_eq!(queue.lock().samples, 0);
    }
}
