//! What the requests of one connection share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::io::FlushWatch;
use crate::worker::Worker;

/// What the requests of one connection share.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) worker: Arc<Worker>,
    /// From 1, in the order in which they were accepted.
    pub(crate) number: u64,
    /// `None` on a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) flushes: Arc<FlushWatch>,
    pub(crate) requests: Requests,
}

/// The requests of one connection: how many came, and how many are not answered. Only the
/// connection's own task writes them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    begun: AtomicU32,
    open: AtomicU32,
}

impl Requests {
    /// A request has come.
    pub(crate) fn begin(&self) {
        self.begun.store(self.begun.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// How many have come, modulo 2^32.
    pub(crate) fn begun(&self) -> u32 {
        self.begun.load(Relaxed)
    }

    /// One takes time.
    pub(crate) fn open(&self) {
        self.open.fetch_add(1, Relaxed);
    }

    /// One that took time has ended.
    pub(crate) fn close(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// Whether none is being answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.load(Relaxed) == 0
    }
}
