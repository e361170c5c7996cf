//! An accepted connection and the slot that it holds.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::OwnedSemaphorePermit;

use crate::stats::ConnectionCounters;

/// A connection on its way to the thread that will serve it.
#[derive(Debug)]
pub(crate) struct AcceptedConnection {
    pub(crate) fd: OwnedFd,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) is_unix: bool,
    /// Declared after `fd` and so dropped after it: the slot is freed when the socket is closed.
    pub(crate) slot: ConnectionSlot,
}

/// Counts an open connection and holds its `max_connections` permit.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub(crate) number: u64,
    /// The thread that serves it.
    pub(crate) thread: usize,
    loads: Arc<[AtomicU64]>,
    connections: Arc<ConnectionCounters>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConnectionSlot {
    /// Takes a slot on `thread`, or on the thread with the fewest connections.
    pub(crate) fn take(
        thread: Option<usize>,
        loads: &Arc<[AtomicU64]>,
        connections: &Arc<ConnectionCounters>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> ConnectionSlot {
        let by_thread = loads.iter().enumerate();
        let fewest = || by_thread.min_by_key(|(_, load)| load.load(Relaxed)).map_or(0, |(i, _)| i);
        let thread = thread.unwrap_or_else(fewest);
        loads[thread].fetch_add(1, Relaxed);
        let number = connections.opened();
        let (loads, connections) = (Arc::clone(loads), Arc::clone(connections));
        ConnectionSlot { number, thread, loads, connections, _permit: permit }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.loads[self.thread].fetch_sub(1, Relaxed);
        self.connections.closed();
    }
}
