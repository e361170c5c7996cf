//! Checks of agents' clocks, which time their starts and the seconds of their figures.

use std::time::Duration;

use gake_text::duration::format_duration;

use super::clock_offset::ClockOffset;
use crate::message::AgentHello;

/// Maximum error of a clock offset: with a larger one, agents would not start together.
const ERROR_MAX: Duration = Duration::from_millis(150);

/// Maximum drift relative to our clock. Clocks of machines differ by some hundred-thousandths.
const DRIFT_MAX: f64 = 0.002;

/// An agent that can take part in the run, with its clock.
#[derive(Debug)]
pub(crate) struct CandidateAgent {
    pub(crate) hello: AgentHello,
    pub(super) clock: ClockReading,
}

/// A measurement of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    pub(super) offset: ClockOffset,
    /// The instant of the measurement, on our clock.
    pub(super) at: u64,
}

impl ClockReading {
    /// Why the clock is not usable, by this measurement and an earlier one.
    pub(super) fn unfit(&self, earlier: Option<Self>) -> Option<String> {
        let error = Duration::from_nanos(self.offset.error);
        if error > ERROR_MAX {
            let error = Duration::from_millis(self.offset.error.div_ceil(1_000_000));
            return Some(format!(
                "is too far away: its clock is known to within {}, and {} are needed",
                format_duration(error),
                format_duration(ERROR_MAX)
            ));
        }
        let earlier = earlier?;
        let passed = self.at.saturating_sub(earlier.at).max(1);
        let drift = self.offset.moved_since(earlier.offset) as f64 / passed as f64;
        let word = if drift > 0.0 { "fast" } else { "slow" };
        (drift.abs() > DRIFT_MAX).then(|| {
            let (drift, most) = (100.0 * drift.abs(), 100.0 * DRIFT_MAX);
            format!("has a clock that drifts: it is {drift:.2} % {word}, and {most} % are allowed")
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// A clock that runs at `speed`, read at `at` with delays `there` and `back`.
    fn measured(at: u64, speed: f64, (there, back): (u64, u64)) -> ClockReading {
        let theirs = 7_000 * MS + ((at + there) as f64 * speed) as u64;
        ClockReading { offset: ClockOffset::of_round(at, theirs, at + there + back), at }
    }

    #[test]
    fn a_clock_with_a_large_error_is_refused() {
        let unfit = |way| measured(0, 1.0, (way, way)).unfit(None);
        assert_eq!(unfit(150 * MS), None);
        let text = "is too far away: its clock is known to within 151ms, and 150ms are needed";
        assert_eq!(unfit(150 * MS + 1).as_deref(), Some(text));
    }

    #[test]
    fn a_clock_that_drifts_is_refused() {
        let ways = (MS / 20, MS / 20);
        let unfit = |speed| {
            let first = measured(0, 1.0, ways);
            measured(250 * MS, speed, ways).unfit(Some(first))
        };
        // Together their errors are 0.04 % of the time between them.
        assert_eq!(unfit(1.002), None);
        assert_eq!(unfit(0.998), None);
        let text = "has a clock that drifts: it is 0.46 % fast, and 0.2 % are allowed";
        assert_eq!(unfit(1.005).as_deref(), Some(text));
        let text = "has a clock that drifts: it is 9.96 % slow, and 0.2 % are allowed";
        assert_eq!(unfit(0.9).as_deref(), Some(text));
    }

    proptest! {
        /// For any delays, equal or not.
        #[test]
        fn a_clock_without_drift_is_never_refused_for_one(
            at in 0u64..1 << 50, later in 1u64..1 << 40,
            first in (0..150 * MS, 0..150 * MS), second in (0..150 * MS, 0..150 * MS),
        ) {
            let of = |at, (there, back): (u64, u64)| ClockReading {
                offset: ClockOffset::of_round(at, (at + there).wrapping_sub(5), at + there + back),
                at,
            };
            prop_assert_eq!(of(at + later, second).unfit(Some(of(at, first))), None);
        }
    }
}
