//! Resource usage of the generator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use gake_core::clock::{Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};

/// CPU time and scheduling delay of the calling thread since the last call of `take`.
#[derive(Debug, Default)]
pub(crate) struct ThreadUsage {
    cpu: Nanos,
    run_delay: Nanos,
}

impl ThreadUsage {
    pub(crate) fn new() -> Self {
        Self { cpu: thread_cpu(), run_delay: thread_run_delay() }
    }

    /// Restores usage that could not be reported.
    pub(crate) fn put_back(&mut self, cpu: Nanos, run_delay: Nanos) {
        self.cpu -= cpu;
        self.run_delay = self.run_delay.saturating_sub(run_delay);
    }

    /// CPU time and time runnable but not running, since the last call.
    pub(crate) fn take(&mut self) -> (Nanos, Nanos) {
        let now = Self::new();
        let used = (now.cpu - self.cpu, now.run_delay.saturating_sub(self.run_delay));
        *self = now;
        used
    }
}

fn thread_cpu() -> Nanos {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec as u64 * SECOND + used.tv_nsec as u64
}

/// Time on a run queue: the second field of schedstat; 0 if unavailable.
fn thread_run_delay() -> Nanos {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .unwrap_or(0)
}

/// Peak resident memory of this process during a run, sampled by workers each second and at their
/// end, before connections are closed.
#[derive(Debug, Clone, Default)]
pub struct MemoryPeak(Arc<AtomicU64>);

impl MemoryPeak {
    pub(crate) fn sample(&self) {
        self.0.fetch_max(process_rss(), Relaxed);
    }

    /// Takes a sample and returns the peak in bytes; 0 if unavailable.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.sample();
        self.0.load(Relaxed)
    }
}

/// Resident memory of this process in bytes; 0 if unavailable.
fn process_rss() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
