//! A lock-free circuit breaker, for shadows and for hooks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use gake_core::clock::nanos;

use crate::config::BreakerConfig;

/// A breaker's state, shared by all threads.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    breaker: BreakerConfig,
    epoch: Instant,
    /// Consecutive ones.
    failures: AtomicU32,
    /// When an open breaker lets a probe through, in nanoseconds from `epoch`; 0 when closed.
    open_until: AtomicU64,
}

impl CircuitBreaker {
    pub(crate) fn new(breaker: BreakerConfig, epoch: Instant) -> Self {
        Self { breaker, epoch, failures: AtomicU32::new(0), open_until: AtomicU64::new(0) }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open_until.load(Relaxed) != 0
    }

    /// Whether a call may pass. While open, one probe passes per pause until one succeeds.
    pub(crate) fn allows(&self) -> bool {
        let until = self.open_until.load(Relaxed);
        if until == 0 {
            return true;
        }
        let now = self.now();
        let again = now.saturating_add(nanos(self.breaker.pause));
        now >= until && self.open_until.compare_exchange(until, again, Relaxed, Relaxed).is_ok()
    }

    /// Records the result of a call that was allowed.
    pub(crate) fn record(&self, is_success: bool) {
        if is_success {
            // Avoids writing to the shared cache line in the usual case.
            if self.failures.load(Relaxed) != 0 {
                self.failures.store(0, Relaxed);
            }
            if self.is_open() {
                self.open_until.store(0, Relaxed);
            }
        } else if self.breaker.failures > 0
            && self.failures.fetch_add(1, Relaxed).saturating_add(1) >= self.breaker.failures
        {
            let until = self.now().saturating_add(nanos(self.breaker.pause));
            self.open_until.store(until, Relaxed);
        }
    }

    fn now(&self) -> u64 {
        // Never 0, which means closed.
        nanos(self.epoch.elapsed()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_opens_lets_one_try_and_closes() {
        let breaker = BreakerConfig { failures: 3, pause: Duration::from_secs(3600) };
        let mut circuit = CircuitBreaker::new(breaker, Instant::now());
        for _ in 0..2 {
            circuit.record(false);
        }
        circuit.record(true);
        for _ in 0..3 {
            assert!(circuit.allows());
            circuit.record(false);
        }
        assert!(!circuit.allows() && circuit.is_open());
        // The pause is over.
        circuit.open_until.store(1, Relaxed);
        circuit.epoch -= Duration::from_secs(1);
        assert!(circuit.allows(), "one may try");
        assert!(!circuit.allows(), "and only one");
        circuit.record(true);
        assert!(circuit.allows() && !circuit.is_open());
    }

    #[test]
    fn without_a_number_of_failures_it_stays_closed() {
        let breaker = BreakerConfig { failures: 0, pause: Duration::MAX };
        let circuit = CircuitBreaker::new(breaker, Instant::now());
        for _ in 0..100 {
            circuit.record(false);
        }
        assert!(circuit.allows());
    }
}
