//! Counters of a test's users and iterations.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Users and iterations of a test, over all threads, as scripts see them in `k6/execution`. The
/// record has its own counts.
#[derive(Debug, Default)]
pub struct TestCounters {
    iterating: AtomicU64,
    live: AtomicU64,
    ready: AtomicU64,
    completed: AtomicU64,
    interrupted: AtomicU64,
}

impl TestCounters {
    /// Users running an iteration.
    pub fn iterating(&self) -> u64 {
        self.iterating.load(Relaxed)
    }

    /// Users that have not ended.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    pub(crate) fn join(&self) {
        self.live.fetch_add(1, Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.live.fetch_sub(1, Relaxed);
    }

    /// Completed iterations.
    pub fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    /// Interrupted iterations.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.load(Relaxed)
    }

    /// Users initialised for iterations.
    pub fn ready(&self) -> u64 {
        self.ready.load(Relaxed)
    }

    /// Counts a user initialised for iterations.
    pub fn count_ready(&self) {
        self.ready.fetch_add(1, Relaxed);
    }

    /// Replaces the counts of users and iterations by the sums of other processes.
    pub fn take_over(&self, ready: u64, completed: u64, interrupted: u64) {
        self.ready.store(ready, Relaxed);
        self.completed.store(completed, Relaxed);
        self.interrupted.store(interrupted, Relaxed);
    }

    /// Counts an iteration that begins.
    pub fn begin(&self) {
        self.iterating.fetch_add(1, Relaxed);
    }

    /// Counts an iteration that has ended.
    pub fn end(&self, interrupted: bool) {
        self.iterating.fetch_sub(1, Relaxed);
        let ended = if interrupted { &self.interrupted } else { &self.completed };
        ended.fetch_add(1, Relaxed);
    }
}
