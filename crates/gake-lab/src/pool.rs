//! The thread-pool model: a bounded queue for a bounded number of workers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::abort::Abort;
use crate::worker::Worker;

/// A worker serving a request; dropping it frees the worker. Without a pool it only counts.
#[derive(Debug)]
pub(crate) struct WorkerSlot {
    worker: Arc<Worker>,
    permit: Option<OwnedSemaphorePermit>,
    queue_permit: Option<OwnedSemaphorePermit>,
    /// The worker is never freed.
    is_leaked: bool,
}

/// Admits a request; `None` when the workers and the queue are full.
pub(crate) fn admit(worker: &Worker) -> Option<QueuePermit> {
    match &worker.shared.queue {
        None => Some(QueuePermit(None)),
        Some(queue) => {
            Arc::clone(queue).try_acquire_owned().ok().map(|permit| QueuePermit(Some(permit)))
        }
    }
}

/// Permission to be served or to queue; dropping it frees the place.
#[derive(Debug)]
pub(crate) struct QueuePermit(Option<OwnedSemaphorePermit>);

/// Waits for a worker, which then serves for the service time plus `delay`. The slot is held until
/// the response is handed over.
///
/// With a pool this runs in a task that outlives the future: a blocking thread does not notice a
/// disconnect, and an abandoned request is only discovered when its response is written. The model
/// includes that wasted work because it is what keeps an overloaded server overloaded.
pub(crate) async fn hold(
    worker: &Arc<Worker>,
    delay: Duration,
    queue_permit: QueuePermit,
) -> Result<WorkerSlot, Abort> {
    let service = worker.shared.draw_service();
    // A drawn zero still counts as a service time.
    let work = (service.is_some() || !delay.is_zero()).then(|| service.unwrap_or_default() + delay);
    let Some(pool) = &worker.shared.pool else {
        return Ok(serve(WorkerSlot::take(worker, None, queue_permit), work).await);
    };
    if work.is_none()
        && let Ok(permit) = Arc::clone(pool).try_acquire_owned()
    {
        // No overtaking: a permit is free only when the queue is empty.
        return Ok(WorkerSlot::take(worker, Some(permit), queue_permit));
    }
    let task = queue_and_serve(Arc::clone(worker), Arc::clone(pool), work, queue_permit);
    // The task ends early only when the lab stops.
    tokio::spawn(task).await.ok().flatten().ok_or(Abort::Gone)
}

async fn queue_and_serve(
    worker: Arc<Worker>,
    pool: Arc<Semaphore>,
    work: Option<Duration>,
    queue_permit: QueuePermit,
) -> Option<WorkerSlot> {
    let waiting = QueuedRequest::begin(&worker);
    let begun = Instant::now();
    let permit = pool.acquire_owned().await.ok()?;
    drop(waiting);
    let factor = worker.shared.metastable.as_ref().map(|state| {
        let now = Instant::now();
        state.waited(now - begun, now);
        state.factor(now)
    });
    let work = work.map(|work| factor.map_or(work, |factor| work.mul_f64(factor)));
    Some(serve(WorkerSlot::take(&worker, Some(permit), queue_permit), work).await)
}

async fn serve(slot: WorkerSlot, work: Option<Duration>) -> WorkerSlot {
    if let Some(work) = work {
        let begun = Instant::now();
        slot.worker.timer.sleep_until(begun + work).await;
        slot.worker.counters().served(begun.elapsed());
    }
    slot
}

impl WorkerSlot {
    fn take(
        worker: &Arc<Worker>,
        permit: Option<OwnedSemaphorePermit>,
        queue_permit: QueuePermit,
    ) -> WorkerSlot {
        worker.counters().slot_taken.add(1);
        let is_leaked = worker.shared.leaks();
        WorkerSlot { worker: Arc::clone(worker), permit, queue_permit: queue_permit.0, is_leaked }
    }
}

impl Drop for WorkerSlot {
    fn drop(&mut self) {
        if self.is_leaked {
            [self.permit.take(), self.queue_permit.take()]
                .into_iter()
                .flatten()
                .for_each(|p| p.forget());
        } else {
            self.worker.counters().slot_freed.add(1);
        }
    }
}

/// Counts a request as waiting while it lives.
struct QueuedRequest(Arc<Worker>);

impl QueuedRequest {
    fn begin(worker: &Arc<Worker>) -> QueuedRequest {
        worker.counters().wait_begun.add(1);
        QueuedRequest(Arc::clone(worker))
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        self.0.counters().wait_ended.add(1);
    }
}
