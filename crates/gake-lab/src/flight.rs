//! The lifetime of a request: every request is counted exactly once.

use std::sync::Arc;

use crate::connection::HttpConnection;
use crate::pool::WorkerSlot;
use crate::worker::Worker;

/// Keeps its connection from being idle until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest(Arc<HttpConnection>);

impl OpenRequest {
    pub(crate) fn new(connection: &Arc<HttpConnection>) -> OpenRequest {
        connection.requests.open();
        OpenRequest(Arc::clone(connection))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.requests.close();
    }
}

/// A request in flight. Dropped without an end it counts as aborted, or as unfinished when the lab
/// stops.
#[derive(Debug)]
pub(crate) struct Flight {
    open: OpenRequest,
    slot: Option<WorkerSlot>,
    is_ended: bool,
}

impl Flight {
    pub(crate) fn new(connection: &Arc<HttpConnection>) -> Flight {
        Flight { open: OpenRequest::new(connection), slot: None, is_ended: false }
    }

    pub(crate) fn worker(&self) -> &Worker {
        &self.open.0.worker
    }

    /// Holds the worker slot until the request ends.
    pub(crate) fn hold(&mut self, slot: WorkerSlot) {
        self.slot = Some(slot);
    }

    /// The response was handed over whole.
    pub(crate) fn responded(mut self, status: u16) {
        self.is_ended = true;
        self.worker().counters().responded(status);
    }

    /// The response was aborted on purpose.
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
