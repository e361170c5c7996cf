//! The clock offset of another machine, measured by round trips.

use serde::{Deserialize, Serialize};

/// The offset of another machine's monotonic clock to ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockOffset {
    /// Added to an instant on our clock, modulo 2^64.
    ahead: u64,
    /// The maximum error, in ns.
    pub(crate) error: u64,
}

impl ClockOffset {
    /// From one round trip: its clock showed `theirs` between `sent` and `received` on ours.
    pub(crate) fn of_round(sent: u64, theirs: u64, received: u64) -> Self {
        let error = received.saturating_sub(sent).div_ceil(2);
        Self { ahead: theirs.wrapping_sub(sent + error), error }
    }

    /// The change since `earlier` in ns, less the errors of both; 0 if they explain it.
    pub(crate) fn moved_since(self, earlier: Self) -> i64 {
        let moved = self.ahead.wrapping_sub(earlier.ahead).cast_signed();
        let unsure = i64::try_from(self.error.saturating_add(earlier.error)).unwrap_or(i64::MAX);
        moved.signum() * moved.saturating_abs().saturating_sub(unsure).max(0)
    }

    /// Converts an instant of its clock to ours.
    pub(crate) fn ours(self, theirs: u64) -> u64 {
        theirs.wrapping_sub(self.ahead)
    }

    /// Converts an instant of our clock to its.
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
            // Their clock is read at `ours + there`.
            let offset = ClockOffset::of_round(ours, theirs, ours + there + back);
            let true_instant = theirs + 5_000;
            let found = offset.theirs(ours + there + 5_000);
            prop_assert!(found.abs_diff(true_instant) <= offset.error);
            prop_assert_eq!(offset.ours(offset.theirs(ours)), ours);
        }
    }
}
