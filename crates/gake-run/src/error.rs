//! Why there is no run.

use std::fmt::Display;

use gake_core::spec::{FieldPath, SpecError};

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The spec cannot be what was meant; the field says where.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A sink cannot take the run; nothing has been sent. A sentence.
    #[error("{0}")]
    Sink(String),
    /// The world is in the way; a sentence.
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
