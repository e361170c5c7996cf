//! What the workers of a run take over while it goes on: arrivals of a process that was lost.

use std::sync::Arc;

use gake_core::clock::Nanos;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::arrivals::Source;

/// Gives the workers of a run, while it goes on, arrivals beside their own.
#[derive(Debug, Clone, Default)]
pub struct Takeover {
    scenarios: Arc<Vec<ScenarioWorkers>>,
}

/// The workers of one scenario.
#[derive(Debug)]
pub(crate) struct ScenarioWorkers {
    plan: Arc<Plan>,
    seed: u64,
    workers: Vec<UnboundedSender<Source>>,
}

impl ScenarioWorkers {
    pub(crate) fn new(plan: &Arc<Plan>, seed: u64) -> Self {
        Self { plan: Arc::clone(plan), seed, workers: Vec::new() }
    }

    /// What one more worker will be given.
    pub(crate) fn enlist(&mut self) -> UnboundedReceiver<Source> {
        let (sender, receiver) = unbounded_channel();
        self.workers.push(sender);
        receiver
    }
}

impl Takeover {
    pub(crate) fn new(scenarios: Vec<ScenarioWorkers>) -> Self {
        Self { scenarios: Arc::new(scenarios) }
    }

    /// Whether there are workers that could send arrivals of scenario `scenario`: it is an open
    /// loop that ends after a time, whose workers are there to its end.
    #[must_use]
    pub fn is_possible(&self, scenario: usize) -> bool {
        self.scenarios.get(scenario).is_some_and(|scenario| {
            let schedule = scenario.plan.schedule(scenario.seed);
            let is_timed = schedule.is_some_and(|schedule| schedule.timed_end().is_some());
            is_timed && !scenario.workers.is_empty()
        })
    }

    /// Makes the workers send the arrivals with the numbers of `slice` that are due at `from` or
    /// later, counted from the epoch. What is due already is sent late.
    pub fn take(&self, scenario: usize, slice: Slice, from: Nanos) {
        let Some(ScenarioWorkers { plan, seed, workers }) = self.scenarios.get(scenario) else {
            return;
        };
        let Some(schedule) = plan.schedule(*seed) else { return };
        let start = u64::try_from(plan.start.as_nanos()).unwrap_or(u64::MAX);
        for (worker, part) in workers.iter().zip(slice.split(workers.len())) {
            let source = Source::new(schedule.share(part).into_owned(), start);
            // After the end of a worker nothing of a schedule that ends with a time is due.
            let _ = worker.send(source.since(from));
        }
    }
}
