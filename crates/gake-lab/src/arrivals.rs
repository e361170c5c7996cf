//! The instants at which requests were read, for tests of a client's pacing.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A bounded record. Each thread appends to a list of its own.
#[derive(Debug)]
pub(crate) struct Arrivals {
    cap: usize,
    taken: AtomicUsize,
    /// One a thread; the lock is contended only while somebody reads.
    lists: Vec<Mutex<Vec<Instant>>>,
}

impl Arrivals {
    pub(crate) fn new(cap: usize, threads: usize) -> Arrivals {
        // Allocated at once where that is reasonable: growing would stall the
        // very thread whose timing is being looked at.
        let list = || Mutex::new(Vec::with_capacity(cap.min(1 << 20)));
        Arrivals { cap, taken: AtomicUsize::new(0), lists: (0..threads).map(|_| list()).collect() }
    }

    pub(crate) fn record(&self, thread: usize) {
        if self.cap == 0 {
            return;
        }
        let now = Instant::now();
        if self.taken.load(Relaxed) >= self.cap || self.taken.fetch_add(1, Relaxed) >= self.cap {
            return;
        }
        if let Some(list) = self.lists.get(thread) {
            list.lock().unwrap_or_else(PoisonError::into_inner).push(now);
        }
    }

    /// All of them, in order of time.
    pub(crate) fn sorted(&self) -> Vec<Instant> {
        let mut all = Vec::with_capacity(self.taken.load(Relaxed).min(self.cap));
        for list in &self.lists {
            all.extend_from_slice(&list.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all.sort_unstable();
        all
    }
}
