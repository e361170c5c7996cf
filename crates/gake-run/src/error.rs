//! Why a run could not be made.

use std::fmt::Display;

use gake_core::spec::{FieldPath, SpecError};

/// Why a run could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The spec is not valid; the path names the field.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A sink cannot take the run, in a sentence; nothing was sent.
    #[error("{0}")]
    Sink(String),
    /// The environment prevents it, in a sentence.
    #[error("{0}")]
    Cannot(String),
}

impl RunError {
    /// An error in a field.
    pub fn spec(path: FieldPath, problem: impl Display) -> Self {
        Self::Spec(SpecError::new(path, problem))
    }

    /// Something that could not be done.
    pub fn cannot(problem: impl Display) -> Self {
        Self::Cannot(problem.to_string())
    }
}
