//! A load in place of the one that the options of a script describe.

use gake_core::spec::RunSpec;
use gake_run::script::ScriptRun;
use serde::{Deserialize, Serialize};

/// What goes with scenarios that are not those of a script's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// The names of their executors, in their order.
    pub executors: Vec<String>,
    /// Tags by which sub-metrics are selected.
    pub keys: Vec<String>,
}

impl OtherLoad {
    /// That of `run`, whose scenarios are not those of the script's options.
    #[must_use]
    pub fn of(run: &ScriptRun) -> Self {
        Self { executors: run.executors.clone(), keys: run.keys.clone() }
    }

    /// Fires the scenarios of `spec`, over connections as it describes them.
    pub(crate) fn replace(&self, run: &mut ScriptRun, spec: RunSpec) {
        run.spec = spec;
        (run.executors, run.keys) = (self.executors.clone(), self.keys.clone());
    }
}
