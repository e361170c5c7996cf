//! Counters that cost a load and a store.
//!
//! Every worker thread has its own on its own cache lines and is their only writer: no locked
//! instruction is needed, and readers sum them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{ConnectionStats, Stats};
use crate::routes::Route;

/// A counter with one writer and any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A [`Counter`] of seconds.
#[derive(Debug, Default)]
pub(crate) struct Seconds(AtomicU64);

impl Seconds {
    fn add(&self, s: f64) {
        self.0.store((self.get() + s).to_bits(), Relaxed);
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

/// The statuses that can be sent, 100 to 999.
const STATUSES: usize = 900;

/// What one worker thread counts. Aligned so that threads share neither a cache line nor the pair
/// of lines that processors prefetch together.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct WorkerCounters {
    routes: [Counter; Route::COUNT],
    responses: Box<[Counter]>,
    /// Requests that have ended, however.
    settled: Counter,
    pub(crate) control: Counter,
    aborted: Counter,
    cut: Counter,
    unfinished: Counter,
    pub(crate) malformed: Counter,
    pub(crate) wait_begun: Counter,
    pub(crate) wait_ended: Counter,
    pub(crate) slot_taken: Counter,
    pub(crate) slot_freed: Counter,
    pub(crate) bytes_in: Counter,
    pub(crate) bytes_out: Counter,
    service_count: Counter,
    service_sum_s: Seconds,
    service_squares_s2: Seconds,
}

impl WorkerCounters {
    pub(crate) fn new() -> WorkerCounters {
        WorkerCounters {
            routes: Default::default(),
            responses: (0..STATUSES).map(|_| Counter::default()).collect(),
            settled: Counter::default(),
            control: Counter::default(),
            aborted: Counter::default(),
            cut: Counter::default(),
            unfinished: Counter::default(),
            malformed: Counter::default(),
            wait_begun: Counter::default(),
            wait_ended: Counter::default(),
            slot_taken: Counter::default(),
            slot_freed: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            service_count: Counter::default(),
            service_sum_s: Seconds::default(),
            service_squares_s2: Seconds::default(),
        }
    }

    pub(crate) fn request(&self, route: Route) {
        self.routes[route as usize].add(1);
    }

    pub(crate) fn responded(&self, status: u16) {
        if let Some(counter) = self.responses.get(usize::from(status).wrapping_sub(100)) {
            counter.add(1);
        }
        self.settled.add(1);
    }

    pub(crate) fn aborted(&self) {
        self.aborted.add(1);
        self.settled.add(1);
    }

    pub(crate) fn cut(&self) {
        self.cut.add(1);
        self.settled.add(1);
    }

    pub(crate) fn unfinished(&self) {
        self.unfinished.add(1);
        self.settled.add(1);
    }

    pub(crate) fn served(&self, time: Duration) {
        let s = time.as_secs_f64();
        self.service_count.add(1);
        self.service_sum_s.add(s);
        self.service_squares_s2.add(s * s);
    }

    /// Adds this thread's counts to the total.
    pub(crate) fn add_to(&self, stats: &mut Stats) {
        // Ends are read before beginnings, so that a difference taken under load is never negative.
        let settled = self.settled.get();
        let (wait_ended, slot_freed) = (self.wait_ended.get(), self.slot_freed.get());
        for (index, counter) in self.responses.iter().enumerate() {
            let count = counter.get();
            if count > 0 {
                *stats.responses.entry(index as u16 + 100).or_default() += count;
            }
        }
        let mut requests = 0;
        for route in Route::ALL {
            let count = self.routes[route as usize].get();
            if count > 0 {
                *stats.routes.entry(route.name()).or_default() += count;
            }
            requests += count;
        }
        stats.requests += requests;
        stats.in_flight += requests.saturating_sub(settled);
        stats.waiting += self.wait_begun.get().saturating_sub(wait_ended);
        stats.threads_busy += self.slot_taken.get().saturating_sub(slot_freed);
        stats.control_requests += self.control.get();
        stats.aborted += self.aborted.get();
        stats.cut += self.cut.get();
        stats.unfinished += self.unfinished.get();
        stats.malformed += self.malformed.get();
        stats.bytes_in += self.bytes_in.get();
        stats.bytes_out += self.bytes_out.get();
        stats.service.count += self.service_count.get();
        stats.service.sum_s += self.service_sum_s.get();
        stats.service.sum_squares_s2 += self.service_squares_s2.get();
    }
}

/// Connections are counted for the whole lab: the peak is global, and a connection is rare compared
/// with a request.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    opened: AtomicU64,
    open: AtomicU64,
    peak: AtomicU64,
    timed_out: AtomicU64,
    accept_errors: AtomicU64,
}

impl ConnectionCounters {
    /// Counts a connection and returns its number, from 1.
    pub(crate) fn opened(&self) -> u64 {
        let open = self.open.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(open, Relaxed);
        self.opened.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn closed(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn timed_out(&self) {
        self.timed_out.fetch_add(1, Relaxed);
    }

    pub(crate) fn accept_error(&self) {
        self.accept_errors.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> ConnectionStats {
        ConnectionStats {
            opened: self.opened.load(Relaxed),
            open: self.open.load(Relaxed),
            peak: self.peak.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            accept_errors: self.accept_errors.load(Relaxed),
        }
    }
}
