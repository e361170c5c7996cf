//! The instants at which requests were read: lets tests check a client's pacing.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A bounded record, one list per thread.
#[derive(Debug)]
pub(crate) struct Arrivals {
    cap: usize,
    taken: AtomicUsize,
    /// The locks are contended only while the record is read.
    lists: Vec<Mutex<Vec<Instant>>>,
}

impl Arrivals {
    pub(crate) fn new(cap: usize, threads: usize) -> Arrivals {
        // Preallocated: growth would stall the thread whose timing is measured.
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

    pub(crate) fn sorted(&self) -> Vec<Instant> {
        let mut all = Vec::with_capacity(self.taken.load(Relaxed).min(self.cap));
        for list in &self.lists {
            all.extend_from_slice(&list.lock().unwrap_or_else(PoisonError::into_inner));
        }
        all.sort_unstable();
        all
    }
}
