//! Starting the workers of a run, and what they tell.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::{Interval, Tally};
use gake_core::work::Factory;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::clock::RunClock;
use crate::control::StopHandle;
use crate::log::LogSender;
use crate::worker::{self, Duty};

/// The epoch lies this far ahead when the workers are told, so that all start at the same time.
const LEAD: Nanos = 2_000_000;

/// Intervals that may wait for the receiver; past that, workers keep theirs a second longer.
const EVENTS_PER_WORKER: usize = 4;

/// What a worker tells.
#[derive(Debug)]
pub enum Event {
    /// About once a second: what was recorded.
    Interval(Box<Interval>),
    /// Its last words. Every interval came before.
    Ended {
        /// The worker.
        worker: usize,
        /// When no more arrivals came.
        arrivals_end: Nanos,
        /// When the last one was fired.
        last_fired: Nanos,
        /// When the last one was answered or failed; what was given up is not of those.
        last_ended: Nanos,
        /// When its last outcome was recorded.
        done: Nanos,
        /// Outcomes that the log could not take in time.
        log_lost: u64,
    },
    /// It could not run, and why.
    Failed(String),
}

/// What a worker's factory is made from.
#[derive(Debug, Clone, Copy)]
pub struct WorkerContext {
    /// The worker's number.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
    /// The run's clock.
    pub clock: RunClock,
}

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No thread.
    #[error("a worker thread could not be started: {0}")]
    Thread(std::io::Error),
    /// No runtime.
    #[error("a worker's runtime could not be made: {0}")]
    Runtime(String),
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running {
    /// What the workers tell, in order for each worker.
    pub events: Receiver<Event>,
    /// Cleared tallies given back are used again.
    pub spares: Vec<Sender<Tally>>,
    /// Ends the run early.
    pub stop: StopHandle,
    /// The run's clock.
    pub clock: RunClock,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Waits for the workers' threads. Receive their events first.
    pub fn join(self) {
        drop(self.events);
        for thread in self.threads {
            // A worker that panicked has not sent its end, which the receiver has noticed.
            let _ = thread.join();
        }
    }
}

/// Starts a run: `plan.threads` workers (no more than connections), each with what `make` makes on
/// its own thread. Poisson arrivals follow `seed`. Every outcome also goes to `log` when there is
/// one.
///
/// # Errors
/// When a thread or its runtime cannot be made; nothing has been sent then.
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
    let workers = plan.threads.clamp(1, plan.connections.max(1));
    let (stop, stop_receiver) = StopHandle::new();
    let (events_sender, events) = sync_channel(workers * EVENTS_PER_WORKER);
    let (ready_sender, ready) = channel();
    let make = Arc::new(make);
    let mut threads = Vec::with_capacity(workers);
    let mut epochs = Vec::with_capacity(workers);
    let mut spares = Vec::with_capacity(workers);
    for worker in 0..workers {
        let (epoch_sender, epoch) = channel();
        let (spare_sender, spare) = channel();
        let hire = Hire {
            make: Arc::clone(&make),
            ready: ready_sender.clone(),
            epoch,
            duty: Box::new({
                let (plan, stop) = (Arc::clone(plan), stop_receiver.clone());
                let events: SyncSender<Event> = events_sender.clone();
                let log = log.clone();
                move |clock| Duty {
                    plan,
                    seed,
                    worker,
                    workers,
                    clock,
                    stop,
                    events,
                    spares: spare,
                    log,
                }
            }),
        };
        let thread = std::thread::Builder::new()
            .name(format!("gake-{worker}"))
            .spawn(move || hire.serve())
            .map_err(StartError::Thread)?;
        threads.push(thread);
        epochs.push(epoch_sender);
        spares.push(spare_sender);
    }
    drop(ready_sender);
    for _ in 0..workers {
        ready
            .recv()
            .unwrap_or_else(|_| Err("its thread ended".to_owned()))
            .map_err(StartError::Runtime)?;
    }
    let clock = RunClock::starting_in(LEAD);
    for epoch in epochs {
        // A worker that is gone shows by its missing end.
        let _ = epoch.send(clock);
    }
    Ok(Running { events, spares, stop, clock, threads })
}

/// What a worker's thread is started with.
struct Hire<M> {
    make: Arc<M>,
    ready: Sender<Result<(), String>>,
    epoch: Receiver<RunClock>,
    duty: Box<dyn FnOnce(RunClock) -> Duty + Send>,
}

impl<M> Hire<M> {
    fn serve<F>(self)
    where
        F: Factory + 'static,
        M: Fn(WorkerContext) -> F,
    {
        // The kernel may otherwise delay a wake-up by 50 us to save power.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let runtime = match runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = self.ready.send(Err(error.to_string()));
                return;
            }
        };
        let _ = self.ready.send(Ok(()));
        drop(self.ready);
        // No epoch means that another worker could not start.
        let Ok(clock) = self.epoch.recv() else { return };
        let duty = (self.duty)(clock);
        let context = WorkerContext { worker: duty.worker, workers: duty.workers, clock };
        runtime.block_on(async {
            let factory = (self.make)(context);
            worker::run(duty, factory).await;
        });
    }
}

fn runtime() -> std::io::Result<LocalRuntime> {
    // The I/O driver is asked at least every 16 polls of a task, so that a burst of answers
    // cannot delay a due arrival by more than 16 answers' work.
    Builder::new_current_thread()
        .enable_all()
        .event_interval(16)
        .build_local(LocalOptions::default())
}
