//! A worker's part of one scenario: one load with its own lanes and recorder.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::plan::Plan;
use gake_core::record::{ScenarioInterval, Recorder, ScenarioEnd, Tally};
use gake_core::schedule::Slice;
use gake_core::work::Factory;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::clock::RunClock;
use crate::control::Stop;
use crate::worker_users::WorkerUsers;
use crate::lanes::Lanes;
use crate::log::{LogHandle, WorkerLog};
use crate::arrival_numbers::{SharedNumbers, ArrivalNumbers};
use crate::scenario_state::ScenarioState;
use crate::takeover::Revision;
use crate::timer::Timer;
use crate::{closed, open};

/// Tallies of a scenario that are made before the epoch, beside the one recorded to: enough until
/// the receiver gives the first ones back.
const SPARES: usize = 3;

/// An empty tally that has room for the usual latencies.
fn roomy_tally(plan: &Plan) -> Tally {
    let mut tally = Tally::new(plan.labels.len());
    tally.make_room();
    tally
}

/// What the scenarios of a worker have in common.
pub(crate) struct WorkerResources {
    pub(crate) clock: RunClock,
    /// For arrivals alone.
    pub(crate) timer: Timer,
    /// For everything else.
    pub(crate) chores: Timer,
    pub(crate) log: Option<Rc<WorkerLog>>,
}

/// A worker's part of a scenario, as it is told.
pub(crate) struct ScenarioAssignment {
    /// The scenario's number in the run.
    pub(crate) number: usize,
    pub(crate) plan: Arc<Plan>,
    pub(crate) slice: Slice,
    pub(crate) seed: u64,
    /// The numbers of the process's arrivals.
    pub(crate) numbers: Arc<SharedNumbers>,
    /// Says how many users are wanted, when that is set from outside.
    pub(crate) setting: Option<watch::Receiver<usize>>,
    /// Changes of what it is to send.
    pub(crate) revised: UnboundedReceiver<Revision>,
}

/// One scenario, whose lanes are made and wait for the epoch.
pub(crate) struct Scenario<F: Factory> {
    /// Its number in the run.
    pub(crate) number: usize,
    plan: Arc<Plan>,
    seed: u64,
    start: Nanos,
    shared: Rc<ScenarioState>,
    lanes: Rc<Lanes<F>>,
    /// The users of a closed loop.
    crowd: Option<Rc<WorkerUsers>>,
    revised: RefCell<Option<UnboundedReceiver<Revision>>>,
    factory: F,
}

impl<F: Factory + 'static> Scenario<F> {
    /// Makes everything that can be made before the epoch.
    ///
    /// # Errors
    /// Why it cannot run, in a sentence.
    pub(crate) async fn prepare(part: ScenarioAssignment, common: &WorkerResources, factory: F) -> Result<Self, String> {
        let ScenarioAssignment { number, plan, slice, seed, numbers, setting, revised } = part;
        let start = nanos(plan.start);
        let warmup = nanos(plan.warmup);
        let warmup_end = start.saturating_add(warmup);
        let log = common.log.as_ref().map(|log| Box::new(LogHandle(Rc::clone(log))) as _);
        let recorder = Recorder::new(plan.expect.clone(), warmup_end, plan.labels.len(), log)
            .with_max_series(plan.max_series);
        // What the first seconds record to is mapped before the epoch.
        drop(recorder.take(roomy_tally(&plan)));
        let timers = (common.timer.clone(), common.chores.clone());
        let shared = Rc::new(ScenarioState::new(common.clock.clone(), timers, warmup_end, recorder));
        let count = match plan.load.users() {
            Some(users) => slice.count(users),
            None => slice.count(plan.max_in_flight),
        };
        factory.prepare(count).await?;
        let lanes = Rc::new(Lanes::new(&shared, slice, &factory, count));
        let crowd = plan.load.users().map(|_| {
            let numbers = ArrivalNumbers::new(&plan, slice, &numbers, factory.wants_order());
            closed::gather(&plan, start, &lanes, setting, numbers)
        });
        let revised = RefCell::new(Some(revised));
        Ok(Self { number, plan, seed, start, shared, lanes, crowd, revised, factory })
    }

    /// Tallies to be recorded to when the receiver has given none back yet.
    pub(crate) fn spares(&self) -> impl Iterator<Item = Tally> {
        std::iter::repeat_with(|| roomy_tally(&self.plan)).take(SPARES)
    }

    /// The epoch is near: what must run beside the lanes begins.
    pub(crate) fn begin(&self) {
        self.factory.begin();
    }

    /// Runs to the end; the epoch has come.
    pub(crate) async fn run(&self, stop: watch::Receiver<Stop>) -> ScenarioEnd {
        let shared = &self.shared;
        shared.begin();
        let revised = self.revised.take();
        let arrivals_end = match (&self.crowd, revised) {
            (Some(crowd), _) => closed::run(&self.plan, crowd, stop).await,
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

    /// Takes what was recorded since the last time, and goes on with `spare`.
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

    /// Takes back what could not be handed over.
    pub(crate) fn put_back(&self, part: &ScenarioInterval) {
        self.shared.recorder.put_back(part);
    }
}
