//! A request from its head to its end: whatever happens, it is counted once.

use std::sync::Arc;

use crate::connection::Connection;
use crate::pool::Slot;
use crate::worker::Worker;

/// A request that takes time, until it is dropped: its connection is not idle.
#[derive(Debug)]
pub(crate) struct Open(Arc<Connection>);

impl Open {
    pub(crate) fn new(connection: &Arc<Connection>) -> Open {
        connection.requests.open();
        Open(Arc::clone(connection))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.requests.close();
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

    pub(crate) fn worker(&self) -> &Worker {
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
