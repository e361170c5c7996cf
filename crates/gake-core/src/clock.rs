//! Time as a parameter: the clock contract that the engine and the tests implement.

use std::time::Duration;

/// A span in nanoseconds, or an instant as the nanoseconds since the run's epoch.
///
/// 64 bits hold 584 years, so additions of two instants of one run cannot overflow.
pub type Nanos = u64;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// A tenth of a second, the finest resolution of a series.
pub const TENTH: Nanos = SECOND / 10;

/// A duration in nanoseconds. Saturates.
#[inline]
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// A monotonic clock that counts from the run's epoch. The engine has the real one.
pub trait Clock {
    /// Nanoseconds since the run's epoch; zero before it.
    fn now(&self) -> Nanos;

    /// Sleeps until `at` with a precision of about a millisecond: for time-outs, not for arrivals.
    /// Returns immediately when `at` has passed.
    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()>;
}
