//! A script of a prepared run, and how its part of the run ended.

use std::sync::Arc;

use gake_k6::threshold::Thresholds;

use super::{LoadedScript, ScriptRun, ScriptRunError};

/// A script of a prepared run. It runs once.
#[derive(Debug, Clone)]
pub struct PreparedScript {
    /// The script.
    pub script: LoadedScript,
    /// Its scenarios, and how its users connect.
    pub run: ScriptRun,
    /// Thresholds of which one may end the run.
    pub thresholds: Option<Arc<Thresholds>>,
    /// The numbers of its scenarios in the plan.
    pub scenarios: Vec<usize>,
}

/// How a script's part of a run ended, apart from what it recorded.
#[derive(Debug)]
pub struct ScriptEnd {
    /// What `setup` returned, as JSON; `None` when it did not return.
    pub setup_data: Option<String>,
    /// Why `setup` failed, if it did; nothing ran then, nor after one that was cut.
    pub setup: Result<(), ScriptRunError>,
    /// Why `teardown` did not complete, if it did not.
    pub teardown: Result<(), ScriptRunError>,
}

impl ScriptEnd {
    /// That of a script that did nothing.
    #[must_use]
    pub const fn void() -> Self {
        Self { setup_data: None, setup: Ok(()), teardown: Ok(()) }
    }
}

impl PreparedScript {
    /// Leaves out the thresholds of which one may end the run.
    pub(crate) fn leave_out_thresholds(&mut self) {
        self.thresholds = None;
    }

    /// Why a run that ended so says nothing of the load, if it does not.
    pub(crate) fn failure(&self, end: &ScriptEnd) -> Option<String> {
        match (&end.setup, self.script.test.aborted()) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Some(abort)) => Some(format!("the script ended the test: {}", abort.reason)),
            (Ok(()), None) => None,
        }
    }
}

/// Why the users of a run cannot be in other processes.
pub const ONE_SCRIPT: &str =
    "agents run one script, and no other scenarios beside it: run each of them by itself";
