//! Who runs the trials of a search.

use gake_judge::search::Trial;

use crate::spec::RunSpec;
use crate::{
    Interrupt, LoadedRequests, PreparedRun, RecordedRun, RunError, RunOptions, SecondUpdate,
    TargetWatcher,
};

/// Sees each second of a trial, and may end it.
pub type EachSecond<'a> = dyn FnMut(&SecondUpdate<'_>) -> Option<String> + Send + 'a;

/// A trial that is ready to start.
#[derive(Debug, Clone, Copy)]
pub struct PreparedTrial<'a> {
    /// What the search asks for.
    pub trial: &'a Trial,
    /// The same as a spec.
    pub spec: &'a RunSpec,
    /// What the spec sends.
    pub loaded: &'a LoadedRequests,
    /// The run.
    pub prepared: &'a PreparedRun,
    /// Ends it early.
    pub interrupt: &'a Interrupt,
}

/// Runs the trials of a search.
pub trait TrialRunner {
    /// Runs a trial to its end, with `watching` during it; each second goes to `each`, which may
    /// end it.
    ///
    /// # Errors
    /// When it cannot be run.
    fn run(
        &mut self,
        of: PreparedTrial<'_>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError>;
}

/// Runs trials in this process, and keeps nothing of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTrials;

impl TrialRunner for LocalTrials {
    fn run(
        &mut self,
        of: PreparedTrial<'_>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let options = RunOptions {
            interrupt: Some(of.interrupt),
            watching: Some(watching),
            ..RunOptions::default()
        };
        of.prepared.run_with(options, each)
    }
}
