//! Starting a run in this process.

#![expect(
    unsafe_code,
    reason = "own_table of the thread that starts workers with a descriptor table each"
)]

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_files::own_table;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::clock::monotonic_now;
use crate::control::{Stop, StopHandle};
use crate::log::LogSender;
use crate::prepare::{RunHandle, StartError, prepare, prepare_workers};
use crate::takeover::Takeover;
use crate::worker_tables::{WorkerTables, WorkersAlive};
use crate::worker_thread::WorkerBody;

/// Time until the epoch when workers are notified, so that all start together: this, and a wake-up
/// each, up to a bound.
const LEAD: Nanos = 500_000;
const WAKE_UP: Nanos = 50_000;
const LEAD_MAX: Nanos = 2_000_000;

/// The epoch of workers that are notified now.
fn epoch(workers: usize) -> Nanos {
    monotonic_now() + (LEAD + WAKE_UP * workers as Nanos).min(LEAD_MAX)
}

/// Starts a run on `plan.threads` workers, no more than lanes; or on at least `plan.tables` workers
/// with descriptor tables of their own. All exchanges also go to `log`, if there is one. Returns
/// shortly before the epoch.
///
/// With several tables, rates and numbers of users cannot be changed, and nothing is taken over.
///
/// # Errors
/// When a worker cannot be prepared; nothing has been sent.
pub fn start(
    plan: &Arc<Plan>,
    seed: u64,
    log: Option<LogSender>,
    body: WorkerBody,
) -> Result<RunHandle, StartError> {
    if plan.tables > 1 {
        return start_apart(plan, seed, log, body);
    }
    let ready = prepare(plan, seed, Slice::WHOLE, log, body)?;
    let epoch = epoch(ready.workers());
    Ok(ready.start_at(epoch))
}

/// Starts workers with descriptor tables of their own.
///
/// A worker's runtime can only be woken by a thread whose table has its descriptors. A starter
/// thread is that thread: the workers' tables are copies of its table, which ends with the run.
fn start_apart(
    plan: &Arc<Plan>,
    seed: u64,
    log: Option<LogSender>,
    body: WorkerBody,
) -> Result<RunHandle, StartError> {
    // Without an I/O driver it has no descriptors, and any thread can wake it.
    let relay = Builder::new_current_thread().build().map_err(StartError::Thread)?;
    // The first runtime with an I/O driver creates descriptors shared by all: they belong in all
    // tables.
    first_runtime().map_err(StartError::Thread)?;
    let (stop, asked) = StopHandle::new();
    let (started_sender, started) = channel();
    let (plan, scenarios) = (Arc::clone(plan), plan.scenarios().len());
    let starter = move || {
        let workers = plan.workers();
        let (tables, working) = WorkerTables::new(workers);
        // SAFETY: this thread only uses descriptors of runtimes created in its table.
        let table = unsafe { own_table() }.map_err(StartError::Thread);
        let ready = table.and_then(|()| {
            prepare_workers(&plan, seed, (Slice::WHOLE, workers), log, body, Some(tables))
        });
        let running = match ready {
            Ok(ready) => ready.start_at(epoch(workers)),
            Err(error) => {
                let _ = started_sender.send(Err(error));
                return;
            }
        };
        let RunHandle { messages, workers, spares, stop, users, takeover, clock, .. } = running;
        let RunHandle { memory, threads, watchdog, .. } = running;
        let _ = started_sender.send(Ok((messages, workers, spares, clock, memory, watchdog)));
        relay.block_on(pass_on(asked, &stop, working));
        for thread in threads {
            // The receiver notices a panic by the missing end.
            let _ = thread.join();
        }
        drop((users, takeover));
    };
    let starter = std::thread::Builder::new().name("gake-starter".to_owned()).spawn(starter);
    let threads = vec![starter.map_err(StartError::Thread)?];
    let ended = || StartError::Worker("the workers' thread ended before the run".to_owned());
    let (messages, workers, spares, clock, memory, watchdog) =
        started.recv().map_err(|_| ended())??;
    let (users, takeover) = (vec![None; scenarios], Takeover::default());
    let rate = None;
    Ok(RunHandle {
        messages,
        workers,
        spares,
        stop,
        users,
        takeover,
        rate,
        clock,
        memory,
        threads,
        watchdog,
    })
}

fn first_runtime() -> io::Result<()> {
    Builder::new_current_thread().enable_all().build().map(|_: Runtime| ())
}

/// Forwards stop requests to the workers, until they have ended.
async fn pass_on(mut asked: watch::Receiver<Stop>, stop: &StopHandle, mut working: WorkersAlive) {
    loop {
        tokio::select! {
            () = working.ended() => return,
            changed = asked.changed() => match changed {
                Ok(()) => stop.stop(*asked.borrow_and_update()),
                // The requester is gone.
                Err(_) => return working.ended().await,
            },
        }
    }
}
