//! The real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

/// Maximum sleep of the runtime's timer.
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

/// Polling interval of sleepers while the epoch is unknown.
const EPOCH_LOOK: Duration = Duration::from_millis(5);

/// An unknown epoch: all instants are before it.
const UNKNOWN: u64 = i64::MAX as u64;

/// The monotonic clock, counted from a run's epoch. Clones share the epoch.
#[derive(Debug, Clone)]
pub struct RunClock {
    /// Modulo 2^64: the epoch of a run started by another machine may precede this system's boot.
    epoch: Arc<AtomicU64>,
}

impl RunClock {
    /// A clock whose epoch is `lead` from now.
    #[must_use]
    pub fn starting_in(lead: Nanos) -> Self {
        let clock = Self::not_started();
        clock.start_in(lead);
        clock
    }

    /// A clock whose epoch is an instant of the monotonic clock, modulo 2^64, in the past or
    /// future.
    #[must_use]
    pub fn started_at(epoch: Nanos) -> Self {
        let clock = Self::not_started();
        clock.start_at(epoch);
        clock
    }

    /// A clock that reads 0 until its epoch is set.
    pub(crate) fn not_started() -> Self {
        Self { epoch: Arc::new(AtomicU64::new(UNKNOWN)) }
    }

    fn start_in(&self, lead: Nanos) {
        self.start_at(monotonic_now() + lead);
    }

    /// Sets the epoch to an instant of the monotonic clock.
    pub(crate) fn start_at(&self, epoch: Nanos) {
        self.epoch.store(epoch, Relaxed);
    }

    fn is_started(&self) -> bool {
        self.epoch.load(Relaxed) != UNKNOWN
    }

    /// Converts an instant to monotonic time, for timers.
    pub(crate) fn monotonic_of(&self, at: Nanos) -> u64 {
        at.saturating_add_signed(self.epoch.load(Relaxed) as i64)
    }
}

impl Clock for RunClock {
    #[inline]
    fn now(&self) -> Nanos {
        (monotonic_now().wrapping_sub(self.epoch.load(Relaxed)) as i64).max(0) as u64
    }

    async fn sleep_until(&self, at: Nanos) {
        loop {
            let longest = if self.is_started() { LONGEST_SLEEP } else { EPOCH_LOOK };
            match self.monotonic_of(at).saturating_sub(monotonic_now()) {
                0 => return,
                left => tokio::time::sleep(longest.min(Duration::from_nanos(left))).await,
            }
        }
    }
}

/// The monotonic clock. Its zero is the system's boot.
#[inline]
#[must_use]
pub fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEARS: Nanos = 100 * 365 * 24 * 3_600 * SECOND;

    #[test]
    fn an_epoch_may_precede_boot() {
        let clock = RunClock::started_at(monotonic_now().wrapping_sub(YEARS));
        let now = clock.now();
        assert!((YEARS..YEARS + 3_600 * SECOND).contains(&now), "{now}");
        let (due, real) = (clock.monotonic_of(now + 3_600 * SECOND), monotonic_now());
        assert!(due > real && due <= real + 3_600 * SECOND, "{due} {real}");
        assert_eq!(clock.monotonic_of(0), 0, "long ago");
        assert!(clock.monotonic_of(Nanos::MAX) > real + YEARS, "never");
    }

    #[test]
    fn a_clock_reads_0_before_its_epoch() {
        let clock = RunClock::not_started();
        assert_eq!((clock.now(), clock.is_started()), (0, false));
        assert!(clock.monotonic_of(0) > monotonic_now());
        clock.start_in(3_600 * SECOND);
        assert_eq!((clock.now(), clock.is_started()), (0, true));
    }
}
