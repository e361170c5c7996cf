//! How the scripts of a run ended, apart from their figures.

use gake_core::record::RunEnd;
use gake_judge::{Evaluation, Summary, ValueUnit};
use gake_run::script::{PreparedScript, ScriptEnd};

use crate::{Console, Exit};

/// How the scripts of a run ended, apart from their figures.
#[derive(Debug, Default)]
pub(crate) struct ScriptOutcome {
    /// Failures of `setup` and `teardown`, and aborts.
    errors: Vec<String>,
    /// CPU profiles of the scripts.
    profiles: Vec<String>,
}

/// Collects how the scripts ended. A script that called `exec.test.fail` missed an objective; one
/// that ended the test, or failed before it, was not interrupted by the user.
pub(crate) fn outcome(
    scripts: &[PreparedScript],
    ends: &[ScriptEnd],
    summary: &mut Summary,
) -> ScriptOutcome {
    let mut outcome = ScriptOutcome::default();
    for (prepared, end) in scripts.iter().zip(ends) {
        let test = &prepared.script.test;
        if let Err(error) = &end.setup {
            outcome.errors.push(format!("setup failed, and nothing was run: {error}"));
            summary.run.ending = RunEnd::Aborted("setup, which failed".to_owned());
        }
        if let Err(error) = &end.teardown {
            outcome.errors.push(format!("teardown failed: {error}"));
        }
        if let Some(abort) = test.aborted() {
            outcome.errors.push(format!("the script ended the test: {}", abort.reason));
            summary.run.ending = RunEnd::Aborted("the script's request".to_owned());
        }
        if test.has_failed() {
            summary.verdict.objectives.push(Evaluation {
                text: "the script does not call exec.test.fail".to_owned(),
                value: None,
                unit: ValueUnit::Count,
                met: false,
                problem: Some("it marked the test as failed".to_owned()),
            });
        }
        if let Some(profile) = &test.settings().profile {
            outcome.profiles.push(profile.text());
        }
    }
    outcome
}

impl ScriptOutcome {
    /// Prints errors and profiles. Returns the exit of a run that would otherwise end with `exit`.
    pub(crate) fn report(self, exit: Exit, console: &Console) -> Exit {
        for profile in &self.profiles {
            console.note(profile.trim_end());
        }
        for error in &self.errors {
            console.error(error);
        }
        if self.errors.is_empty() { exit } else { Exit::CouldNot }
    }
}
