//! Errors of specs, with the path of the field.

use std::fmt;

/// The path to a field: `scenario[0].rate`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<PathStep>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

impl FieldPath {
    /// The whole document.
    #[must_use]
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path of `key` in this table.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.and(PathStep::Key(key.to_owned()))
    }

    /// The path of element `index` of this array.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.and(PathStep::Index(index))
    }

    fn and(&self, step: PathStep) -> Self {
        let mut path = self.0.clone();
        path.push(step);
        Self(path)
    }

    /// The last key of the path.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            PathStep::Key(key) => Some(key.as_str()),
            PathStep::Index(_) => None,
        })
    }

    pub(super) fn steps(&self) -> &[PathStep] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if i == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// An error in a field of a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SpecError {
    /// The field.
    pub path: FieldPath,
    /// The message, to follow the field's name and a colon.
    pub problem: String,
}

impl SpecError {
    /// An error in a field.
    #[must_use]
    pub fn new(path: FieldPath, problem: impl fmt::Display) -> Self {
        Self { path, problem: problem.to_string() }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.0.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{}: {}", self.path, self.problem)
    }
}
