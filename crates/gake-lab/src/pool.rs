//! The thread-pool model: who may be served, and for how long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::abort::Cut;
use crate::worker::Worker;

/// A worker of the pool that serves a request; free again when dropped.
/// Without a pool it only counts.
#[derive(Debug)]
pub(crate) struct Slot {
    worker: Arc<Worker>,
    permit: Option<OwnedSemaphorePermit>,
    place: Option<OwnedSemaphorePermit>,
    /// It is never free again.
    is_leaked: bool,
}

/// A place among those served and those that wait; `None` when all are taken.
pub(crate) fn place(worker: &Worker) -> Option<Place> {
    match &worker.shared.queue {
        None => Some(Place(None)),
        Some(queue) => Arc::clone(queue).try_acquire_owned().ok().map(|permit| Place(Some(permit))),
    }
}

/// A place in the queue; free again when dropped.
#[derive(Debug)]
pub(crate) struct Place(Option<OwnedSemaphorePermit>);

/// Waits for a worker, then lets it serve for the service time and `delay`
/// together. The slot that comes back is held until the answer is handed over.
///
/// With a pool this goes on in a task of its own, which dropping the future
/// does not end: a thread that blocks in its work does not see that its client
/// has gone, and a request that waits in the queue is only found abandoned when
/// somebody writes its answer. That wasted work is what makes an overloaded
/// server stay overloaded, so the model has it.
pub(crate) async fn hold(worker: &Arc<Worker>, delay: Duration, place: Place) -> Result<Slot, Cut> {
    let service = worker.shared.draw_service();
    // Zero counts as a service time when it was drawn.
    let work = (service.is_some() || !delay.is_zero()).then(|| service.unwrap_or_default() + delay);
    let Some(pool) = &worker.shared.pool else {
        return Ok(serve(Slot::take(worker, None, place), work).await);
    };
    if work.is_none()
        && let Ok(permit) = Arc::clone(pool).try_acquire_owned()
    {
        // It does not overtake: a permit is to be had only when nobody waits.
        return Ok(Slot::take(worker, Some(permit), place));
    }
    let task = queue_and_serve(Arc::clone(worker), Arc::clone(pool), work, place);
    // The task ends early only when the lab stops.
    tokio::spawn(task).await.ok().flatten().ok_or(Cut::Gone)
}

async fn queue_and_serve(
    worker: Arc<Worker>,
    pool: Arc<Semaphore>,
    work: Option<Duration>,
    place: Place,
) -> Option<Slot> {
    let waiting = Waiting::begin(&worker);
    let begun = Instant::now();
    let permit = pool.acquire_owned().await.ok()?;
    drop(waiting);
    let factor = worker.shared.metastable.as_ref().map(|state| {
        let now = Instant::now();
        state.waited(now - begun, now);
        state.factor(now)
    });
    let work = work.map(|work| factor.map_or(work, |factor| work.mul_f64(factor)));
    Some(serve(Slot::take(&worker, Some(permit), place), work).await)
}

async fn serve(slot: Slot, work: Option<Duration>) -> Slot {
    if let Some(work) = work {
        let begun = Instant::now();
        slot.worker.timer.sleep_until(begun + work).await;
        slot.worker.counters().served(begun.elapsed());
    }
    slot
}

impl Slot {
    fn take(worker: &Arc<Worker>, permit: Option<OwnedSemaphorePermit>, place: Place) -> Slot {
        worker.counters().slot_taken.add(1);
        let is_leaked = worker.shared.leaks();
        Slot { worker: Arc::clone(worker), permit, place: place.0, is_leaked }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.is_leaked {
            [self.permit.take(), self.place.take()].into_iter().flatten().for_each(|p| p.forget());
        } else {
            self.worker.counters().slot_freed.add(1);
        }
    }
}

/// Counts a request as waiting for as long as it lives.
struct Waiting(Arc<Worker>);

impl Waiting {
    fn begin(worker: &Arc<Worker>) -> Waiting {
        worker.counters().wait_begun.add(1);
        Waiting(Arc::clone(worker))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.counters().wait_ended.add(1);
    }
}
