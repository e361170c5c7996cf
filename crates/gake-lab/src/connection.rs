//! The state that the requests of one connection share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::io::FlushWatch;
use crate::worker::Worker;

#[derive(Debug)]
pub(crate) struct HttpConnection {
    pub(crate) worker: Arc<Worker>,
    /// From 1, in order of acceptance.
    pub(crate) number: u64,
    /// `None` on a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) flushes: Arc<FlushWatch>,
    pub(crate) requests: RequestCounts,
}

/// How many requests a connection has read and has open. Only the connection's own task writes it.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    begun: AtomicU32,
    open: AtomicU32,
}

impl RequestCounts {
    /// Counts a request that was read.
    pub(crate) fn begin(&self) {
        self.begun.store(self.begun.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Requests read, modulo 2^32.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }

    /// Counts a request as open.
    pub(crate) fn open(&self) {
        self.open.fetch_add(1, Relaxed);
    }

    pub(crate) fn close(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Relaxed) == 0
    }
}
