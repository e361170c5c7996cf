//! A database server that does nothing but take its time and count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::timer::Timer;

/// Why a statement could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DatabaseError {
    /// In the words of MySQL.
    #[error("Error 1040: Too many connections")]
    TooManyConnections,
    /// The pool's.
    #[error("timed out waiting for a connection of the pool")]
    AcquireTimeout,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Server {
    connect: Duration,
    max: Option<usize>,
    open: AtomicUsize,
    pub(crate) connects: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// An open connection; closed when dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    server: Arc<Server>,
    pub(crate) born: Instant,
}

impl Server {
    pub(crate) fn new(connect: Duration, max: Option<usize>) -> Self {
        let (connects, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { connect, max, open: AtomicUsize::new(0), connects, refused }
    }

    /// Connections open now.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    /// Connections allowed.
    pub(crate) fn max(&self) -> Option<usize> {
        self.max
    }

    /// Opens a connection, which counts from the start of its handshake on. Over the bound it is
    /// refused at once.
    pub(crate) async fn connect(
        self: &Arc<Self>,
        timer: &Arc<Timer>,
    ) -> Result<Connection, DatabaseError> {
        self.connects.fetch_add(1, Relaxed);
        let most = self.max.unwrap_or(usize::MAX);
        let room = |open: usize| (open < most).then_some(open + 1);
        if self.open.fetch_update(Relaxed, Relaxed, room).is_err() {
            self.refused.fetch_add(1, Relaxed);
            return Err(DatabaseError::TooManyConnections);
        }
        // Open from now on, so that one that is given up in between is closed.
        let connection = Connection { server: Arc::clone(self), born: Instant::now() };
        timer.sleep(self.connect).await;
        Ok(connection)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.open.fetch_sub(1, Relaxed);
    }
}
