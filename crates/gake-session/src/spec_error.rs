//! Errors of a spec for the command line: in terms of the flag of the field.

use gake_core::spec::{self, FieldPath, SpecError, SpecField};
use gake_run::RunError;

use crate::Failure;

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        failure(&error)
    }
}

/// An error in terms of the command line.
pub fn failure(error: &RunError) -> Failure {
    match error {
        RunError::Cannot(problem) | RunError::Sink(problem) => Failure::could_not(problem),
        RunError::Spec(SpecError { path, problem }) => Failure::usage(message(path, problem)),
    }
}

fn message(path: &FieldPath, problem: &str) -> String {
    let field = path.field().and_then(spec::field).filter(|field| !field.flag.is_empty());
    let Some(SpecField { flag, .. }) = field else { return problem.to_owned() };
    let problem = problem.replace("iterations_per_user", "--once");
    match problem.strip_prefix("it ") {
        Some(rest) => {
            let rest = rest.replace("needs a rate", "needs a --rate");
            format!("{flag} {}", rest.replace("an objective", "an objective (--slo)"))
        }
        None => format!("{flag}: {problem}"),
    }
}
