//! Levels of a worker at an instant.

use serde::{Deserialize, Serialize};

/// Levels: summed over workers, maximum over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauges {
    /// Connections open now.
    pub open: u64,
    /// Maximum number of open connections since the last sample.
    pub peak: u64,
}

impl Gauges {
    /// Sums the gauges of two workers.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            open: self.open.saturating_add(other.open),
            peak: self.peak.saturating_add(other.peak),
        }
    }
}
