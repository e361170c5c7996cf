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
use gake_core::work::Factory;
use gake_files::own_table;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::clock::monotonic_now;
use crate::control::{Stop, StopHandle};
use crate::log::LogSender;
use crate::message::WorkerContext;
use crate::ready::{Running, StartError, prepare, prepare_workers};
use crate::table::{OwnTables, Working};
use crate::takeover::Takeover;

/// The epoch lies this far ahead when the workers are told, so that all start at the same time.
const LEAD: Nanos = 2_000_000;

/// Starts a run: `plan.threads` workers (no more than lanes), or `plan.tables` if these are more,
/// with a descriptor table each. Each has a factory per scenario, which `make` makes on the worker's
/// own thread. Poisson arrivals follow `seed`. Every exchange also goes to `log`, if there is one.
/// Returns when every worker is ready, shortly before the epoch.
///
/// With a table each, rates and the number of users cannot be changed from outside, and nothing is
/// taken over.
///
/// # Errors
/// When a worker cannot be made ready; nothing has been sent then.
pub fn start<F, M>(
    plan: &Arc<Plan>,
    seed: u64,
    log: Option<LogSender>,
    make: M,
) -> Result<Running, StartError>
where
    F: Factory + 'static,
    M: Fn(WorkerContext) -> F + Send + Sync + 'static,
{
    if plan.tables > 1 {
        return start_apart(plan, seed, log, make);
    }
    let ready = prepare(plan, seed, Slice::WHOLE, log, make)?;
    Ok(ready.start_at(monotonic_now() + LEAD))
}

/// Starts workers with a descriptor table each.
///
/// Only a thread whose table has the descriptors of a worker's runtime can wake it. One is started
/// for that: its table is what the workers' tables are copies of, and ends with the run, so that
/// nothing of the runtimes is left in the process's.
fn start_apart<F, M>(
    plan: &Arc<Plan>,
    seed: u64,
    log: Option<LogSender>,
    make: M,
) -> Result<Running, StartError>
where
    F: Factory + 'static,
    M: Fn(WorkerContext) -> F + Send + Sync + 'static,
{
    // Without events of its own it sleeps without any descriptor, and everybody can wake it.
    let relay = Builder::new_current_thread().build().map_err(StartError::Thread)?;
    // What tokio's runtimes share is made with the first one that waits for events, and belongs to
    // every table.
    first_runtime().map_err(StartError::Thread)?;
    let (stop, asked) = StopHandle::new();
    let (started_sender, started) = channel();
    let (plan, scenarios) = (Arc::clone(plan), plan.scenarios().len());
    let starter = move || {
        let workers = plan.workers();
        let (tables, working) = OwnTables::new(workers);
        // SAFETY: this thread uses no descriptor but those of runtimes made in its table.
        let table = unsafe { own_table() }.map_err(StartError::Thread);
        let ready = table.and_then(|()| {
            let part = (Slice::WHOLE, workers);
            prepare_workers(&plan, seed, part, log, make, Some(tables))
        });
        let running = match ready {
            Ok(ready) => ready.start_at(monotonic_now() + LEAD),
            Err(error) => {
                let _ = started_sender.send(Err(error));
                return;
            }
        };
        let Running { messages, workers, spares, stop, users, takeover, clock, .. } = running;
        let Running { memory, threads, .. } = running;
        let _ = started_sender.send(Ok((messages, workers, spares, clock, memory)));
        relay.block_on(pass_on(asked, &stop, working));
        for thread in threads {
            // A worker that panicked has not sent its end, which the receiver notices.
            let _ = thread.join();
        }
        drop((users, takeover));
    };
    let starter = std::thread::Builder::new().name("gake-starter".to_owned()).spawn(starter);
    let threads = vec![starter.map_err(StartError::Thread)?];
    let ended = || StartError::Worker("the workers' thread ended before the run".to_owned());
    let (messages, workers, spares, clock, memory) = started.recv().map_err(|_| ended())??;
    let (users, takeover) = (vec![None; scenarios], Takeover::default());
    let rate = None;
    Ok(Running { messages, workers, spares, stop, users, takeover, rate, clock, memory, threads })
}

fn first_runtime() -> io::Result<()> {
    Builder::new_current_thread().enable_all().build().map(|_: Runtime| ())
}

/// Passes requests to stop on to the workers, until they have ended.
async fn pass_on(mut asked: watch::Receiver<Stop>, stop: &StopHandle, mut working: Working) {
    loop {
        tokio::select! {
            () = working.ended() => return,
            changed = asked.changed() => match changed {
                Ok(()) => stop.stop(*asked.borrow_and_update()),
                // Nobody is left who could ask.
                Err(_) => return working.ended().await,
            },
        }
    }
}
