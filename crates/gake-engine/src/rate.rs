//! Changes of rates and users during a run.

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

/// Delay of a change, so that normally all workers have received it when it takes effect.
const LEAD: Nanos = 100_000_000;

/// Maximum number of changes of a run, all of which are kept.
const CHANGES_MAX: usize = 1_000;

/// Why a rate cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateChangeError {
    /// No scenario has a rate or an external number of users, or the workers are in other
    /// processes.
    #[error("this run has no rate that can be changed")]
    NoRate,
    /// The run has [`CHANGES_MAX`] changes.
    #[error("the rate was already changed 1,000 times")]
    TooMany,
    /// The rate of a warm-up is fixed.
    #[error("the warm-up is not over")]
    WarmUp,
    /// Arrivals have ended, or the run is stopping.
    #[error("no more requests are due")]
    Over,
    /// The factor is not a finite number above 0.
    #[error("the factor must be above 0")]
    Factor,
}

/// Changes the rates of open loops and the users of externally controlled loads during a run, from
/// any thread. Does not affect replays and other closed loops.
#[derive(Debug, Clone)]
pub struct RateHandle(Arc<RateState>);

#[derive(Debug)]
struct RateState {
    plan: Arc<Plan>,
    scenarios: Arc<Vec<ScenarioWorkers>>,
    users: Vec<Option<UsersHandle>>,
    clock: RunClock,
    stop: StopHandle,
    /// Whether changes are rejected. Written while `changes` is locked.
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

    /// Multiplies all rates of the plan by `factor` in a tenth of a second, and the numbers of
    /// users immediately. Earlier arrivals keep their due times.
    ///
    /// # Errors
    /// When that is not possible; nothing is changed.
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

    /// Rejects further changes: the run is over.
    pub fn close(&self) {
        // Wait for a change in progress: accepted changes are in the list.
        let _changes = self.0.lock();
        self.0.is_closed.store(true, Relaxed);
    }

    /// The changes so far. Changes are listed before they take effect.
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

    /// The handle of a run of one minute.
    fn handle(stop: &StopHandle) -> RateHandle {
        let stages = vec![Stage::step(10.0, Duration::from_secs(60))];
        let plan = Plan::new("a test", Load::Open { stages, process: Process::Uniform });
        RateHandle::new(&Arc::new(plan), &Arc::default(), &[None], &RunClock::not_started(), stop)
    }

    #[test]
    fn changes_are_rejected_after_a_stop_or_the_end() {
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
