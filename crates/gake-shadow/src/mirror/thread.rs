//! The shadow thread of a worker.

#![expect(
    unsafe_code,
    reason = "sched_setscheduler of the calling thread: rustix does not have it"
)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::lane_queue::LaneQueue;
use super::{CopyJob, lane};
use crate::proxy::deadline::Ticker;
use crate::proxy::state::ProxyState;

/// Polling interval during the drain.
const DRAIN_POLL: Duration = Duration::from_millis(10);

/// Sends copies until the channel is closed, then drains the queues.
pub(crate) async fn run(shared: Arc<ProxyState>, mut jobs: UnboundedReceiver<Vec<CopyJob>>) {
    lower_priority(shared.config.shadow_nice);
    let shortest = shared.shadows.iter().map(|backend| backend.config.timeout).min();
    let ticker = Ticker::new(shortest.unwrap_or(Duration::from_secs(1)));
    tokio::task::spawn_local(Rc::clone(&ticker).run());
    let queue = |shadow| Rc::new(LaneQueue::new(&shared, shadow, &ticker));
    let queues: Vec<_> = (0..shared.shadows.len()).map(queue).collect();
    while let Some(batch) = jobs.recv().await {
        for job in batch {
            let queue = &queues[job.ticket.shadow];
            if queue.push(job) {
                tokio::task::spawn_local(lane::run(Rc::clone(queue)));
            }
        }
    }
    while !queues.iter().all(|queue| queue.is_done())
        && shared.drain_ends().is_some_and(|end| Instant::now() < end)
    {
        tokio::time::sleep(DRAIN_POLL).await;
    }
}

/// Gives the clients' path priority on a busy machine. Lowering the priority is always allowed, and
/// on Linux both calls affect only this thread.
fn lower_priority(nice: u8) {
    if nice > 0 {
        let _ = rustix::process::nice(i32::from(nice));
    }
    // The kernel's `struct sched_param`. A raw system call, because musl's wrapper always fails.
    let priority: libc::c_int = 0;
    let (call, class) = (libc::SYS_sched_setscheduler, libc::SCHED_BATCH);
    // A batch thread does not preempt others when it is woken.
    // SAFETY: the call reads `priority` and keeps nothing; 0 is the calling thread.
    let _ = unsafe { libc::syscall(call, 0, class, &raw const priority) };
}
