//! The workers of a run, from their threads to the epoch.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::JoinHandle;

use gake_core::Load;
use gake_core::activity::Activity;
use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::record::Tally;
use gake_core::schedule::Slice;
use tokio::sync::oneshot;

use crate::arrival_numbers::SharedNumbers;
use crate::clock::RunClock;
use crate::control::{StopHandle, UsersHandle};
use crate::handover;
use crate::log::LogSender;
use crate::message::Message;
use crate::rate::RateHandle;
use crate::scenario::ScenarioAssignment;
use crate::takeover::{ScenarioWorkers, Takeover};
use crate::usage::MemoryPeak;
use crate::watchdog::Watchdog;
use crate::worker::WorkerAssignment;
use crate::worker_tables::WorkerTables;
use crate::worker_thread::{WorkerBody, WorkerThread};

/// Seconds of intervals in the channel; beyond that, workers accumulate.
const SECONDS_WAITING: usize = 4;

/// Why a run could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A thread could not be started.
    #[error("a worker thread could not be started: {0}")]
    Thread(std::io::Error),
    /// A worker could not be prepared; with the reason.
    #[error("{0}")]
    Worker(String),
}

/// A run in progress.
#[derive(Debug)]
pub struct RunHandle {
    /// Messages of the workers, in order by worker.
    pub messages: Receiver<Message>,
    /// Number of workers.
    pub workers: usize,
    /// Returns cleared tallies for reuse, by worker; empty if the workers are in other processes.
    pub spares: Vec<Sender<Tally>>,
    /// Stops the run.
    pub stop: StopHandle,
    /// Sets the number of users, by scenario; `None` if the plan determines it.
    pub users: Vec<Option<UsersHandle>>,
    /// Assigns further arrivals to the workers of this process.
    pub takeover: Takeover,
    /// Changes the rates; `None` if the workers are in other processes or have descriptor tables of
    /// their own.
    pub rate: Option<RateHandle>,
    /// The run's clock.
    pub clock: RunClock,
    /// Peak memory of this process.
    pub memory: MemoryPeak,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Watches the workers of this process; `None` if they are in other processes.
    pub(crate) watchdog: Option<Watchdog>,
}

impl RunHandle {
    /// The next message; `None` if a worker's thread ended unexpectedly. A worker that blocks its
    /// thread long after the run had to be over ends by this, with the figures of its last report.
    pub fn receive(&mut self) -> Option<Message> {
        match &mut self.watchdog {
            Some(watchdog) => watchdog.receive(&self.messages, &self.stop, &self.clock),
            None => self.messages.recv().ok(),
        }
    }

    /// The workers that have been abandoned.
    #[must_use]
    pub fn abandoned(&self) -> &[usize] {
        self.watchdog.as_ref().map_or(&[], Watchdog::abandoned)
    }

    /// The native calls in which they are blocked, as far as they are known.
    #[must_use]
    pub fn blocked_calls(&self) -> Vec<String> {
        self.watchdog.as_ref().map_or_else(Vec::new, Watchdog::blocked_calls)
    }

    /// A run whose workers are in other processes. The sender of `messages` must obey `stop`.
    #[must_use]
    pub fn elsewhere(messages: Receiver<Message>, workers: usize, clock: RunClock) -> Self {
        let (stop, _) = StopHandle::new();
        let (spares, users, threads) = (Vec::new(), Vec::new(), Vec::new());
        let (takeover, memory) = (Takeover::default(), MemoryPeak::default());
        let (rate, watchdog) = (None, None);
        Self {
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
        }
    }

    /// Whether all workers of this process have ended, so that receiving delays no arrivals.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the workers' threads. Receive their messages first.
    pub fn join(self) {
        let has_abandoned = !self.abandoned().is_empty();
        drop(self.messages);
        for thread in self.threads {
            if has_abandoned && !thread.is_finished() {
                continue;
            }
            // The receiver notices a panic by the missing end.
            let _ = thread.join();
        }
    }
}

/// Workers ready to start. Dropping it ends them.
#[derive(Debug)]
pub struct PreparedRun {
    running: RunHandle,
    epochs: Vec<oneshot::Sender<()>>,
    activities: Vec<Arc<Activity>>,
    plan: Arc<Plan>,
}

impl PreparedRun {
    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.running.workers
    }

    /// Starts the workers at `epoch`, an instant of the monotonic clock.
    #[must_use]
    pub fn start_at(mut self, epoch: Nanos) -> RunHandle {
        self.running.clock.start_at(epoch);
        self.running.watchdog = Some(Watchdog::new(&self.plan, self.activities));
        for epoch in self.epochs {
            // The receiver notices a dead worker by its missing end.
            let _ = epoch.send(());
        }
        self.running
    }
}

