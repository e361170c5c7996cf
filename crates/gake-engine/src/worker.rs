//! A worker: runs its scenarios and reports their figures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use gake_core::clock::{Clock, TENTH};
use gake_core::record::{Interval, Tally, WorkerEnd};
use gake_core::work::Factory;
use tokio::sync::watch;

use crate::clock::RunClock;
use crate::control::Stop;
use crate::handover;
use crate::log::{LogSender, WorkerLog};
use crate::message::Message;
use crate::scenario::{Scenario, ScenarioAssignment, WorkerResources};
use crate::timer::Timer;
use crate::usage::{MemoryPeak, ThreadUsage};

/// The description of a worker.
pub(crate) struct WorkerAssignment {
    pub(crate) scenarios: Vec<ScenarioAssignment>,
    pub(crate) worker: usize,
    pub(crate) clock: RunClock,
    pub(crate) stop: watch::Receiver<Stop>,
    pub(crate) messages: SyncSender<Message>,
    pub(crate) spares: Receiver<Tally>,
    pub(crate) log: Option<LogSender>,
    pub(crate) memory: MemoryPeak,
    /// Whether it reports ten times a second.
    pub(crate) is_fine: bool,
}

/// A worker whose lanes wait for the epoch.
pub(crate) struct Worker<F: Factory> {
    stop: watch::Receiver<Stop>,
    chores: Timer,
    reporter: Rc<Reporter<F>>,
}

impl<F: Factory + 'static> Worker<F> {
    /// Prepares all scenarios before the epoch; `make` makes the factory of a scenario.
    ///
    /// # Errors
    /// Why the worker cannot run, in a sentence.
    pub(crate) async fn prepare(
        assignment: WorkerAssignment,
        make: impl Fn(&ScenarioAssignment) -> F,
    ) -> Result<Self, String> {
        let WorkerAssignment { scenarios: assigned, worker, clock, stop, messages, .. } =
            assignment;
        let WorkerAssignment { spares, log, memory, is_fine, .. } = assignment;
        let timer = || {
            Timer::new(clock.clone()).map_err(|error| format!("no timer could be made: {error}"))
        };
        let (timer, chores) = (timer()?, timer()?);
        let log = log.map(|sender| Rc::new(WorkerLog::new(sender)));
        let common = WorkerResources { clock, timer, chores, log };
        let mut scenarios = Vec::with_capacity(assigned.len());
        for one in assigned {
            let factory = make(&one);
            scenarios.push(Rc::new(Scenario::prepare(one, &common, factory).await?));
        }
        // Let all lanes run up to their wait for the epoch.
        tokio::task::yield_now().await;
        let WorkerResources { clock, chores, log, .. } = common;
        let reporter = Rc::new(Reporter {
            clock,
            chores: chores.clone(),
            log,
            worker,
            messages,
            made: RefCell::new(scenarios.iter().flat_map(|one| one.spares()).collect()),
            scenarios,
            spares,
            usage: RefCell::new(ThreadUsage::new()),
            memory,
            sampled: Cell::new(0),
            is_fine,
            awaited: Cell::new(handover::next_tenth(0, is_fine)),
        });
        Ok(Self { stop, chores, reporter })
    }

    /// Runs to the end. The epoch is slightly in the future.
    pub(crate) async fn run(self) {
        let Self { stop, chores, reporter } = self;
        for scenario in &reporter.scenarios {
            scenario.begin();
        }
        let reporting = tokio::task::spawn_local(report_regularly(Rc::clone(&reporter)));
        // The clock reads 0 until the epoch.
        chores.sleep_until(1).await;
        let running: Vec<_> = reporter
            .scenarios
            .iter()
            .map(|scenario| {
                let (scenario, stop) = (Rc::clone(scenario), stop.clone());
                tokio::task::spawn_local(async move { scenario.run(stop).await })
            })
            .collect();
        let mut ends = Vec::with_capacity(running.len());
        for (scenario, running) in reporter.scenarios.iter().zip(running) {
            // The receiver notices a panic by the missing end.
            let Ok(end) = running.await else { return };
            ends.push((scenario.number, end));
        }
        reporting.abort();
        // The last, shorter interval ends in the tenth that was awaited: a run that ends with a
        // second must not begin another.
        reporter.report(reporter.awaited.get(), true);
        let ended = Message::Ended(WorkerEnd {
            worker: reporter.worker,
            scenarios: ends,
            log_lost: reporter.log.as_ref().map_or(0, |log| log.finish()),
        });
        let _ = reporter.messages.send(ended);
    }
}

/// Sends the figures of a worker.
struct Reporter<F: Factory> {
    scenarios: Vec<Rc<Scenario<F>>>,
    clock: RunClock,
    chores: Timer,
    log: Option<Rc<WorkerLog>>,
    worker: usize,
    messages: SyncSender<Message>,
    /// Tallies returned by the receiver, and those made before the epoch.
    spares: Receiver<Tally>,
    made: RefCell<Vec<Tally>>,
    usage: RefCell<ThreadUsage>,
    memory: MemoryPeak,
    /// The last second at whose end memory was sampled.
    sampled: Cell<u64>,
    is_fine: bool,
    /// The tenth of a second at whose end it reports next.
    awaited: Cell<u64>,
}

async fn report_regularly<F: Factory + 'static>(reporter: Rc<Reporter<F>>) {
    loop {
        let tenth = handover::next_tenth(reporter.clock.now(), reporter.is_fine);
        reporter.awaited.set(tenth);
        reporter.chores.sleep_until(tenth * TENTH).await;
        // After a late wake-up, the interval ends now.
        let over = reporter.clock.now() / TENTH;
        let tenth = if reporter.is_fine { tenth.max(over) } else { tenth };
        reporter.report(tenth, false);
    }
}

impl<F: Factory + 'static> Reporter<F> {
    /// An empty tally, reused if possible.
    fn spare(&self) -> Tally {
        let given_back = self.spares.try_recv().ok();
        given_back.or_else(|| self.made.borrow_mut().pop()).unwrap_or_default()
    }

    /// Samples the memory of the process: in one worker each second, and in all at their end,
    /// before connections are closed.
    fn sample_memory(&self, tenth: u64, is_last: bool) {
        let second = tenth / handover::TENTHS;
        let is_new = second > self.sampled.replace(second);
        if is_last || (is_new && self.worker == 0) {
            self.memory.sample();
        }
    }

    /// Sends the figures up to now. If the channel is full, they are merged into the next interval,
    /// or, with `wait`, it blocks.
    fn report(&self, tenth: u64, wait: bool) {
        if let Some(log) = &self.log {
            log.flush();
        }
        self.sample_memory(tenth, wait);
        let scenarios = self.scenarios.iter().map(|scenario| scenario.take(self.spare())).collect();
        let (cpu, run_delay) = self.usage.borrow_mut().take();
        let interval = Box::new(Interval { worker: self.worker, tenth, scenarios, cpu, run_delay });
        if wait {
            // The receiver is gone only when the program ends.
            let _ = self.messages.send(Message::Interval(interval));
        } else if let Err(TrySendError::Full(Message::Interval(kept))) =
            self.messages.try_send(Message::Interval(interval))
        {
            for (scenario, interval) in self.scenarios.iter().zip(&kept.scenarios) {
                scenario.put_back(interval);
            }
            self.usage.borrow_mut().put_back(kept.cpu, kept.run_delay);
        }
    }
}
