//! Backoff of a user whose connections cannot be opened: refusals are fast, and without it a user
//! would retry ten thousand times a second.

use gake_core::clock::Nanos;
use gake_core::work::IterationStatus;

/// From the start of the first iteration without a connection to the next.
const FIRST: Nanos = 1_000_000;

/// Upper bound of that time, which doubles with each consecutive iteration without a connection.
const LONGEST: Nanos = 100_000_000;

#[derive(Debug, Default)]
pub(crate) struct RetryPace {
    /// The backoff after the last iteration; 0 if it had a connection.
    last: Nanos,
}

impl RetryPace {
    /// The earliest start of the iteration after the one fired at `fired`.
    pub(crate) fn next_start(&mut self, fired: Nanos, status: IterationStatus) -> Nanos {
        self.last = match status {
            IterationStatus::Failed(fault) if fault.is_before_connection() => {
                (2 * self.last).clamp(FIRST, LONGEST)
            }
            _ => 0,
        };
        fired.saturating_add(self.last)
    }
}

#[cfg(test)]
mod tests {
    use gake_core::record::{Fault, Phase};

    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn it_doubles_up_to_a_limit_and_resets() {
        let mut pace = RetryPace::default();
        let refused = IterationStatus::Failed(Fault::ConnectRefused);
        let next: Vec<_> = (0..9).map(|_| pace.next_start(7, refused) - 7).collect();
        assert_eq!(next, [1, 2, 4, 8, 16, 32, 64, 100, 100].map(|ms| ms * MS));
        for served in
            [IterationStatus::Finished, IterationStatus::Failed(Fault::Timeout(Phase::Body))]
        {
            assert_eq!(pace.next_start(7, served), 7);
            assert_eq!(pace.next_start(7, refused), 7 + MS);
        }
    }
}
