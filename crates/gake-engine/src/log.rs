//! The optional log of every outcome: batches over a bounded channel.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{SyncSender, TrySendError};

use gake_core::record::Outcome;

/// Outcomes in a batch.
const BATCH: usize = 2_048;

/// Where a worker's outcomes go when every request is logged.
pub type LogSender = SyncSender<Vec<Outcome>>;

/// One worker's end of the log. A writer that is too slow loses outcomes, counted, and never
/// delays the load.
#[derive(Debug)]
pub(crate) struct Log {
    sender: LogSender,
    batch: RefCell<Vec<Outcome>>,
    lost: Cell<u64>,
}

impl Log {
    pub(crate) fn new(sender: LogSender) -> Self {
        Self { sender, batch: RefCell::new(Vec::with_capacity(BATCH)), lost: Cell::new(0) }
    }

    #[inline]
    pub(crate) fn push(&self, outcome: Outcome) {
        let mut batch = self.batch.borrow_mut();
        batch.push(outcome);
        if batch.len() == BATCH {
            drop(batch);
            self.flush();
        }
    }

    /// Hands over what is there.
    pub(crate) fn flush(&self) {
        if self.batch.borrow().is_empty() {
            return;
        }
        let full = self.batch.replace(Vec::with_capacity(BATCH));
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) =
            self.sender.try_send(full)
        {
            self.lost.set(self.lost.get() + batch.len() as u64);
        }
    }

    /// Hands over the rest, and waits for room: the load is over. Returns how many were lost.
    pub(crate) fn finish(&self) -> u64 {
        if let Err(rest) = self.sender.send(self.batch.take()) {
            self.lost.set(self.lost.get() + rest.0.len() as u64);
        }
        self.lost.get()
    }
}
