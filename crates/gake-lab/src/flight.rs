//! A request from its head to its end: whatever happens, it is counted once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::connection::Connection;
use crate::pool::Slot;
use crate::worker::Worker;

/// The requests of one connection: how many came, and how many are not answered. Only the
/// connection's own task writes them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    begun: AtomicU32,
    open: AtomicU32,
}

impl Requests {
    /// A request has come.
    pub(crate) fn begin(&self) {
        self.begun.store(self.begun.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// How many have come, modulo 2^32.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }

    /// Whether none is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Relaxed) == 0
    }
}

/// A request that takes time, until it is dropped: its connection is not idle.
#[derive(Debug)]
pub(crate) struct Open(Arc<Connection>);

impl Open {
    pub(crate) fn new(connection: &Arc<Connection>) -> Open {
        connection.requests.open.fetch_add(1, Relaxed);
        Open(Arc::clone(connection))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.requests.open.fetch_sub(1, Relaxed);
    }
}

/// A request that has begun and not ended. Dropped without having been ended
/// it counts as aborted, or as unfinished when the lab stops.
#[derive(Debug)]
pub(crate) struct Flight {
    open: Open,
    slot: Option<Slot>,
    is_ended: bool,
}

impl Flight {
    pub(crate) fn new(connection: &Arc<Connection>) -> Flight {
        Flight { open: Open::new(connection), slot: None, is_ended: false }
    }

    fn worker(&self) -> &Worker {
        &self.open.0.worker
    }

    /// The worker slot is held until the request ends.
    pub(crate) fn hold(&mut self, slot: Slot) {
        self.slot = Some(slot);
    }

    /// Its answer was handed over whole.
    pub(crate) fn answered(mut self, status: u16) {
        self.is_ended = true;
        self.worker().counters().answered(status);
    }

    /// Its answer was broken off on purpose.
    pub(crate) fn cut(mut self) {
        self.is_ended = true;
        self.worker().counters().cut();
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.is_ended {
        } else if self.worker().shared.is_stopping() {
            self.worker().counters().unfinished();
        } else {
            self.worker().counters().aborted();
        }
    }
}
