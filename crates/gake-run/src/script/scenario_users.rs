//! The users of a scenario: how many are active, and how many iterations never started.

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

/// Returns the slices of a run whose processes are lost so far; callable from any thread.
pub type LostSlices = Arc<dyn Fn() -> Vec<Slice> + Send + Sync>;

pub(super) struct ScenarioUsers {
    load: Load,
    max_in_flight: usize,
    process: Slice,
    start: Nanos,
    /// `None` if a number of iterations ends it.
    end: Option<Nanos>,
    pub(super) progress: Arc<ScenarioProgress>,
}

impl ScenarioUsers {
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

    /// Number of users in all processes, active or not.
    pub(super) fn users(&self) -> usize {
        self.load.users().unwrap_or(self.max_in_flight)
    }

    /// Number of iterations in this process, if it is fixed.
    fn total(&self) -> Option<u64> {
        match self.load {
            Load::Shared { iterations, .. } => Some(self.process.count_u64(iterations)),
            Load::PerUser { users, iterations } => {
                Some(iterations * self.process.count(users) as u64)
            }
            _ => None,
        }
    }

    /// Number of iterations that never started.
    pub(super) fn left(&self) -> u64 {
        self.total().map_or(0, |total| total.saturating_sub(self.progress.begun.load(Relaxed)))
    }

    /// Whether no iteration starts any more at an instant of the run.
    pub(super) fn is_over(&self, at: Nanos) -> bool {
        self.end.is_some_and(|end| at >= end) || self.total().is_some() && self.left() == 0
    }

    /// Active users in this process at an instant of the run. Users of an arrival rate are active
    /// during an iteration. `asked` is the number set from outside.
    pub(super) fn active(&self, at: Nanos, requested: Option<usize>) -> usize {
        if at < self.start || self.is_over(at) {
            return 0;
        }
        let active = match &self.load {
            Load::Open { .. } => {
                let running = self.progress.running.load(Relaxed);
                return usize::try_from(running).unwrap_or(usize::MAX);
            }
            Load::Ramping { stages, .. } => ramped(stages, at - self.start),
            Load::External { users, .. } => requested.unwrap_or(*users),
            load => load.users().unwrap_or(0),
        };
        self.process.count(active)
    }
}

/// Counts the active users of all scenarios in this process at an instant of the run, without
/// lost slices.
pub(super) fn active(
    scenario_users: &Arc<[ScenarioUsers]>,
    control: UserControl,
    lost: Option<LostSlices>,
) -> ActiveUsers {
    let scenario_users = Arc::clone(scenario_users);
    Arc::new(move |at| {
        let lost = lost.as_ref().map(|lost| lost()).unwrap_or_default();
        let remaining = |(number, users): (usize, &ScenarioUsers)| {
            let active = users.active(at, control.requested(number));
            let gone: usize = lost.iter().map(|slice| slice.count(active)).sum();
            active.saturating_sub(gone)
        };
        scenario_users.iter().enumerate().map(remaining).sum()
    })
}

/// The number of users of a ramp at `into` since its start.
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

    fn users(load: Load, process: Slice) -> ScenarioUsers {
        ScenarioUsers {
            load,
            max_in_flight: 5,
            process,
            start: 0,
            end: None,
            progress: Arc::default(),
        }
    }

    #[test]
    fn the_users_of_all_processes_are_those_of_the_scenario() {
        for load in [
            Load::closed(5),
            Load::Shared { users: 5, iterations: 7 },
            Load::PerUser { users: 5, iterations: 2 },
        ] {
            let slices = Slice::WHOLE.split(3).map(|slice| users(load.clone(), slice));
            assert_eq!(slices.map(|users| users.active(0, None)).sum::<usize>(), 5, "{load:?}");
        }
    }

    #[test]
    fn no_user_is_active_once_all_iterations_of_the_process_have_begun() {
        let half = Slice::new(0, 2);
        for (load, own) in [
            (Load::Shared { users: 5, iterations: 7 }, 4),
            (Load::PerUser { users: 5, iterations: 2 }, 6),
        ] {
            let users = users(load, half);
            users.progress.begun.store(own - 1, Relaxed);
            assert_eq!((users.active(0, None), users.left()), (3, 1));
            users.progress.begun.store(own, Relaxed);
            assert_eq!((users.active(0, None), users.left()), (0, 0));
        }
    }
}
