//! Intervals at which workers report their figures.

use std::time::Duration;

use gake_core::clock::{Nanos, SECOND, TENTH};
use gake_core::plan::Plan;
use gake_core::record::LABELS_MAX;

/// Tenths of a second in a second.
pub(crate) const TENTHS: u64 = SECOND / TENTH;

/// Maximum length of a run with tenths.
const FINE_MAX: Nanos = 60 * SECOND;

/// Whether workers report ten times a second in the first minute: if the run may end in that time,
/// and there are few labels to join.
pub(crate) fn is_fine(plan: &Plan) -> bool {
    let is_short = |length: Duration| length.as_nanos() <= u128::from(FINE_MAX);
    plan.labels.len() <= LABELS_MAX && plan.length().is_none_or(is_short)
}

/// The tenth of a second at whose end a worker reports next.
pub(crate) fn next_tenth(now: Nanos, is_fine: bool) -> u64 {
    if is_fine && now < FINE_MAX { now / TENTH + 1 } else { (now / SECOND + 1) * TENTHS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_minute_is_reported_by_tenths() {
        assert_eq!(next_tenth(0, true), 1);
        assert_eq!(next_tenth(TENTH, true), 2);
        assert_eq!(next_tenth(FINE_MAX - 1, true), 600);
        assert_eq!(next_tenth(FINE_MAX, true), 610);
        assert_eq!(next_tenth(0, false), 10);
        assert_eq!(next_tenth(SECOND, false), 20);
    }
}
