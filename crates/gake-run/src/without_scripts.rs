//! Replaces `script` in a build without the feature: a spec that names a script is refused, and its
//! types have no values.

use std::convert::Infallible;

use crate::{EachSecond, RecordedRun, ResolvedRun, RunError, RunOptions};

const ABSENT: &str = "this build runs no scripts: it was made without the feature `scripts`";

/// A script with its options.
#[derive(Debug, Clone)]
pub enum ConfiguredScript {}

/// A script of a prepared run.
#[derive(Debug, Clone)]
pub enum PreparedScript {}

/// How a script ended.
#[derive(Debug)]
pub enum ScriptEnd {}

impl ScriptEnd {
    /// Is never called.
    ///
    /// # Errors
    /// Never.
    pub fn into_setup(self) -> Result<(), RunError> {
        match self {}
    }
}

impl PreparedScript {
    pub(crate) fn disable_thresholds(&mut self) {
        match *self {}
    }

    pub(crate) fn failure(&self, _: &ScriptEnd) -> Option<String> {
        match *self {}
    }
}

pub(crate) mod scenario {
    use gake_core::metric::Registry;
    use gake_core::spec::{FieldPath, RequestSource, RunSpec};

    use super::{ABSENT, ConfiguredScript, PreparedScript};
    use crate::{RunError, Scripts};

    #[derive(Debug)]
    pub(crate) enum ScenarioScript {}

    pub(crate) fn read(
        spec: &RunSpec,
        _: Option<&dyn Scripts>,
    ) -> Result<Vec<ScenarioScript>, RunError> {
        let is_script = |source: &RequestSource| matches!(source, RequestSource::Script(_));
        match spec.scenarios.iter().position(|one| is_script(&one.source)) {
            Some(number) => {
                let at = FieldPath::root().key("scenario").index(number).key("script");
                Err(RunError::spec(at, ABSENT))
            }
            None => Ok(Vec::new()),
        }
    }

    impl ScenarioScript {
        pub(crate) fn name(&self) -> &str {
            match *self {}
        }

        pub(crate) fn configured(&self) -> &ConfiguredScript {
            match *self {}
        }

        pub(crate) fn fires(&self, _: usize) -> bool {
            match *self {}
        }

        pub(crate) fn define(&self, _: &mut Registry) -> Result<(), RunError> {
            match *self {}
        }

        pub(crate) fn prepared(&self, _: &RunSpec) -> Result<PreparedScript, RunError> {
            match *self {}
        }
    }
}

impl ResolvedRun {
    pub(crate) fn run_scripts(
        &self,
        _: Option<Infallible>,
        _: RunOptions<'_>,
        _: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        Err(RunError::cannot(ABSENT))
    }
}
