//! Runners of the trials of a search.

use gake_judge::search::Trial;

use crate::spec::RunSpec;
use crate::{
    EachSecond, Interrupt, LoadedRequests, RecordedRun, ResolvedRun, RunError, RunOptions,
    TargetWatcher,
};

/// A trial that is ready to start.
#[derive(Debug, Clone, Copy)]
pub struct PreparedTrial<'a> {
    /// The trial that the search requests.
    pub trial: &'a Trial,
    /// The trial as a spec.
    pub spec: &'a RunSpec,
    /// The requests of the spec.
    pub loaded: &'a LoadedRequests,
    /// The prepared run.
    pub prepared: &'a ResolvedRun,
    /// Ends the trial early.
    pub interrupt: &'a Interrupt,
}

/// Runs the trials of a search.
pub trait TrialRunner {
    /// Runs a trial to its end; `watching` samples the target, and `each` sees each second and may
    /// end the trial.
    fn run(
        &mut self,
        of: PreparedTrial<'_>,
        watching: &mut TargetWatcher,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError>;
}

/// Runs trials in this process, without saving them.
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
