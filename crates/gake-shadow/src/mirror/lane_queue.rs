//! The queue of one shadow's copies on one thread, and its lanes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use super::CopyJob;
use crate::proxy::deadline::Ticker;
use crate::proxy::http2::shared_streams::SharedStreams;
use crate::proxy::state::ProxyState;
use crate::proxy::upstream::link::Scratch;

pub(super) struct LaneQueue {
    pub(super) shared: Arc<ProxyState>,
    pub(super) shadow: usize,
    pub(super) ticker: Rc<Ticker>,
    /// Of this shadow only, for the heads of others are different.
    pub(super) scratch: Scratch,
    /// Connections, if the shadow speaks HTTP/2.
    pub(super) streams: SharedStreams,
    waiting: RefCell<VecDeque<CopyJob>>,
    work: Notify,
    lanes: Cell<usize>,
    idle: Cell<usize>,
    lanes_max: usize,
}

impl LaneQueue {
    pub(super) fn new(shared: &Arc<ProxyState>, shadow: usize, ticker: &Rc<Ticker>) -> Self {
        let connections = shared.shadows[shadow].config.connections;
        Self {
            shared: Arc::clone(shared),
            shadow,
            ticker: Rc::clone(ticker),
            scratch: Scratch::new(),
            streams: SharedStreams::new(ticker.ticks(shared.config.timeouts.idle)),
            waiting: RefCell::default(),
            work: Notify::new(),
            lanes: Cell::new(0),
            idle: Cell::new(0),
            lanes_max: connections.div_ceil(shared.workers()),
        }
    }

    /// Waits for the next copy.
    pub(super) async fn next(&self) -> CopyJob {
        loop {
            if let Some(job) = self.waiting.borrow_mut().pop_front() {
                return job;
            }
            self.idle.set(self.idle.get() + 1);
            self.work.notified().await;
            self.idle.set(self.idle.get() - 1);
        }
    }

    /// Queues a copy. Returns whether it needs another lane.
    pub(super) fn push(&self, job: CopyJob) -> bool {
        self.waiting.borrow_mut().push_back(job);
        let waiting = self.waiting.borrow().len();
        let needs_lane = waiting > self.idle.get() && self.lanes.get() < self.lanes_max;
        if needs_lane {
            self.lanes.set(self.lanes.get() + 1);
        } else {
            // The most recently used lane, so that the other connections can become idle.
            self.work.notify_last();
        }
        needs_lane
    }

    /// Whether all copies have been sent.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.borrow().is_empty() && self.idle.get() == self.lanes.get()
    }
}
