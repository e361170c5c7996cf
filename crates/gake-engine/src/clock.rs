//! The real clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

/// The longest sleep that is passed to the runtime's timer.
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

/// How often a sleeper looks whether the epoch is known by now.
const EPOCH_LOOK: Duration = Duration::from_millis(5);

/// The system's monotonic clock, counted from a run's epoch. Clones count from the same one.
#[derive(Debug, Clone)]
pub struct RunClock {
    /// [`u64::MAX`] until it is known, so that every instant is before it.
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

    /// A clock that stands at 0 until its epoch is known.
    pub(crate) fn not_started() -> Self {
        Self { epoch: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    /// Puts the epoch `lead` from now.
    fn start_in(&self, lead: Nanos) {
        self.start_at(monotonic_now() + lead);
    }

    /// Puts the epoch at an instant of the system's monotonic clock.
    pub(crate) fn start_at(&self, epoch: Nanos) {
        self.epoch.store(epoch, Relaxed);
    }

    fn is_started(&self) -> bool {
        self.epoch.load(Relaxed) != u64::MAX
    }

    /// An instant of this clock as the system's monotonic time, for timers.
    pub(crate) fn monotonic_of(&self, at: Nanos) -> u64 {
        self.epoch.load(Relaxed).saturating_add(at)
    }
}

impl Clock for RunClock {
    #[inline]
    fn now(&self) -> Nanos {
        monotonic_now().saturating_sub(self.epoch.load(Relaxed))
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

/// The system's monotonic clock. Its zero is the system's start.
#[inline]
#[must_use]
pub fn monotonic_now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND + now.tv_nsec as u64
}
