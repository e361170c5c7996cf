//! Sends copies of requests to the shadows, on separate threads.

pub(crate) mod backend;
pub(crate) mod copy_plan;
mod copy_writer;
mod exchange;
pub(crate) mod gate;
mod http1;
mod http2;
mod lane;
mod lane_queue;
pub(crate) mod ledger;
pub(crate) mod thread;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::collect::OutcomeSlot;
use crate::exchange::BackendFailure;
use crate::message::body::ShadowRequest;
use crate::proxy::deadline::{Deadline, before};
use crate::proxy::state::ProxyState;
use backend::ShadowBackend;
use ledger::{Category, LedgerPage};

/// Copies in a batch that is sent without waiting for a response.
const BATCH: usize = 32;
/// Ticks that a batch waits for a response. A finer timer would cost a system call per batch.
const BATCH_TICKS: u64 = 1;

/// A worker's sender of copies; never blocks.
///
/// Copies go to the shadow thread in batches: waking a thread is a system call, and on a busy
/// machine the thread takes a core from master and client. A batch is sent when a response has
/// reached its client, or when the batch is old or large enough.
#[derive(Debug)]
pub(crate) struct Mirror {
    origin: Arc<CopyOrigin>,
    batch: RefCell<Vec<CopyJob>>,
    begun: Notify,
    due: Notify,
    jobs: UnboundedSender<Vec<CopyJob>>,
}

/// The worker that copies come from. Each copy holds a reference: a count per worker, because one
/// shared by all would move between the caches of the cores with each copy.
#[derive(Debug)]
struct CopyOrigin {
    shared: Arc<ProxyState>,
    worker: usize,
}

/// A queued copy. The gate bounds the queue, so the channel need not.
#[derive(Debug)]
pub(crate) struct CopyJob {
    pub(crate) request: Arc<ShadowRequest>,
    pub(crate) ticket: CopyTicket,
    pub(crate) slot: Option<Box<OutcomeSlot>>,
}

/// A copy's entry in the ledger and its reservation in the queue, settled on drop at the latest.
#[derive(Debug)]
pub(crate) struct CopyTicket {
    origin: Arc<CopyOrigin>,
    pub(crate) shadow: usize,
    bytes: u64,
    waiting: bool,
    ended: bool,
}

impl CopyTicket {
    pub(crate) fn backend(&self) -> &ShadowBackend {
        &self.origin.shared.shadows[self.shadow]
    }

    /// Frees the copy's place in the queue.
    pub(crate) fn dequeue(&mut self) {
        if std::mem::take(&mut self.waiting) {
            self.backend().gate.left_queue();
        }
    }

    pub(crate) fn record_response(&self, status: u16, bytes: u64) {
        self.backend().mirror_page(self.origin.worker).record_response(status, bytes);
    }

    pub(crate) fn end(mut self, category: Category) {
        self.settle(category);
    }

    fn settle(&mut self, category: Category) {
        self.dequeue();
        self.ended = true;
        let backend = self.backend();
        backend.gate.ended(self.bytes);
        backend.mirror_page(self.origin.worker).end(category);
        match category {
            Category::Ok | Category::Cut => backend.gate.record_result(true),
            Category::Timeout | Category::ConnErr => backend.gate.record_result(false),
            _ => {}
        }
    }
}

impl Drop for CopyTicket {
    fn drop(&mut self) {
        if !self.ended {
            self.settle(Category::Unfinished);
        }
    }
}

impl Mirror {
    pub(crate) fn new(
        shared: Arc<ProxyState>,
        worker: usize,
        jobs: UnboundedSender<Vec<CopyJob>>,
    ) -> Self {
        let (begun, due) = (Notify::new(), Notify::new());
        let origin = Arc::new(CopyOrigin { shared, worker });
        Self { origin, batch: RefCell::default(), begun, due, jobs }
    }

