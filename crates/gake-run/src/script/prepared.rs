//! A script of a prepared run, and how it ended.

use std::sync::Arc;

use gake_k6::threshold::Thresholds;

use crate::RunError;

use super::{LoadedScript, ScriptRun, ScriptRunError};

/// A script of a prepared run. It runs once.
#[derive(Debug, Clone)]
pub struct PreparedScript {
    /// The script.
    pub script: LoadedScript,
    /// Its scenarios and connection settings.
    pub run: ScriptRun,
    /// Thresholds that may abort the run.
    pub thresholds: Option<Arc<Thresholds>>,
    /// Indices of its scenarios in the plan.
    pub scenarios: Vec<usize>,
}

/// How a script ended, apart from its figures.
#[derive(Debug)]
pub struct ScriptEnd {
    /// The return value of `setup`, as JSON; `None` if it did not return.
    pub setup_data: Option<String>,
    /// The error of `setup`. Nothing runs after an error or an interrupt.
    pub setup: Result<(), ScriptRunError>,
    /// The error of `teardown`.
    pub teardown: Result<(), ScriptRunError>,
}

impl ScriptEnd {
    /// The end of a script that did not run.
    #[must_use]
    pub const fn void() -> Self {
        Self { setup_data: None, setup: Ok(()), teardown: Ok(()) }
    }

    /// Returns the error of `setup`.
    ///
    /// # Errors
    /// The error of `setup`.
    pub fn into_setup(self) -> Result<(), RunError> {
        self.setup.map_err(RunError::cannot)
    }
}

impl PreparedScript {
    /// Disables thresholds that may abort the run.
    pub(crate) fn disable_thresholds(&mut self) {
        self.thresholds = None;
    }

    /// Why the figures of a run are useless, if they are: `setup` failed or the script aborted.
    pub(crate) fn failure(&self, end: &ScriptEnd) -> Option<String> {
        match (&end.setup, self.script.test.aborted()) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Some(abort)) => Some(format!("the script ended the test: {}", abort.reason)),
            (Ok(()), None) => None,
        }
    }
}
