//! A worker's slice of a scenario: one load with its own lanes and recorder.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::plan::Plan;
use gake_core::record::{Recorder, ScenarioEnd, ScenarioInterval, Tally};
use gake_core::schedule::Slice;
use gake_core::work::Factory;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::arrival_numbers::{ArrivalNumbers, SharedNumbers};
use crate::clock::RunClock;
use crate::control::Stop;
use crate::lanes::Lanes;
use crate::log::{LogHandle, WorkerLog};
use crate::scenario_state::ScenarioState;
use crate::takeover::Revision;
use crate::timer::Timer;
use crate::worker_users::WorkerUsers;
use crate::{closed, open};

/// Spare tallies of a scenario, made before the epoch: enough until the receiver returns the first.
const SPARES: usize = 2;

/// An empty tally with memory for the usual latencies.
fn roomy_tally(plan: &Plan) -> Tally {
    let mut tally = Tally::new(plan.labels.len());
    tally.make_room();
    tally
}

/// Resources shared by the scenarios of a worker.
pub(crate) struct WorkerResources {
    pub(crate) clock: RunClock,
    /// Only for arrivals.
    pub(crate) timer: Timer,
    /// For everything else.
    pub(crate) chores: Timer,
    pub(crate) log: Option<Rc<WorkerLog>>,
}

/// The description of a worker's slice of a scenario.
pub(crate) struct ScenarioAssignment {
    /// The scenario's number in the run.
    pub(crate) number: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) slice: Slice,
    pub(crate) seed: u64,
    /// Numbers of the process's arrivals.
    pub(crate) numbers: Arc<SharedNumbers>,
    /// The number of users wanted, for an externally controlled load.
    pub(crate) setting: Option<watch::Receiver<usize>>,
    pub(crate) revised: UnboundedReceiver<Revision>,
}

/// A scenario whose lanes wait for the epoch.
pub(crate) struct Scenario<F: Factory> {
    /// The scenario's number in the run.
    pub(crate) number: usize,
    plan: Arc<Plan>,
    seed: u64,
    start: Nanos,
    shared: Rc<ScenarioState>,
    lanes: Rc<Lanes<F>>,
    /// Users of a closed loop.
    users: Option<Rc<WorkerUsers>>,
    revised: RefCell<Option<UnboundedReceiver<Revision>>>,
    factory: F,
}

impl<F: Factory + 'static> Scenario<F> {
    /// Allocates and connects as much as possible before the epoch.
    ///
    /// # Errors
    /// Why it cannot run, in a sentence.
    pub(crate) async fn prepare(
        assignment: ScenarioAssignment,
        common: &WorkerResources,
        factory: F,
    ) -> Result<Self, String> {
        let ScenarioAssignment { number, plan, slice, seed, numbers, setting, revised } =
            assignment;
        let start = nanos(plan.start);
        let warmup = nanos(plan.warmup);
        let warmup_end = start.saturating_add(warmup);
        let log = common.log.as_ref().map(|log| Box::new(LogHandle(Rc::clone(log))) as _);
        let recorder = Recorder::new(plan.expect.clone(), warmup_end, plan.labels.len(), log)
            .with_max_series(plan.max_series);
        // Map memory for the first seconds before the epoch.
        drop(recorder.take(roomy_tally(&plan)));
        let timers = (common.timer.clone(), common.chores.clone());
        let shared =
            Rc::new(ScenarioState::new(common.clock.clone(), timers, warmup_end, recorder));
        let count = match plan.load.users() {
            Some(users) => slice.count(users),
            None => slice.count(plan.max_in_flight),
        };
        factory.prepare(count).await?;
        let lanes = Rc::new(Lanes::new(&shared, slice, &factory, count));
        let users = plan.load.users().map(|_| {
            let numbers = ArrivalNumbers::new(&plan, slice, &numbers, factory.wants_order());
            closed::spawn_users(&plan, start, &lanes, setting, numbers)
        });
        let revised = RefCell::new(Some(revised));
        Ok(Self { number, plan, seed, start, shared, lanes, users, revised, factory })
    }

    /// Tallies to use until the receiver has returned some.
    pub(crate) fn spares(&self) -> impl Iterator<Item = Tally> {
        std::iter::repeat_with(|| roomy_tally(&self.plan)).take(SPARES)
    }

    /// Called shortly before the epoch.
    pub(crate) fn begin(&self) {
        self.factory.begin();
    }

    /// Runs from the epoch to the end.
    pub(crate) async fn run(&self, stop: watch::Receiver<Stop>) -> ScenarioEnd {
        let shared = &self.shared;
        shared.begin();
        let revised = self.revised.take();
        let arrivals_end = match (&self.users, revised) {
            (Some(users), _) => closed::run(&self.plan, users, stop).await,
            (None, Some(revised)) => {
                open::run(&self.plan, self.seed, self.start, &self.lanes, stop, revised).await
            }
            // A scenario runs once.
            (None, None) => self.start,
        };
        shared.cut();
        shared.until_quiet().await;
        self.factory.finish();
        ScenarioEnd {
            arrivals_end,
            last_fired: shared.last_fired.get(),
            last_ended: shared.last_ended.get(),
            done: shared.clock.now(),
            exhausted: shared.is_exhausted.get(),
        }
    }

    /// Takes what was recorded since the last call, and continues with `spare`.
    pub(crate) fn take(&self, spare: Tally) -> ScenarioInterval {
        let now = self.shared.clock.now();
        let recorder = &self.shared.recorder;
        let gauges = recorder.with_tally(|tally| {
            tally.in_flight_ns += self.shared.flight.take(now);
            tally.fired += self.shared.flight.take_entered();
            self.factory.observe(tally)
        });
        let (tally, warmup) = recorder.take(spare);
        let bodies = recorder.take_bodies();
        ScenarioInterval { scenario: self.number, tally, warmup, gauges, bodies }
    }

    /// Restores figures that could not be delivered.
    pub(crate) fn put_back(&self, interval: &ScenarioInterval) {
        self.shared.recorder.put_back(interval);
    }
}
