//! The clock of another machine, by round trips.

use serde::{Deserialize, Serialize};

/// How far another machine's monotonic clock is ahead of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockOffset {
    /// To be added to an instant of ours, modulo 2^64.
    ahead: u64,
    /// It is wrong by this at most, in ns.
    pub(crate) error: u64,
}

impl ClockOffset {
    /// Its clock stood at `theirs` some time between `asked` and `answered` on ours.
    pub(crate) fn of_round(asked: u64, theirs: u64, answered: u64) -> Self {
        let error = answered.saturating_sub(asked).div_ceil(2);
        Self { ahead: theirs.wrapping_sub(asked + error), error }
    }

    /// How much further ahead it is than `earlier`, in ns, where that is beyond what both are wrong
    /// by; else 0.
    pub(crate) fn moved_since(self, earlier: Self) -> i64 {
        let moved = self.ahead.wrapping_sub(earlier.ahead).cast_signed();
        let unsure = i64::try_from(self.error.saturating_add(earlier.error)).unwrap_or(i64::MAX);
        moved.signum() * moved.saturating_abs().saturating_sub(unsure).max(0)
    }

    /// An instant of its clock on ours.
    pub(crate) fn ours(self, theirs: u64) -> u64 {
        theirs.wrapping_sub(self.ahead)
    }

    /// An instant of ours on its clock.
    pub(crate) fn theirs(self, ours: u64) -> u64 {
        ours.wrapping_add(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_error_is_within_its_bound(
            ours in 0u64..1 << 60, theirs in 0u64..1 << 60, there in 0u64..1 << 40, back in 0u64..1 << 40,
        ) {
            // Their clock is read when ours stands at `ours + there`.
            let offset = ClockOffset::of_round(ours, theirs, ours + there + back);
            let true_instant = theirs + 5_000;
            let found = offset.theirs(ours + there + 5_000);
            prop_assert!(found.abs_diff(true_instant) <= offset.error);
            prop_assert_eq!(offset.ours(offset.theirs(ours)), ours);
        }
    }
}
