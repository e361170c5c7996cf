//! The thread of a worker: its runtime, its preparation, its run.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use gake_core::work::Factory;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::oneshot;

use crate::message::WorkerContext;
use crate::scenario::ScenarioAssignment;
use crate::worker::{Worker, WorkerAssignment};
use crate::worker_tables::WorkerTables;

/// Yields to other tasks at the end of a worker; each runs up to 16 of them.
const LAST_TURNS: usize = 64;

/// The body of the workers' threads: the only part of a start that is compiled for each kind of
/// work.
#[derive(Clone)]
pub struct WorkerBody(Arc<dyn Fn(WorkerThread) + Send + Sync>);

impl fmt::Debug for WorkerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBody").finish_non_exhaustive()
    }
}

impl WorkerBody {
    /// `make` makes a factory for each scenario on the worker's thread.
    pub fn new<F, M>(make: M) -> Self
    where
        F: Factory + 'static,
        M: Fn(WorkerContext) -> F + Send + Sync + 'static,
    {
        Self(Arc::new(move |thread| thread.serve::<F>(&make)))
    }

    /// Runs a worker to its end on the calling thread.
    pub(crate) fn run(&self, thread: WorkerThread) {
        (self.0)(thread);
    }
}

/// Input of a worker's thread.
pub(crate) struct WorkerThread {
    pub(crate) ready: Sender<Result<(), String>>,
    /// Sent when the epoch is set.
    pub(crate) epoch: oneshot::Receiver<()>,
    /// Kept until the thread ends.
    pub(crate) tables: Option<WorkerTables>,
    pub(crate) assignment: WorkerAssignment,
}

impl WorkerThread {
    fn serve<F: Factory + 'static>(self, make: &dyn Fn(WorkerContext) -> F) {
        // By default, the kernel may delay wake-ups by 50 µs.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let Self { ready, epoch, tables, assignment } = self;
        let runtime = runtime();
        let table = tables.as_ref().map_or(Ok(()), WorkerTables::take);
        let runtime = match (runtime, table) {
            (Ok(runtime), Ok(())) => runtime,
            (Err(error), _) => {
                let error = format!("a worker's runtime could not be made: {error}");
                let _ = ready.send(Err(error));
                return;
            }
            (_, Err(error)) => {
                let error = format!("a worker's descriptor table could not be made: {error}");
                let _ = ready.send(Err(error));
                return;
            }
        };
        runtime.block_on(async move {
            let clock = assignment.clock.clone();
            let make = |one: &ScenarioAssignment| {
                let (scenario, slice) = (one.number, one.slice);
                make(WorkerContext { scenario, slice, clock: clock.clone() })
            };
            match Worker::prepare(assignment, make).await {
                Ok(prepared) => {
                    let _ = ready.send(Ok(()));
                    drop(ready);
                    // Dropped if another worker could not be prepared.
                    if epoch.await.is_ok() {
                        prepared.run().await;
                        finish_tasks().await;
                    }
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        });
    }
}

/// Lets aborted tasks send their last messages.
async fn finish_tasks() {
    for _ in 0..LAST_TURNS {
        tokio::task::yield_now().await;
    }
}

fn runtime() -> std::io::Result<LocalRuntime> {
    // Poll the I/O driver at least every 16 task polls, so that a burst of responses delays a due
    // arrival by at most the work of 16 responses.
    Builder::new_current_thread()
        .enable_all()
        .event_interval(16)
        .build_local(LocalOptions::default())
}
