//! The output format of a spec.

use clap::ValueEnum;
use gake_core::spec::{RunSpec, Syntax};

use crate::Failure;

/// The output format of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpecFormat {
    /// For people
    Toml,
    /// For programs
    Json,
}

impl SpecFormat {
    /// A spec as text.
    ///
    /// # Errors
    /// When a path in it is not UTF-8.
    pub fn text(self, spec: &RunSpec) -> Result<String, Failure> {
        let syntax = match self {
            Self::Toml => Syntax::Toml,
            Self::Json => Syntax::Json,
        };
        spec.draft().write(syntax).map_err(Failure::could_not)
    }
}
