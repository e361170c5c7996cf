//! The optional log of all outcomes: a channel of batches, bounded in number and bytes.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use gake_core::record::{ExchangeLog, Outcome};

/// Maximum outcomes of a batch.
const BATCH: usize = 2_048;

/// Bytes of responses that fill a batch.
const BATCH_BYTES: usize = 1 << 20;

/// A channel for outcomes, with a capacity of `batches` batches and `bytes` of responses (one batch
/// may exceed that). When it is full, outcomes are lost and counted.
#[must_use]
pub fn log_channel(batches: usize, bytes: usize) -> (LogSender, Receiver<LogBatch>) {
    let (sender, receiver) = sync_channel(batches);
    (LogSender { sender, waiting: Arc::default(), bytes_max: bytes }, receiver)
}

/// The sending end of the log, for workers.
#[derive(Debug, Clone)]
pub struct LogSender {
    sender: SyncSender<LogBatch>,
    /// Bytes of responses in batches not yet dropped.
    waiting: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// Outcomes of one worker, in the order of their ends. Dropping it frees its capacity.
#[derive(Debug)]
pub struct LogBatch {
    outcomes: Vec<Outcome>,
    bytes: usize,
    waiting: Arc<AtomicUsize>,
    /// Returns the memory for reuse.
    spares: Sender<Vec<Outcome>>,
}

impl Deref for LogBatch {
    type Target = [Outcome];

    fn deref(&self) -> &[Outcome] {
        &self.outcomes
    }
}

impl Drop for LogBatch {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Relaxed);
        let mut outcomes = std::mem::take(&mut self.outcomes);
        outcomes.clear();
        // The worker may have ended.
        let _ = self.spares.send(outcomes);
    }
}

/// One worker's end of the log. A slow receiver loses outcomes, counted, and never delays the load.
#[derive(Debug)]
pub(crate) struct WorkerLog {
    sender: LogSender,
    batch: RefCell<Vec<Outcome>>,
    /// Memory of batches that were read.
    spares: Receiver<Vec<Outcome>>,
    spares_sender: Sender<Vec<Outcome>>,
    /// Bytes of responses in the batch.
    bytes: Cell<usize>,
    lost: Cell<u64>,
}

impl WorkerLog {
    pub(crate) fn new(sender: LogSender) -> Self {
        let batch = RefCell::new(Vec::with_capacity(BATCH));
        let (spares_sender, spares) = channel();
        Self { sender, batch, spares, spares_sender, bytes: Cell::new(0), lost: Cell::new(0) }
    }

    #[inline]
    fn push(&self, outcome: Outcome) {
        if let Some(kept) = &outcome.exchange.captured {
            let heads = kept.headers.iter().map(|(name, value)| name.len() + value.len());
            self.bytes.set(self.bytes.get() + kept.body.len() + heads.sum::<usize>());
        }
        let mut batch = self.batch.borrow_mut();
        batch.push(outcome);
        if batch.len() == BATCH || self.bytes.get() >= BATCH_BYTES {
            drop(batch);
            self.flush();
        }
    }

    /// Sends the batch.
    pub(crate) fn flush(&self) {
        if self.batch.borrow().is_empty() {
            return;
        }
        let spare = self.spares.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let (batch, waiting) = self.take(spare);
        let count = batch.len() as u64;
        let fits = batch.bytes == 0
            || waiting == 0
            || waiting.saturating_add(batch.bytes) <= self.sender.bytes_max;
        if !fits || self.sender.sender.try_send(batch).is_err() {
            self.lost.set(self.lost.get() + count);
        }
    }

    /// Sends the rest, waiting for capacity: the load is over. Returns the number lost.
    pub(crate) fn finish(&self) -> u64 {
        let (batch, _) = self.take(Vec::new());
        if let Err(rest) = self.sender.sender.send(batch) {
            self.lost.set(self.lost.get() + rest.0.len() as u64);
        }
        self.lost.get()
    }

    /// Takes the batch and continues with `spare`; also returns the bytes waiting before it.
    fn take(&self, spare: Vec<Outcome>) -> (LogBatch, usize) {
        let (outcomes, bytes) = (self.batch.replace(spare), self.bytes.take());
        let waiting = &self.sender.waiting;
        let before = waiting.fetch_add(bytes, Relaxed);
        let (waiting, spares) = (Arc::clone(waiting), self.spares_sender.clone());
        (LogBatch { outcomes, bytes, waiting, spares }, before)
    }
}

/// The recorder's handle of the log.
#[derive(Debug)]
pub(crate) struct LogHandle(pub(crate) Rc<WorkerLog>);

impl ExchangeLog for LogHandle {
    #[inline]
    fn push(&self, outcome: Outcome) {
        self.0.push(outcome);
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::{CapturedResponse, Exchange};
    use gake_core::work::Arrival;

    use super::*;

    /// An outcome whose response has a body of that size.
    fn outcome(number: u64, bytes: usize) -> Outcome {
        let kept =
            (bytes > 0).then(|| CapturedResponse { headers: Vec::new(), body: vec![0; bytes] });
        Outcome {
            arrival: Arrival { number, due: 0 },
            blocked: 0,
            fired: 0,
            exchange: Exchange { captured: kept.map(Box::new), ..Exchange::unfinished(0) },
        }
    }

    fn numbers(batch: &LogBatch) -> Vec<u64> {
        batch.iter().map(|outcome| outcome.arrival.number).collect()
    }

    #[test]
    fn waiting_bytes_are_bounded() {
        let (sender, receiver) = log_channel(100, 1_000);
        // Two workers share the capacity.
        let (one, other) = (WorkerLog::new(sender.clone()), WorkerLog::new(sender));
        let send = |log: &WorkerLog, number, bytes| {
            log.push(outcome(number, bytes));
            log.flush();
        };
        send(&one, 1, 600);
        send(&other, 2, 400);
        send(&one, 3, 1);
        send(&other, 4, 0);
        assert_eq!((one.lost.get(), other.lost.get()), (1, 0), "3 does not fit, 4 is empty");
        assert_eq!(numbers(&receiver.recv().unwrap()), [1]);
        send(&other, 5, 600);
        send(&one, 6, 600);
        assert_eq!((one.lost.get(), other.lost.get()), (2, 0), "1 has freed capacity for 5 only");
        for number in [2, 4, 5] {
            assert_eq!(numbers(&receiver.recv().unwrap()), [number]);
        }
        // A single batch may exceed the capacity.
        send(&one, 7, 5_000);
        assert_eq!(numbers(&receiver.recv().unwrap()), [7]);
        assert_eq!((one.finish(), other.finish()), (2, 0));
    }

    #[test]
    fn a_batch_is_limited_in_bytes_and_outcomes() {
        let (sender, receiver) = log_channel(100, usize::MAX);
        let log = WorkerLog::new(sender);
        log.push(outcome(0, 10));
        log.push(outcome(1, BATCH_BYTES));
        assert_eq!(receiver.try_recv().unwrap().len(), 2);
        (0..BATCH as u64).for_each(|number| log.push(outcome(number, 1)));
        assert_eq!(receiver.try_recv().unwrap().len(), BATCH);
        assert!(receiver.try_recv().is_err());
    }
}
