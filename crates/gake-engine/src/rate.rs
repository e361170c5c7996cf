//! Changing the rates and users of a run while it goes on.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Clock, Nanos};
use gake_core::plan::Plan;
use gake_core::schedule::RateChange;

use crate::clock::RunClock;
use crate::control::{Stop, StopHandle, UsersHandle};
use crate::takeover::ScenarioWorkers;

/// A change takes effect this long after it is asked for, so that every worker normally knows it by
/// then.
const LEAD: Nanos = 100_000_000;

/// Changes of a run at most: all are kept.
const CHANGES_MAX: usize = 1_000;

/// Why a rate cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateChangeError {
    /// No scenario has a rate, or users that are set from outside, or its workers are in other
    /// processes.
    #[error("this run has no rate that can be changed")]
    NoRate,
    /// The run's changes are as many as are kept.
    #[error("it was changed 1,000 times already")]
    TooMany,
    /// The rate of a warm-up is fixed.
    #[error("the warm-up is not over")]
    WarmUp,
    /// No more arrivals come: all were due, or the run was told to stop.
    #[error("no more requests are due")]
    Over,
    /// The factor is not a finite number above 0.
    #[error("the factor must be above 0")]
    Factor,
}

/// Changes the rates of all open loops of a run while it goes on, and the number of users where that
/// is set from outside, from any thread. Replays keep their times, other closed loops their users.
#[derive(Debug, Clone)]
pub struct RateHandle(Arc<RateState>);

#[derive(Debug)]
struct RateState {
    plan: Arc<Plan>,
    scenarios: Arc<Vec<ScenarioWorkers>>,
    users: Vec<Option<UsersHandle>>,
    clock: RunClock,
    stop: StopHandle,
    /// Whether no more changes are taken. Changes while `changes` is locked.
    is_closed: AtomicBool,
    changes: Mutex<Vec<RateChange>>,
}

impl RateHandle {
    pub(crate) fn new(
        plan: &Arc<Plan>,
        scenarios: &Arc<Vec<ScenarioWorkers>>,
        users: &[Option<UsersHandle>],
        clock: &RunClock,
        stop: &StopHandle,
    ) -> Self {
        let (plan, scenarios) = (Arc::clone(plan), Arc::clone(scenarios));
        let (users, clock, stop) = (users.to_vec(), clock.clone(), stop.clone());
        let (is_closed, changes) = (AtomicBool::new(false), Mutex::default());
        Self(Arc::new(RateState { plan, scenarios, users, clock, stop, is_closed, changes }))
    }

    /// Makes all rates those of the plan times `factor`, in a tenth of a second, and the numbers of
    /// users at once. Arrivals that are due before are due when they were.
    ///
    /// # Errors
    /// When that is not possible; nothing changes then.
    pub fn change(&self, factor: f64) -> Result<(), RateChangeError> {
        let shared = &*self.0;
        if !(factor > 0.0 && factor.is_finite()) {
            return Err(RateChangeError::Factor);
        }
        let mut changes = shared.lock();
        let at = Duration::from_nanos(shared.clock.now().saturating_add(LEAD));
        shared.is_possible(at)?;
        if changes.len() == CHANGES_MAX {
            return Err(RateChangeError::TooMany);
        }
        changes.push(RateChange { at, factor });
        let plan = shared.plan.with_rates_changed(&changes);
        for (workers, plan) in shared.scenarios.iter().zip(plan.scenarios()) {
            workers.follow(plan);
        }
        for (handle, plan) in shared.users.iter().zip(plan.scenarios()) {
            if let (Some(handle), Some(Load::External { users, .. })) = (handle, plan.load.one()) {
                handle.set((*users as f64 * factor).round() as usize);
            }
        }
        Ok(())
    }

    /// Takes no more changes: the run is over.
    pub fn close(&self) {
        // Who is changing the rates finishes first: what was accepted is among the changes.
        let _changes = self.0.lock();
        self.0.is_closed.store(true, Relaxed);
    }

    /// The changes so far; each is there before it takes effect.
    #[must_use]
    pub fn changes(&self) -> Vec<RateChange> {
        self.0.lock().clone()
    }
}

impl RateState {
    fn is_possible(&self, at: Duration) -> Result<(), RateChangeError> {
        let changing = |plan: &&Plan| {
            matches!(plan.load.one(), Some(Load::Open { .. } | Load::External { .. }))
        };
        let plans = || self.plan.scenarios().iter().filter(changing);
        if plans().next().is_none() {
            return Err(RateChangeError::NoRate);
        }
        if self.is_closed.load(Relaxed) || self.stop.asked() != Stop::Go {
            return Err(RateChangeError::Over);
        }
        let begins = |plan: &Plan| plan.start.saturating_add(plan.warmup);
        if plans().any(|plan| plan.start <= at && at < begins(plan)) {
            return Err(RateChangeError::WarmUp);
        }
        let ends = |plan: &Plan| plan.length().map(|length| plan.start.saturating_add(length));
        if plans().all(|plan| ends(plan).is_some_and(|end| end <= at)) {
            return Err(RateChangeError::Over);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RateChange>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gake_core::schedule::{Process, Stage};

    use super::*;

    /// What changes the rate of a run that goes on for a minute.
    fn handle(stop: &StopHandle) -> RateHandle {
        let stages = vec![Stage::step(10.0, Duration::from_secs(60))];
        let plan = Plan::new("a test", Load::Open { stages, process: Process::Uniform });
        RateHandle::new(&Arc::new(plan), &Arc::default(), &[None], &RunClock::not_started(), stop)
    }

    #[test]
    fn nothing_changes_after_a_stop_was_asked_for_or_the_end() {
        let (stop, _asked) = StopHandle::new();
        let (ended, stopped) = (handle(&stop), handle(&stop));
        assert_eq!((ended.change(2.0), stopped.change(0.5)), (Ok(()), Ok(())));
        ended.close();
        assert_eq!(ended.change(3.0), Err(RateChangeError::Over));
        stop.stop(Stop::Drain);
        assert_eq!(stopped.change(3.0), Err(RateChangeError::Over));
        for (handle, factor) in [(ended, 2.0), (stopped, 0.5)] {
            let at = Duration::from_nanos(LEAD);
            assert_eq!(handle.changes(), [RateChange { at, factor }]);
        }
    }
}
