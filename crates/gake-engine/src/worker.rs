//! One worker: its scenarios side by side, and what it hands over.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use gake_core::clock::{Clock, TENTH};
use gake_core::record::{Interval, Tally, WorkerEnd};
use gake_core::work::Factory;
use tokio::sync::watch;

use crate::clock::RunClock;
use crate::control::Stop;
use crate::log::{LogSender, WorkerLog};
use crate::message::Message;
use crate::handover;
use crate::scenario::{WorkerResources, ScenarioAssignment, Scenario};
use crate::timer::Timer;
use crate::usage::{MemoryPeak, ThreadUsage};

/// What a worker is given.
pub(crate) struct WorkerAssignment {
    pub(crate) scenarios: Vec<ScenarioAssignment>,
    pub(crate) worker: usize,
    pub(crate) clock: RunClock,
    pub(crate) stop: watch::Receiver<Stop>,
    pub(crate) messages: SyncSender<Message>,
    pub(crate) spares: Receiver<Tally>,
    pub(crate) log: Option<LogSender>,
    pub(crate) memory: MemoryPeak,
    /// Whether it hands over ten times a second.
    pub(crate) is_fine: bool,
}

/// A worker whose lanes are made and wait for the epoch.
pub(crate) struct Worker<F: Factory> {
    stop: watch::Receiver<Stop>,
    chores: Timer,
    reporter: Rc<Reporter<F>>,
}

impl<F: Factory + 'static> Worker<F> {
    /// Makes everything that can be made before the epoch; `make` makes the factory of a scenario.
    ///
    /// # Errors
    /// Why the worker cannot run, in a sentence.
    pub(crate) async fn prepare(
        assignment: WorkerAssignment,
        make: impl Fn(&ScenarioAssignment) -> F,
    ) -> Result<Self, String> {
        let WorkerAssignment { scenarios: parts, worker, clock, stop, messages, .. } = assignment;
        let WorkerAssignment { spares, log, memory, is_fine, .. } = assignment;
        let timer = || {
            Timer::new(clock.clone()).map_err(|error| format!("no timer could be made: {error}"))
        };
        let (timer, chores) = (timer()?, timer()?);
        let log = log.map(|sender| Rc::new(WorkerLog::new(sender)));
        let common = WorkerResources { clock, timer, chores, log };
        let mut scenarios = Vec::with_capacity(parts.len());
        for part in parts {
            let factory = make(&part);
            scenarios.push(Rc::new(Scenario::prepare(part, &common, factory).await?));
        }
        // Every lane runs once, up to where it waits for the epoch.
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
            looked: Cell::new(0),
            is_fine,
            awaited: Cell::new(handover::next_tenth(0, is_fine)),
        });
        Ok(Self { stop, chores, reporter })
    }

    /// Runs to the end. The epoch lies a little ahead.
    pub(crate) async fn run(self) {
        let Self { stop, chores, reporter } = self;
        for scenario in &reporter.scenarios {
            scenario.begin();
        }
        let handing_over = tokio::task::spawn_local(hand_over_in_time(Rc::clone(&reporter)));
        // Before the epoch the clock stands at 0, and nothing could be timed.
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
            // A scenario that panicked has no end, which the receiver notices.
            let Ok(end) = running.await else { return };
            ends.push((scenario.number, end));
        }
        handing_over.abort();
        // The last part is handed over like a whole one, under the end that was awaited: a run that
        // ends with a second must not count it as the next.
        reporter.hand_over(reporter.awaited.get(), true);
        let ended = Message::Ended(WorkerEnd {
            worker: reporter.worker,
            scenarios: ends,
            log_lost: reporter.log.as_ref().map_or(0, |log| log.finish()),
        });
        let _ = reporter.messages.send(ended);
    }
}

/// Hands over what a worker recorded.
struct Reporter<F: Factory> {
    scenarios: Vec<Rc<Scenario<F>>>,
    clock: RunClock,
    chores: Timer,
    log: Option<Rc<WorkerLog>>,
    worker: usize,
    messages: SyncSender<Message>,
    /// Tallies that the receiver gives back, and those made beforehand.
    spares: Receiver<Tally>,
    made: RefCell<Vec<Tally>>,
    usage: RefCell<ThreadUsage>,
    memory: MemoryPeak,
    /// The last second at whose end it looked at the memory.
    looked: Cell<u64>,
    is_fine: bool,
    /// The tenth of a second at whose end it hands over next.
    awaited: Cell<u64>,
}

async fn hand_over_in_time<F: Factory + 'static>(reporter: Rc<Reporter<F>>) {
    loop {
        let tenth = handover::next_tenth(reporter.clock.now(), reporter.is_fine);
        reporter.awaited.set(tenth);
        reporter.chores.sleep_until(tenth * TENTH).await;
        // What a wake-up that comes late hands over goes up to now.
        let over = reporter.clock.now() / TENTH;
        let tenth = if reporter.is_fine { tenth.max(over) } else { tenth };
        reporter.hand_over(tenth, false);
    }
}

impl<F: Factory + 'static> Reporter<F> {
    /// An empty tally whose memory is warm, as long as there is one.
    fn spare(&self) -> Tally {
        let given_back = self.spares.try_recv().ok();
        given_back.or_else(|| self.made.borrow_mut().pop()).unwrap_or_default()
    }

    /// The memory is the process's: one worker looks as a second ends, and each before its
    /// connections are closed.
    fn look_at_memory(&self, tenth: u64, is_last: bool) {
        let second = tenth / handover::TENTHS;
        let is_new = second > self.looked.replace(second);
        if is_last || (is_new && self.worker == 0) {
            self.memory.look();
        }
    }

    /// Hands over what was recorded up to now. When the receiver is behind, it is kept and goes
    /// with the next piece: nothing is lost, and nothing piles up. `wait` makes it wait instead.
    fn hand_over(&self, tenth: u64, wait: bool) {
        if let Some(log) = &self.log {
            log.flush();
        }
        self.look_at_memory(tenth, wait);
        let parts = self.scenarios.iter().map(|scenario| scenario.take(self.spare()));
        let parts = parts.collect();
        let (cpu, run_delay) = self.usage.borrow_mut().take();
        let interval = Box::new(Interval { worker: self.worker, tenth, parts, cpu, run_delay });
        if wait {
            // The receiver is gone only when the program is ending.
            let _ = self.messages.send(Message::Interval(interval));
        } else if let Err(TrySendError::Full(Message::Interval(kept))) =
            self.messages.try_send(Message::Interval(interval))
        {
            for (scenario, part) in self.scenarios.iter().zip(&kept.scenarios) {
                scenario.put_back(part);
            }
            self.usage.borrow_mut().put_back(kept.cpu, kept.run_delay);
        }
    }
}
