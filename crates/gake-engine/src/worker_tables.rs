//! Descriptor tables of workers, for more connections than fit the process's table.

#![expect(unsafe_code, reason = "own_table of a worker")]

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use gake_files::own_table;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Unshares the descriptor table of each worker.
///
/// Waking a runtime writes to one of its descriptors. So all workers create their runtimes in a
/// shared table before each takes a copy: every table then has the descriptors of all runtimes.
#[derive(Debug, Clone)]
pub(crate) struct WorkerTables {
    runtimes: Arc<Latch>,
    _working: UnboundedSender<()>,
}

/// Opens when all workers have arrived.
#[derive(Debug)]
struct Latch {
    missing: Mutex<usize>,
    opened: Condvar,
}

/// Notifies of the end of all workers.
#[derive(Debug)]
pub(crate) struct WorkersAlive(UnboundedReceiver<()>);

impl WorkerTables {
    /// Tables for a number of workers.
    pub(crate) fn new(workers: usize) -> (Self, WorkersAlive) {
        let (sender, receiver) = unbounded_channel();
        let runtimes = Latch { missing: Mutex::new(workers), opened: Condvar::new() };
        (Self { runtimes: Arc::new(runtimes), _working: sender }, WorkersAlive(receiver))
    }

    /// Waits until all workers have tried to create their runtimes, then unshares the caller's
    /// table.
    pub(crate) fn take(&self) -> io::Result<()> {
        self.runtimes.arrive();
        // SAFETY: workers exchange figures, never descriptors, with other threads.
        unsafe { own_table() }
    }

    /// Opens the latch because a worker could not be started.
    pub(crate) fn give_up(&self) {
        self.runtimes.open();
    }
}

impl Latch {
    fn arrive(&self) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        *missing = missing.saturating_sub(1);
        if *missing == 0 {
            self.opened.notify_all();
        }
        let waited = self.opened.wait_while(missing, |missing| *missing > 0);
        drop(waited);
    }

    fn open(&self) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        self.opened.notify_all();
    }
}

impl WorkersAlive {
    /// Waits for the end of the last worker. Cancel-safe.
    pub(crate) async fn ended(&mut self) {
        // Nothing is ever sent.
        while self.0.recv().await.is_some() {}
    }
}
