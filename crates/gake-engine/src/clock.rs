//! The real clock.

use gake_core::clock::{Clock, Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

/// The system's monotonic clock, counted from a run's epoch.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    epoch: u64,
}

impl RunClock {
    /// A clock whose epoch is `lead` from now.
    #[must_use]
    pub fn starting_in(lead: Nanos) -> Self {
        Self { epoch: monotonic() + lead }
    }

    /// An instant of this clock as the system's monotonic time, for timers.
    pub(crate) fn monotonic_of(self, at: Nanos) -> u64 {
        self.epoch.saturating_add(at)
    }
}

impl Clock for RunClock {
    #[inline]
    fn now(&self) -> Nanos {
        monotonic().saturating_sub(self.epoch)
    }
}

#[inline]
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}
