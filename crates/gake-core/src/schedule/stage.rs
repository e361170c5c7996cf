//! Stages of the rate, and the distribution of arrivals within them.

use std::fmt;
use std::time::Duration;

use gake_text::duration::format_duration;
use gake_text::rate::RateUnit;
use serde::{Deserialize, Serialize};

use crate::clock::Nanos;
use crate::seconds::{AsOptionalSeconds, AsSeconds};

/// A period in which the rate is constant or changes linearly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// Arrivals a second at the start.
    pub from: f64,
    /// Arrivals a second at the end.
    pub to: f64,
    /// Its length; [`Duration::MAX`] if only a count ends the run.
    #[serde(rename = "duration_s", with = "AsOptionalSeconds")]
    pub duration: Duration,
}

impl Stage {
    /// A constant rate.
    #[must_use]
    pub fn step(rate: f64, duration: Duration) -> Self {
        Self { from: rate, to: rate, duration }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = RateUnit::of(self.from, self.to);
        if self.from == self.to {
            write!(f, "{}{}", unit.number(self.from), unit.name)?;
        } else {
            write!(f, "{}..{}{}", unit.number(self.from), unit.number(self.to), unit.name)?;
        }
        if self.duration == Duration::MAX {
            return Ok(());
        }
        write!(f, " for {}", format_duration(self.duration))
    }
}

/// The distribution of arrivals in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Process {
    /// A perfect grid.
    #[default]
    Uniform,
    /// Independent arrivals: exponential gaps.
    Poisson,
    /// Groups of `size` arrivals of the grid at the instant of the first, each delayed uniformly
    /// and independently by up to `jitter`.
    Bursts {
        /// Arrivals of a group; 1 is the plain grid.
        size: u64,
        /// Upper bound of the delay, exclusive.
        #[serde(rename = "jitter_s", with = "AsSeconds")]
        jitter: Nanos,
    },
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Poisson => f.write_str("poisson"),
            Self::Bursts { size: 0 | 1, .. } => f.write_str("jittered"),
            Self::Bursts { size, jitter: 0 } => write!(f, "bursts of {size}"),
            Self::Bursts { size, .. } => write!(f, "bursts of {size} jittered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shown_in_the_unit_with_the_fewest_digits() {
        for (from, to, text) in [
            (1_000.0, 1_000.0, "1000/s for 5s"),
            (0.5, 12.25, "0.5..12.25/s for 5s"),
            (100.0 / 3_600.0, 100.0 / 3_600.0, "100/h for 5s"),
            (0.0, 10.0 / 60.0, "0..10/min for 5s"),
            (1.0 / 7.0, 1.0 / 7.0, "0.142857/s for 5s"),
        ] {
            let stage = Stage { from, to, duration: Duration::from_secs(5) };
            assert_eq!(stage.to_string(), text);
        }
    }
}
