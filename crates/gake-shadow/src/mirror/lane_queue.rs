//! Copies that wait for a free lane to one shadow, on one thread.

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

/// One shadow on one thread.
pub(super) struct LaneQueue {
    pub(super) shared: Arc<ProxyState>,
    pub(super) shadow: usize,
    pub(super) ticker: Rc<Ticker>,
    pub(super) scratch: Rc<Scratch>,
    /// Connections to a shadow that speaks HTTP/2.
    pub(super) streams: SharedStreams,
    waiting: RefCell<VecDeque<CopyJob>>,
    work: Notify,
    lanes: Cell<usize>,
    idle: Cell<usize>,
    lanes_max: usize,
}

impl LaneQueue {
    pub(super) fn new(
        shared: &Arc<ProxyState>,
        shadow: usize,
        ticker: &Rc<Ticker>,
        scratch: &Rc<Scratch>,
    ) -> Self {
        let connections = shared.shadows[shadow].config.connections;
        Self {
            shared: Arc::clone(shared),
            shadow,
            ticker: Rc::clone(ticker),
            scratch: Rc::clone(scratch),
            streams: SharedStreams::new(ticker.ticks(shared.config.timeouts.idle)),
            waiting: RefCell::default(),
            work: Notify::new(),
            lanes: Cell::new(0),
            idle: Cell::new(0),
            lanes_max: connections.div_ceil(shared.workers()),
        }
    }

    /// The next copy, as soon as there is one.
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

    /// Takes a copy; whether one more lane is needed for it.
    pub(super) fn push(&self, job: CopyJob) -> bool {
        self.waiting.borrow_mut().push_back(job);
        let waiting = self.waiting.borrow().len();
        let is_short = waiting > self.idle.get() && self.lanes.get() < self.lanes_max;
        if is_short {
            self.lanes.set(self.lanes.get() + 1);
        } else {
            // The one that was used last: the others' connections may grow cold and close.
            self.work.notify_last();
        }
        is_short
    }

    /// Whether all that came was sent.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.borrow().is_empty() && self.idle.get() == self.lanes.get()
    }
}
