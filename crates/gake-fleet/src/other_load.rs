//! A load that replaces the one in a script's options.

use gake_core::spec::RunSpec;
use gake_run::script::ScriptRun;
use serde::{Deserialize, Serialize};

/// Settings of scenarios that replace the ones in a script's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherLoad {
    /// The names of their executors, in order.
    pub executors: Vec<String>,
    /// Tags by which sub-metrics are selected.
    pub keys: Vec<String>,
}

impl OtherLoad {
    /// The settings of `run`, whose scenarios replace the ones in the script's options.
    #[must_use]
    pub fn of(run: &ScriptRun) -> Self {
        Self { executors: run.executors.clone(), keys: run.keys.clone() }
    }

    /// Replaces the scenarios and connection settings of `run` by the spec's.
    pub(crate) fn replace(&self, run: &mut ScriptRun, spec: RunSpec) {
        run.spec = spec;
        (run.executors, run.keys) = (self.executors.clone(), self.keys.clone());
    }
}
