//! The thread for shadows beside a worker.

#![expect(
    unsafe_code,
    reason = "sched_setscheduler of the calling thread: rustix does not have it"
)]

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;

use super::lane_queue::LaneQueue;
use super::{Job, lane};
use crate::proxy::shared::Shared;
use crate::proxy::upstream::link::Scratch;
use crate::proxy::watch::Ticker;

/// How often the end is looked for while the last copies are under way.
const LOOK: Duration = Duration::from_millis(10);

/// Sends what comes until no more can come, and then until it is sent or `shared` says to stop.
pub(crate) async fn run(shared: Arc<Shared>, mut jobs: UnboundedReceiver<Vec<Job>>) {
    stand_back(shared.config.shadow_nice);
    let shortest = shared.shadows.iter().map(|backend| backend.config.timeout).min();
    let ticker = Ticker::new(shortest.unwrap_or(Duration::from_secs(1)));
    tokio::task::spawn_local(Rc::clone(&ticker).run());
    let scratch = Rc::new(Scratch::new());
    let queue = |shadow| Rc::new(LaneQueue::new(&shared, shadow, &ticker, &scratch));
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
        tokio::time::sleep(LOOK).await;
    }
}

/// Lets the clients' path go first on a busy machine. Standing lower is always allowed, and Linux
/// counts both for this thread alone.
fn stand_back(nice: u8) {
    if nice > 0 {
        let _ = rustix::process::nice(i32::from(nice));
    }
    // The kernel's `struct sched_param`. By the system call itself: musl's function refuses.
    let priority: libc::c_int = 0;
    let (call, class) = (libc::SYS_sched_setscheduler, libc::SCHED_BATCH);
    // A batch thread interrupts nobody when it is woken.
    // SAFETY: the call reads `priority` and keeps nothing; 0 is the calling thread.
    let _ = unsafe { libc::syscall(call, 0, class, &raw const priority) };
}
