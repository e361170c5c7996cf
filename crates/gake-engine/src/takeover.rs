//! Revisions of workers' arrivals during a run: arrivals of a lost process, or a changed schedule.

use std::sync::Arc;

use gake_core::Load;
use gake_core::clock::{Nanos, nanos};
use gake_core::plan::Plan;
use gake_core::schedule::{Schedule, Slice};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::arrivals::ArrivalSource;

/// A change of a worker's arrivals.
#[allow(clippy::large_enum_variant, reason = "runs send few or none")]
#[derive(Debug)]
pub(crate) enum Revision {
    /// Additional arrivals.
    Add(ArrivalSource),
    /// A changed schedule.
    Follow(Box<Schedule>),
}

/// Assigns the arrivals of lost processes to the workers of a run.
#[derive(Debug, Clone, Default)]
pub struct Takeover {
    scenarios: Arc<Vec<ScenarioWorkers>>,
}

/// The workers of one scenario.
#[derive(Debug)]
pub(crate) struct ScenarioWorkers {
    plan: Arc<Plan>,
    seed: u64,
    workers: Vec<UnboundedSender<Revision>>,
}

impl ScenarioWorkers {
    pub(crate) fn new(plan: &Arc<Plan>, seed: u64) -> Self {
        Self { plan: Arc::clone(plan), seed, workers: Vec::new() }
    }

    /// Adds a worker, and returns the receiver of its revisions.
    pub(crate) fn enlist(&mut self) -> UnboundedReceiver<Revision> {
        let (sender, receiver) = unbounded_channel();
        self.workers.push(sender);
        receiver
    }

    /// Switches the workers of an open loop to the schedule of `plan`.
    pub(crate) fn follow(&self, plan: &Plan) {
        // A replay keeps its times.
        let is_open = matches!(plan.load.one(), Some(Load::Open { .. }));
        let changed = plan.schedule(self.seed).filter(|_| is_open);
        let Some((schedule, own)) = changed.zip(self.plan.schedule(self.seed)) else { return };
        // Arrivals of the warm-up keep their numbers and due times.
        let schedule = schedule.with_warmup_of(&own);
        for worker in &self.workers {
            // The worker may have ended.
            let _ = worker.send(Revision::Follow(Box::new(schedule.clone())));
        }
    }
}

impl Takeover {
    pub(crate) fn new(scenarios: &Arc<Vec<ScenarioWorkers>>) -> Self {
        Self { scenarios: Arc::clone(scenarios) }
    }

    /// Whether arrivals of scenario `scenario` can be taken over: it is an open loop that ends at a
    /// known time, so that its workers run until then.
    #[must_use]
    pub fn is_possible(&self, scenario: usize) -> bool {
        self.scenarios.get(scenario).is_some_and(|scenario| {
            let schedule = scenario.plan.schedule(scenario.seed);
            let is_timed = schedule.is_some_and(|schedule| schedule.timed_end().is_some());
            is_timed && !scenario.workers.is_empty()
        })
    }

    /// Assigns the arrivals of `slice` that are due at `from` or later, counted from the epoch.
    /// Those already due are sent late.
    pub fn take(&self, scenario: usize, slice: Slice, from: Nanos) {
        let Some(ScenarioWorkers { plan, seed, workers }) = self.scenarios.get(scenario) else {
            return;
        };
        let Some(schedule) = plan.schedule(*seed) else { return };
        let start = nanos(plan.start);
        for (worker, part) in workers.iter().zip(slice.split(workers.len())) {
            let source = ArrivalSource::new(schedule.arrivals(part).into_owned(), start);
            // The worker may have ended, after the end of the schedule.
            let _ = worker.send(Revision::Add(source.since(from)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::schedule::{Process, RateChange, Stage};

    use super::*;
    use crate::arrivals::Arrivals;

    #[test]
    fn a_change_during_a_first_ramp_keeps_the_warm_up_and_loses_nothing() {
        let seconds = Duration::from_secs;
        let ramp = Stage { from: 0.0, to: 20.0, duration: seconds(10) };
        let load = Load::Open { stages: vec![ramp], process: Process::Uniform };
        let plan = Arc::new(Plan { warmup: seconds(2), ..Plan::new("a test", load) });
        let mut workers = ScenarioWorkers::new(&plan, 0);
        let mut revised = workers.enlist();
        let schedule = plan.schedule(0).unwrap();
        let mut arrivals =
            Arrivals::new(ArrivalSource::new(schedule.arrivals(Slice::WHOLE).into_owned(), 0));
        let change = RateChange { at: seconds(4), factor: 2.0 };
        let at = u64::try_from(change.at.as_nanos()).unwrap();
        let (mut seen, mut next) = (Vec::new(), arrivals.next());
        while let Some(arrival) = next.filter(|next| next.due < at) {
            seen.push(arrival);
            next = arrivals.next();
        }
        workers.follow(&plan.with_rates_changed(&[change]));
        let Revision::Follow(changed) = revised.try_recv().unwrap() else { panic!("no schedule") };
        arrivals.follow(&changed, 0, next);
        seen.extend(arrivals);
        // 10 a second for 2 s, then 4 of the 100 of the ramp, then twice the others.
        assert!(seen.iter().map(|arrival| arrival.number).eq(0..20 + 4 + 2 * 96), "{seen:?}");
        assert!(seen.is_sorted_by_key(|arrival| arrival.due), "{seen:?}");
    }
}
