//! Definitions of metrics: name, kind and unit.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How the samples of a metric are aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MetricKind {
    /// As their sum.
    Counter,
    /// As the last sample, with the smallest and the largest.
    Gauge,
    /// As the share of samples that are not zero.
    Rate,
    /// As a distribution.
    Trend,
}

impl MetricKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Counter, Self::Gauge, Self::Rate, Self::Trend];

    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Rate => "rate",
            Self::Trend => "trend",
        }
    }
}

/// The unit of a metric's values.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum MetricUnit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// Plain numbers.
    #[default]
    Number,
}

impl MetricUnit {
    /// All units.
    pub const ALL: [Self; 3] = [Self::Time, Self::Bytes, Self::Number];

    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Number => "number",
        }
    }
}

/// A metric.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Definition {
    /// Letters, digits, `_`, `.` and `-`, at most 128 bytes.
    pub name: String,
    /// How samples are aggregated.
    pub kind: MetricKind,
    /// The unit of samples.
    pub unit: MetricUnit,
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} {:?}", self.kind.name(), self.name)?;
        match self.unit {
            MetricUnit::Number => Ok(()),
            unit => write!(f, " of {}", unit.name()),
        }
    }
}

/// Why a metric cannot be defined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefineError {
    /// Its name is not valid.
    #[error("{0:?} is not a metric name: use up to 128 letters, digits, _ . -")]
    Name(String),
    /// The name belongs to another metric.
    #[error("{new} cannot be defined: {old} exists already")]
    Taken {
        /// The new definition.
        new: Definition,
        /// The existing definition.
        old: Definition,
    },
}

/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 128;

/// The metrics of a run, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    metrics: BTreeMap<String, Arc<Definition>>,
}

impl Registry {
    /// Defines a metric. Defining the same one again is fine.
    ///
    /// # Errors
    /// When the name is not valid, or belongs to a metric of another kind or unit.
    pub fn define(&mut self, new: Definition) -> Result<Arc<Definition>, DefineError> {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        if new.name.is_empty() || new.name.len() > NAME_MAX || !new.name.chars().all(is_plain) {
            return Err(DefineError::Name(new.name));
        }
        match self.metrics.get(&new.name) {
            Some(old) if **old == new => Ok(Arc::clone(old)),
            Some(old) => Err(DefineError::Taken { new, old: (**old).clone() }),
            None => {
                let metric = Arc::new(new);
                self.metrics.insert(metric.name.clone(), Arc::clone(&metric));
                Ok(metric)
            }
        }
    }

    /// The metric with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.metrics.get(name)
    }

    /// All metrics, sorted by name.
    pub fn metrics(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.metrics.values()
    }
}
