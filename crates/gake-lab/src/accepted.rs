//! A connection that was taken from the kernel's queue, and its place among the others.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::OwnedSemaphorePermit;

use crate::stats::ConnectionCounters;

/// A connection on its way to the thread that will serve it.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_unix: bool,
    /// Declared, and so dropped, after the descriptor: a place is free when
    /// the socket is closed and not before.
    pub(crate) place: Place,
}

/// An open connection's place in the counts and under `max_connections`.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) number: u64,
    /// The thread that serves it.
    pub(crate) thread: usize,
    loads: Arc<[AtomicU64]>,
    connections: Arc<ConnectionCounters>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// A place for a new connection on a thread: on the one that has the fewest, unless `thread`
    /// says which.
    pub(crate) fn take(
        thread: Option<usize>,
        loads: &Arc<[AtomicU64]>,
        connections: &Arc<ConnectionCounters>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Place {
        let by_thread = loads.iter().enumerate();
        let fewest = || by_thread.min_by_key(|(_, load)| load.load(Relaxed)).map_or(0, |(i, _)| i);
        let thread = thread.unwrap_or_else(fewest);
        loads[thread].fetch_add(1, Relaxed);
        let number = connections.opened();
        let (loads, connections) = (Arc::clone(loads), Arc::clone(connections));
        Place { number, thread, loads, connections, _permit: permit }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.loads[self.thread].fetch_sub(1, Relaxed);
        self.connections.closed();
    }
}
