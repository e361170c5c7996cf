//! A slice of a script's run, in a process of its own.

use std::sync::Arc;
use std::time::Instant;

use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_engine::{PreparedRun, WorkerContext, prepare};
use gake_k6::work::ScriptFactory;
use gake_wire::ConnectionPermit;

use super::crew;
use super::{Keys, LoadedScript, ScriptRun, crews, network};
use crate::{PartLog, Prepared, RunError, UserControl};

/// What a process does of a script's run.
#[derive(Debug)]
pub struct ScriptSlice<'a> {
    /// Which part.
    pub slice: Slice,
    /// What `setup` returned, as JSON.
    pub data: Option<&'a str>,
    /// Where its users may connect to.
    pub permit: ConnectionPermit,
    /// When they must be loaded.
    pub load_until: Instant,
    /// Where what comes of each request also goes.
    pub log: Option<&'a mut PartLog>,
}

impl LoadedScript {
    /// Calls `tell` with the reason when a user ends the test.
    pub fn on_abort(&self, tell: impl Fn(&str) + Send + 'static) {
        let test = Arc::downgrade(&self.test);
        self.test.on_abort(move || {
            if let Some(abort) = test.upgrade().and_then(|test| test.aborted()) {
                tell(&abort.reason);
            }
        });
    }

    /// Calls `tell` when a user marks the test as failed.
    pub fn on_fail(&self, tell: impl Fn() + Send + 'static) {
        self.test.on_fail(tell);
    }

    /// The users of a slice of the run, which start when they are told the epoch. The slices of all
    /// processes are the run, without `setup` and `teardown`. A script runs once.
    ///
    /// # Errors
    /// When the users cannot be made, or not in time; nothing has been sent then.
    pub fn ready(
        &self,
        run: &ScriptRun,
        prepared: &Prepared,
        part: ScriptSlice<'_>,
    ) -> Result<PreparedRun, RunError> {
        let ScriptSlice { slice, data, permit, load_until, log } = part;
        let network = Arc::new(network(run, None, Some(Arc::new(permit)))?);
        let keys: Keys = run.keys.clone().into();
        let lanes: Vec<usize> = prepared.plan.scenarios().iter().map(Plan::lanes).collect();
        if let Some(share) = share(slice, lanes.iter().copied()) {
            // Set once, as what follows: a script runs once.
            let _ = self.test.share.set(share);
        }
        let _ = self.test.load_until.set(load_until);
        let loads = self.loads(run, &lanes, (&network, &keys), (data, slice));
        let crews = crews(run, &loads);
        // Those of this process, as users see it.
        let _ = self.test.active_users.set(crew::active(&crews, UserControl::default(), None));
        let make = move |context: WorkerContext| {
            let load = loads[context.scenario].clone();
            ScriptFactory::new(load, context.slice, context.clock)
        };
        let log = log.and_then(PartLog::take_sender);
        prepare(&prepared.plan, prepared.seed, slice, log, make).map_err(RunError::cannot)
    }
}

/// The share of a process in what those with users have together: the option `rps`.
fn share(slice: Slice, lanes: impl Iterator<Item = usize>) -> Option<f64> {
    slice.among(lanes.max()?).map(Slice::fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_without_users_have_no_part_of_the_rate() {
        let share = |slice, lanes: &[usize]| share(slice, lanes.iter().copied());
        let fourth = |index| Slice::new(index, 4);
        assert_eq!(share(fourth(3), &[10, 1]), Some(0.25));
        assert_eq!([share(fourth(1), &[1, 2]), share(fourth(2), &[1, 2])], [Some(0.5), None]);
        assert_eq!(share(fourth(0), &[1]), Some(1.0));
        assert_eq!(share(Slice::weighted(0, 3, 4), &[10]), Some(0.75));
    }
}
