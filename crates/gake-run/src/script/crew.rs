//! The users of one scenario: how many are active, and what they left undone.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use gake_core::Load;
use gake_core::clock::Nanos;
use gake_core::plan::UserStage;
use gake_core::schedule::Slice;
use gake_core::spec::ScenarioSpec;
use gake_k6::scenario::ScenarioProgress;
use gake_k6::test::ActiveUsers;
use gake_k6::work::ScriptLoad;

use super::nanos;
use crate::UserControl;

/// The slices of a run whose process is lost by now, from any thread.
pub type LostParts = Arc<dyn Fn() -> Vec<Slice> + Send + Sync>;

/// The users of one scenario.
pub(super) struct Crew {
    load: Load,
    max_in_flight: usize,
    /// The part of it that is in this process.
    process: Slice,
    start: Nanos,
    /// Without one, a number of iterations ends it.
    end: Option<Nanos>,
    pub(super) progress: Arc<ScenarioProgress>,
}

impl Crew {
    pub(super) fn of(spec: &ScenarioSpec, load: &ScriptLoad) -> Self {
        let length = spec.load.length().or(spec.duration);
        let start = nanos(spec.start);
        Self {
            load: spec.load.clone(),
            max_in_flight: spec.max_in_flight,
            process: load.process,
            start,
            end: length.map(|length| start.saturating_add(nanos(length))),
            progress: Arc::clone(&load.scenario.progress),
        }
    }

    /// All of its users in all processes, active or not.
    pub(super) fn users(&self) -> usize {
        self.load.users().unwrap_or(self.max_in_flight)
    }

    /// Iterations that it has to make in this process, where that is a number.
    fn total(&self) -> Option<u64> {
        match self.load {
            Load::Shared { iterations, .. } => Some(self.process.count_u64(iterations)),
            Load::PerUser { users, iterations } => {
                Some(iterations * self.process.count(users) as u64)
            }
            _ => None,
        }
    }

    /// Iterations that never began.
    pub(super) fn left(&self) -> u64 {
        self.total().map_or(0, |total| total.saturating_sub(self.progress.begun.load(Relaxed)))
    }

    /// Whether none of its iterations begins any more at an instant of the run.
    pub(super) fn is_over(&self, at: Nanos) -> bool {
        self.end.is_some_and(|end| at >= end) || self.total().is_some() && self.left() == 0
    }

    /// Users of this process that are active at an instant of the run, as long as the scenario
    /// lasts: those of an arrival rate while they run an iteration. `asked` is the number that was
    /// set from outside.
    pub(super) fn active(&self, at: Nanos, asked: Option<usize>) -> usize {
        if at < self.start || self.is_over(at) {
            return 0;
        }
        let active = match &self.load {
            Load::Open { .. } => {
                let running = self.progress.running.load(Relaxed);
                return usize::try_from(running).unwrap_or(usize::MAX);
            }
            Load::Ramping { stages, .. } => ramped(stages, at - self.start),
            Load::External { users, .. } => asked.unwrap_or(*users),
            load => load.users().unwrap_or(0),
        };
        self.process.count(active)
    }
}

/// How many users of all crews are active in this process at an instant of the run, without those
/// that are lost.
pub(super) fn active(
    crews: &Arc<[Crew]>,
    control: UserControl,
    lost: Option<LostParts>,
) -> ActiveUsers {
    let crews = Arc::clone(crews);
    Arc::new(move |at| {
        let lost = lost.as_ref().map(|lost| lost()).unwrap_or_default();
        let there = |(number, crew): (usize, &Crew)| {
            let active = crew.active(at, control.asked(number));
            let gone: usize = lost.iter().map(|slice| slice.count(active)).sum();
            active.saturating_sub(gone)
        };
        crews.iter().enumerate().map(there).sum()
    })
}

/// The number of users that a ramp has reached `into` it.
fn ramped(stages: &[UserStage], mut into: Nanos) -> usize {
    for stage in stages {
        let length = nanos(stage.duration);
        if into < length {
            let (from, to) = (stage.from as f64, stage.to as f64);
            return (from + (to - from) * into as f64 / length as f64) as usize;
        }
        into -= length;
    }
    stages.last().map_or(0, |stage| stage.to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crew(load: Load, process: Slice) -> Crew {
        Crew { load, max_in_flight: 5, process, start: 0, end: None, progress: Arc::default() }
    }

    #[test]
    fn the_users_of_all_processes_are_those_of_the_scenario() {
        for load in [
            Load::closed(5),
            Load::Shared { users: 5, iterations: 7 },
            Load::PerUser { users: 5, iterations: 2 },
        ] {
            let parts = Slice::WHOLE.split(3).map(|part| crew(load.clone(), part));
            assert_eq!(parts.map(|crew| crew.active(0, None)).sum::<usize>(), 5, "{load:?}");
        }
    }

    #[test]
    fn nobody_is_active_once_all_iterations_of_the_process_have_begun() {
        let part = Slice::new(0, 2);
        for (load, own) in [
            (Load::Shared { users: 5, iterations: 7 }, 4),
            (Load::PerUser { users: 5, iterations: 2 }, 6),
        ] {
            let crew = crew(load, part);
            crew.progress.begun.store(own - 1, Relaxed);
            assert_eq!((crew.active(0, None), crew.left()), (3, 1));
            crew.progress.begun.store(own, Relaxed);
            assert_eq!((crew.active(0, None), crew.left()), (0, 0));
        }
    }
}
