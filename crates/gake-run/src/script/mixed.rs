//! Works of runs that mix scripts and plain requests.

use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::record::Tally;
use gake_core::work::{Exhausted, Factory, FastEnd, Gauges, Iteration, IterationEnd, Work};
use gake_engine::{RunClock, WorkerContext};
use gake_k6::work::{ScriptFactory, ScriptLoad, ScriptWork};
use gake_wire::{HttpFactory, HttpWork, PreparedRequests, Tracer};

use crate::ResolvedRun;

/// What the scenarios of a run fire, by scenario.
pub(super) struct ScenarioWorks {
    scenarios: Vec<ScenarioWork>,
    tracer: Option<Arc<Tracer>>,
}

enum ScenarioWork {
    Http(Arc<PreparedRequests>),
    Script(Box<ScriptLoad>),
}

impl ScenarioWorks {
    /// The works of `run`, in which `loads` belong to the scenarios of scripts.
    pub(super) fn of(run: &ResolvedRun, loads: Vec<Option<ScriptLoad>>) -> Self {
        // `wires` skips scenarios of scripts.
        let mut wires = run.wires.iter();
        let work = |load: Option<ScriptLoad>| match load {
            Some(load) => Some(ScenarioWork::Script(Box::new(load))),
            None => wires.next().map(|wire| ScenarioWork::Http(Arc::clone(wire))),
        };
        let scenarios = loads.into_iter().filter_map(work).collect();
        Self { scenarios, tracer: run.tracer.clone() }
    }

    /// Makes the works of a worker.
    pub(super) fn make(&self, context: WorkerContext) -> MixedFactory {
        match &self.scenarios[context.scenario] {
            ScenarioWork::Script(load) => {
                let load = ScriptLoad::clone(load);
                let factory = ScriptFactory::new(load, context.slice, context.clock);
                MixedFactory::Script(Box::new(factory))
            }
            ScenarioWork::Http(wire) => {
                let factory = HttpFactory::new(Arc::clone(wire), context.slice, context.clock);
                MixedFactory::Http(factory.traced(self.tracer.clone()))
            }
        }
    }
}

/// Makes the works of one scenario of a mixed run.
pub(super) enum MixedFactory {
    Http(HttpFactory<RunClock>),
    Script(Box<ScriptFactory>),
}

pub(super) enum MixedWork {
    Http(Box<HttpWork<RunClock>>),
    Script(Box<ScriptWork>),
}

impl Work for MixedWork {
    type Fast = <HttpWork<RunClock> as Work>::Fast;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        match self {
            Self::Http(work) => work.fire(iteration).await,
            Self::Script(work) => work.fire(iteration).await,
        }
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        match self {
            Self::Http(work) => work.abandon(iteration),
            Self::Script(work) => work.abandon(iteration),
        }
    }

    fn fast_lane(&mut self, number: u64, now: Nanos) -> Option<Self::Fast> {
        match self {
            Self::Http(work) => work.fast_lane(number, now),
            Self::Script(_) => None,
        }
    }

    fn take_back(&mut self, lane: Self::Fast, end: FastEnd) {
        if let Self::Http(work) = self {
            work.take_back(lane, end);
        }
    }
}

impl Factory for MixedFactory {
    type Work = MixedWork;

    async fn prepare(&self, lanes: usize) -> Result<(), String> {
        match self {
            Self::Http(factory) => factory.prepare(lanes).await,
            Self::Script(factory) => factory.prepare(lanes).await,
        }
    }

    fn wants_order(&self) -> bool {
        match self {
            Self::Http(factory) => factory.wants_order(),
            Self::Script(factory) => factory.wants_order(),
        }
    }

    fn work(&self, lane: usize) -> MixedWork {
        match self {
            Self::Http(factory) => MixedWork::Http(Box::new(factory.work(lane))),
            Self::Script(factory) => MixedWork::Script(Box::new(factory.work(lane))),
        }
    }

    fn begin(&self) {
        match self {
            Self::Http(factory) => factory.begin(),
            Self::Script(factory) => factory.begin(),
        }
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        match self {
            Self::Http(factory) => factory.observe(tally),
            Self::Script(factory) => factory.observe(tally),
        }
    }

    fn finish(&self) {
        match self {
            Self::Http(factory) => factory.finish(),
            Self::Script(factory) => factory.finish(),
        }
    }
}
