//! Scripts beside plain scenarios: works of either kind in one run.

use gake_core::record::Tally;
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, Work};
use gake_engine::RunClock;
use gake_k6::work::{ScriptFactory, ScriptWork};
use gake_wire::{HttpFactory, HttpWork};

/// Makes the works of one scenario of a run that has scripts and plain requests.
pub(super) enum MixedFactory {
    Http(HttpFactory<RunClock>),
    Script(Box<ScriptFactory>),
}

/// A work of a run that has scripts and plain requests.
pub(super) enum MixedWork {
    Http(Box<HttpWork<RunClock>>),
    Script(Box<ScriptWork>),
}

impl Work for MixedWork {
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
