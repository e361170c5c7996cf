//! A server that an overload leaves slower than before, until the load has eased.
//!
//! Cold caches, dropped connections and retries keep real servers down after the load is back to
//! normal. Here it is a rule: once a request has waited long for a worker, every service time grows
//! by a factor, until no request has waited for a while. A load that fits the fast server and not
//! the slow one keeps it slow.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gake_core::clock::nanos;

/// When the server turns slow, how slow, and when it recovers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metastable {
    /// A request that waits this long for a worker makes the server slow.
    pub wait: Duration,
    /// The factor, over 1, of service times while it is slow.
    pub factor: f64,
    /// It recovers when no request has waited for this long.
    pub rest: Duration,
}

/// Shorter waits do not count: they are the hand-over.
const NO_WAIT: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct SlowState {
    rule: Metastable,
    began: Instant,
    /// Nanoseconds from `began` to the last wait while the server was slow; 0 while it is fast.
    waited: AtomicU64,
}

impl SlowState {
    pub(crate) fn new(rule: Metastable) -> SlowState {
        SlowState { rule, began: Instant::now(), waited: AtomicU64::new(0) }
    }

    /// Records that a request waited for its worker until `now`.
    pub(crate) fn waited(&self, waited: Duration, now: Instant) {
        let slow = self.waited.load(Relaxed) > 0;
        if waited >= self.rule.wait || (slow && waited >= NO_WAIT) {
            self.waited.store(self.since(now).max(1), Relaxed);
        }
    }

    /// The factor of a service time that starts at `now`.
    pub(crate) fn factor(&self, now: Instant) -> f64 {
        match self.waited.load(Relaxed) {
            0 => 1.0,
            last if self.since(now).saturating_sub(last) >= nanos(self.rule.rest) => {
                self.waited.store(0, Relaxed);
                1.0
            }
            _ => self.rule.factor,
        }
    }

    fn since(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_long_wait_makes_it_slow_until_no_request_waits() {
        let rule = Metastable { wait: ms(200), factor: 1.6, rest: ms(5_000) };
        let state = SlowState::new(rule);
        let at = |ms_since: u64| state.began + ms(ms_since);
        state.waited(ms(199), at(300));
        assert_eq!(state.factor(at(300)), 1.0);
        state.waited(ms(200), at(1_000));
        assert_eq!(state.factor(at(1_000)), 1.6);
        // Short waits keep it slow; none lets it recover.
        state.waited(ms(2), at(4_000));
        assert_eq!(state.factor(at(8_999)), 1.6);
        state.waited(ms(0), at(8_000));
        assert_eq!(state.factor(at(9_000)), 1.0);
        state.waited(ms(2), at(9_100));
        assert_eq!(state.factor(at(9_100)), 1.0);
    }
}