/// Prepares the workers for `slice` of a run: `plan.threads`, no more than lanes. All exchanges also
/// go to `log`, if there is one.
///
/// # Errors
/// When a worker cannot be prepared; nothing has been sent.
pub fn prepare(
    plan: &Arc<Plan>,
    seed: u64,
    slice: Slice,
    log: Option<LogSender>,
    body: WorkerBody,
) -> Result<PreparedRun, StartError> {
    let lanes = plan.scenarios().iter();
    let lanes = lanes.filter_map(|plan| Some(slice.among(plan.lanes())?.count(plan.lanes())));
    let workers = plan.threads.clamp(1, lanes.max().unwrap_or(1));
    prepare_workers(plan, seed, (slice, workers), log, body, None)
}

/// As [`prepare`], for a number of workers, with descriptor tables of their own if there are
/// `tables`.
pub(crate) fn prepare_workers(
    plan: &Arc<Plan>,
    seed: u64,
    (slice, workers): (Slice, usize),
    log: Option<LogSender>,
    body: WorkerBody,
    tables: Option<WorkerTables>,
) -> Result<PreparedRun, StartError> {
    let scenarios = plan.scenarios();
    let users: Vec<_> = scenarios.iter().map(users_from_outside).collect();
    let scenarios: Vec<_> = scenarios.iter().map(|plan| Arc::new(plan.clone())).collect();
    let numbers = scenarios.iter().map(|plan| Arc::new(SharedNumbers::new(plan, slice)));
    let numbers: Vec<_> = numbers.collect();
    let clock = RunClock::not_started();
    let (stop, stop_receiver) = StopHandle::new();
    let is_fine = handover::is_fine(plan);
    let intervals = SECONDS_WAITING * if is_fine { handover::TENTHS as usize } else { 1 };
    let (messages_sender, messages) = sync_channel(workers * intervals);
    let (ready_sender, ready) = channel();
    let memory = MemoryPeak::default();
    let mut threads = Vec::with_capacity(workers);
    let mut epochs = Vec::with_capacity(workers);
    let mut spares = Vec::with_capacity(workers);
    let mut activities = Vec::with_capacity(workers);
    let numbered = scenarios.iter().enumerate();
    let mut takers: Vec<_> = numbered
        .map(|(number, plan)| ScenarioWorkers::new(plan, Plan::scenario_seed(seed, number)))
        .collect();
    for worker in 0..workers {
        let (epoch_sender, epoch) = oneshot::channel();
        let (spare_sender, spare) = channel();
        let thread = WorkerThread {
            ready: ready_sender.clone(),
            epoch,
            tables: tables.clone(),
            assignment: WorkerAssignment {
                scenarios: scenario_assignments(
                    &scenarios,
                    &users,
                    &numbers,
                    (seed, slice, Slice::new(worker, workers)),
                    &mut takers,
                ),
                worker,
                clock: clock.clone(),
                stop: stop_receiver.clone(),
                messages: messages_sender.clone(),
                spares: spare,
                log: log.clone(),
                memory: memory.clone(),
                is_fine,
            },
        };
        let (body, activity) = (body.clone(), Arc::<Activity>::default());
        activities.push(Arc::clone(&activity));
        let thread = std::thread::Builder::new()
            .name(format!("gake-{worker}"))
            .spawn(move || {
                activity.enter();
                body.run(thread);
            })
            .inspect_err(|_| tables.iter().for_each(WorkerTables::give_up))
            .map_err(StartError::Thread)?;
        threads.push(thread);
        epochs.push(epoch_sender);
        spares.push(spare_sender);
    }
    drop((ready_sender, tables));
    for _ in 0..workers {
        ready
            .recv()
            .unwrap_or_else(|_| Err("a worker's thread ended before the run".to_owned()))
            .map_err(StartError::Worker)?;
    }
    let takers = Arc::new(takers);
    let takeover = Takeover::new(&takers);
    let rate = Some(RateHandle::new(plan, &takers, &users, &clock, &stop));
    let running = RunHandle {
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
        watchdog: None,
    };
    Ok(PreparedRun { running, epochs, activities, plan: Arc::clone(plan) })
}

/// The handle of an externally controlled load.
fn users_from_outside(plan: &Plan) -> Option<UsersHandle> {
    match plan.load.one() {
        Some(Load::External { users, max }) => Some(UsersHandle::new(*users, *max)),
        _ => None,
    }
}

/// The assignments of a worker of a slice of the run.
fn scenario_assignments(
    scenarios: &[Arc<Plan>],
    users: &[Option<UsersHandle>],
    numbers: &[Arc<SharedNumbers>],
    (seed, slice, worker): (u64, Slice, Slice),
    takers: &mut [ScenarioWorkers],
) -> Vec<ScenarioAssignment> {
    let assignments = scenarios.iter().zip(users).enumerate().map(|(number, (plan, users))| {
        Some(ScenarioAssignment {
            number,
            plan: Arc::clone(plan),
            slice: plan.slice(slice, worker)?,
            seed: Plan::scenario_seed(seed, number),
            numbers: Arc::clone(&numbers[number]),
            setting: users.as_ref().map(UsersHandle::subscribe),
            revised: takers[number].enlist(),
        })
    });
    assignments.flatten().collect()
}
