//! Levels of a worker at one moment.

use serde::{Deserialize, Serialize};

/// Levels, as opposed to counts: they are summed over workers; over time the maximum counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Connections open now.
    pub open: u64,
    /// Maximum number of open connections since the last look.
    pub peak: u64,
}

impl Gauges {
    /// The gauges of two workers at the same time.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            open: self.open.saturating_add(other.open),
            peak: self.peak.saturating_add(other.peak),
        }
    }
}