    /// Sends batches until dropped.
    pub(crate) async fn run_batches(self: Rc<Self>, deadline: Deadline) {
        loop {
            self.begun.notified().await;
            // Due or timed out.
            deadline.set(BATCH_TICKS);
            let _ = before(&deadline, self.due.notified()).await;
            deadline.clear();
            self.flush_batch();
        }
    }

    pub(crate) fn response_sent(&self) {
        if !self.batch.borrow().is_empty() {
            self.due.notify_one();
        }
    }

    fn flush_batch(&self) {
        let batch = std::mem::take(&mut *self.batch.borrow_mut());
        // Without the thread the jobs are dropped, which settles their tickets.
        let _ = self.jobs.send(batch);
    }

    fn page(&self, shadow: usize) -> &LedgerPage {
        self.origin.shared.shadows[shadow].worker_page(self.origin.worker)
    }

    /// Queues a copy, unless the shadow's gate refuses it.
    fn send(&self, request: Arc<ShadowRequest>, shadow: usize, slot: Option<Box<OutcomeSlot>>) {
        let backend = &self.origin.shared.shadows[shadow];
        let bytes = request.body.len;
        if let Err(category) = backend.gate.admit(&backend.config, bytes) {
            return self.end(shadow, slot, category);
        }
        let origin = Arc::clone(&self.origin);
        let ticket = CopyTicket { origin, shadow, bytes, waiting: true, ended: false };
        let mut batch = self.batch.borrow_mut();
        batch.push(CopyJob { request, ticket, slot });
        if batch.len() == 1 {
            self.begun.notify_one();
        }
        // Batched copies count as queued: a short queue must not fill up while lanes are free.
        if batch.len() == BATCH || backend.gate.waiting() >= backend.config.queue.div_ceil(2) {
            self.due.notify_one();
        }
    }

    fn end(&self, shadow: usize, slot: Option<Box<OutcomeSlot>>, category: Category) {
        self.page(shadow).end(category);
        if let Some(slot) = slot {
            slot.failed(BackendFailure::NotSent(category.name()));
        }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.flush_batch();
    }
}

/// Copies of a request that is still being received, with open entries in the ledger.
#[derive(Debug)]
pub(crate) struct PendingCopies {
    mirror: Rc<Mirror>,
    /// A bit per shadow.
    shadows: u32,
    #[allow(clippy::vec_box, reason = "each box moves on to the sender of its copy")]
    slots: Vec<Box<OutcomeSlot>>,
}

impl PendingCopies {
    /// Opens an entry for each selected shadow; `slots` are in the same order, or empty.
    #[allow(clippy::vec_box, reason = "each box moves on to the sender of its copy")]
    pub(crate) fn new(mirror: &Rc<Mirror>, shadows: u32, slots: Vec<Box<OutcomeSlot>>) -> Self {
        for shadow in bits(shadows) {
            mirror.page(shadow).start();
        }
        Self { mirror: Rc::clone(mirror), shadows, slots }
    }

    /// Sends the copies of the complete request.
    pub(crate) fn send(mut self, request: &Arc<ShadowRequest>) {
        let mut slots = std::mem::take(&mut self.slots).into_iter();
        for shadow in bits(std::mem::take(&mut self.shadows)) {
            self.mirror.send(Arc::clone(request), shadow, slots.next());
        }
    }

    pub(crate) fn oversize(mut self) {
        self.settle(Category::Oversize);
    }

    pub(crate) fn abort(mut self) {
        self.settle(Category::Aborted);
    }

    fn settle(&mut self, category: Category) {
        let mut slots = std::mem::take(&mut self.slots).into_iter();
        for shadow in bits(std::mem::take(&mut self.shadows)) {
            self.mirror.end(shadow, slots.next(), category);
        }
    }
}

impl Drop for PendingCopies {
    fn drop(&mut self) {
        self.settle(Category::Aborted);
    }
}

/// The indices of the set bits.
pub(crate) fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (bit < u32::BITS).then_some(bit as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_in_order() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(0b1000_0101 | 1 << 31).collect::<Vec<_>>(), [0, 2, 7, 31]);
    }
}
