//! A slice of a run with scripts, for one process of several.

use std::sync::Arc;
use std::time::Instant;

use gake_core::schedule::Slice;
use gake_engine::{PreparedRun, WorkerBody, WorkerContext, prepare};
use gake_k6::work::ScriptFactory;
use gake_wire::ConnectionPermit;

use super::mixed::ScenarioWorks;
use super::prepared::PreparedScript;
use super::scenario_users;
use super::{LoadedScript, TagKeys, network, users_by_scenario};
use crate::plan::check_memory;
use crate::{ResolvedRun, RunError, SliceLog, UserControl};

/// A slice of a run with scripts.
#[derive(Debug)]
pub struct ScriptSlice<'a> {
    /// The slice.
    pub slice: Slice,
    /// The return value of `setup` of each script, as JSON.
    pub data: Vec<Option<&'a str>>,
    /// Checks connections of their users.
    pub permit: ConnectionPermit,
    /// Deadline for loading the users.
    pub load_until: Instant,
    /// A log of every request.
    pub log: Option<&'a mut SliceLog>,
}

impl LoadedScript {
    /// Calls `notify` with the reason when a user aborts the test.
    pub fn on_abort(&self, notify: impl Fn(&str) + Send + 'static) {
        let test = Arc::downgrade(&self.test);
        self.test.on_abort(move || {
            if let Some(abort) = test.upgrade().and_then(|test| test.aborted()) {
                notify(&abort.reason);
            }
        });
    }

    /// Calls `notify` when a user marks the test as failed.
    pub fn on_fail(&self, notify: impl Fn() + Send + 'static) {
        self.test.on_fail(notify);
    }
}

impl ResolvedRun {
    /// Prepares a slice of a run with scripts, whose users wait for the epoch. The slices of all
    /// processes sum to the run, without `setup` and `teardown`. A script runs once.
    ///
    /// # Errors
    /// When the users cannot be loaded in time; nothing has been sent then.
    pub fn ready_scripts(&self, slice: ScriptSlice<'_>) -> Result<PreparedRun, RunError> {
        let ScriptSlice { slice, data, permit, load_until, log } = slice;
        check_memory(&self.plan, slice, true).map_err(RunError::cannot)?;
        let permit = Arc::new(permit);
        let plans = self.plan.scenarios();
        let mut loads = Vec::new();
        loads.resize_with(plans.len(), || None);
        let data = data.into_iter().chain(std::iter::repeat(None));
        for (PreparedScript { script, run, scenarios, .. }, data) in self.scripts.iter().zip(data) {
            let network = Arc::new(network(run, None, Some(Arc::clone(&permit)))?);
            let keys: TagKeys = run.keys.clone().into();
            let lanes: Vec<usize> = scenarios.iter().map(|number| plans[*number].lanes()).collect();
            let test = &script.test;
            if let Some(share) = share(slice, lanes.iter().copied()) {
                // These cannot fail: set once, since a script runs once.
                let _ = test.share.set(share);
            }
            let _ = test.load_until.set(load_until);
            let own = script.loads(run, &lanes, (&network, &keys), (data, slice));
            let users = users_by_scenario(run, &own);
            // Users see only the users of this process.
            let active = scenario_users::active(&users, UserControl::default(), None);
            let _ = test.active_users.set(active);
            for (number, load) in scenarios.iter().zip(own) {
                loads[*number] = Some(load);
            }
        }
        let log = log.and_then(SliceLog::take_sender);
        let body = if self.wires.is_empty() {
            let loads: Vec<_> = loads.into_iter().flatten().collect();
            WorkerBody::new(move |context: WorkerContext| {
                let load = loads[context.scenario].clone();
                ScriptFactory::new(load, context.slice, context.clock)
            })
        } else {
            let works = ScenarioWorks::of(self, loads);
            WorkerBody::new(move |context| works.make(context))
        };
        prepare(&self.plan, self.seed, slice, log, body).map_err(RunError::cannot)
    }
}

/// The share of a process in the option `rps`, which only processes with users get.
fn share(slice: Slice, lanes: impl Iterator<Item = usize>) -> Option<f64> {
    slice.among(lanes.max()?).map(Slice::fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_without_users_have_no_share_of_the_rate() {
        let share = |slice, lanes: &[usize]| share(slice, lanes.iter().copied());
        let fourth = |index| Slice::new(index, 4);
        assert_eq!(share(fourth(3), &[10, 1]), Some(0.25));
        assert_eq!([share(fourth(1), &[1, 2]), share(fourth(2), &[1, 2])], [Some(0.5), None]);
        assert_eq!(share(fourth(0), &[1]), Some(1.0));
        assert_eq!(share(Slice::weighted(0, 3, 4), &[10]), Some(0.75));
    }
}
