//! Errors of runs.

use std::fmt::Display;

use gake_core::spec::{FieldPath, SpecError};

/// Why a run could not be prepared or carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The spec is not valid; the error names the field.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A sink cannot take the run, in a sentence. Nothing was sent.
    #[error("{0}")]
    Sink(String),
    /// The environment prevents it, in a sentence.
    #[error("{0}")]
    Cannot(String),
}

impl RunError {
    /// An error in a field of the spec.
    pub fn spec(path: FieldPath, problem: impl Display) -> Self {
        Self::Spec(SpecError::new(path, problem))
    }

    /// An error of the environment.
    pub fn cannot(problem: impl Display) -> Self {
        Self::Cannot(problem.to_string())
    }
}
