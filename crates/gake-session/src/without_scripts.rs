//! Replaces `script` in a build without the feature: scripts are refused by the caller, and their
//! types have no values.

use std::path::Path;

use gake_judge::Summary;
use gake_run::script::{ConfiguredScript, PreparedScript, ScriptEnd};
use gake_run::{RunError, Scripts};

use crate::{Console, Exit};

/// Loads the scripts that a spec names.
#[derive(Debug)]
pub enum ScriptLoader {}

impl ScriptLoader {
    /// Is never called.
    #[must_use]
    pub fn left_out(&self) -> Option<u64> {
        match *self {}
    }
}

impl Scripts for ScriptLoader {
    fn load(&self, _: &Path) -> Result<ConfiguredScript, RunError> {
        match *self {}
    }
}

pub(crate) struct ScriptOutcome;

pub(crate) fn outcome(_: &[PreparedScript], _: &[ScriptEnd], _: &mut Summary) -> ScriptOutcome {
    ScriptOutcome
}

impl ScriptOutcome {
    pub(crate) fn report(self, exit: Exit, _: &Console) -> Exit {
        exit
    }
}
