//! Descriptor tables of workers, for more connections than the process's table holds.

#![expect(unsafe_code, reason = "own_table of a worker")]

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use gake_files::own_table;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Gives each worker of a run a table.
///
/// Waking a runtime writes to a descriptor of it, by its number. So every worker makes its runtime
/// in the table that they share, and takes its own when all have: then each table has the
/// descriptors of all runtimes, under the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct OwnTables {
    runtimes: Arc<Latch>,
    _working: UnboundedSender<()>,
}

/// Opens when everybody is there.
#[derive(Debug)]
struct Latch {
    missing: Mutex<usize>,
    opened: Condvar,
}

/// Whether workers are there.
#[derive(Debug)]
pub(crate) struct Working(UnboundedReceiver<()>);

impl OwnTables {
    /// For this number of workers, and what says when they have ended.
    pub(crate) fn new(workers: usize) -> (Self, Working) {
        let (sender, receiver) = unbounded_channel();
        let runtimes = Latch { missing: Mutex::new(workers), opened: Condvar::new() };
        (Self { runtimes: Arc::new(runtimes), _working: sender }, Working(receiver))
    }

    /// Gives the calling worker, which has made its runtime or could not, its table when all have.
    pub(crate) fn take(&self) -> io::Result<()> {
        self.runtimes.arrive();
        // SAFETY: what a worker opens stays with it, and it is given nothing that is opened later:
        // workers and the rest of the process exchange figures.
        unsafe { own_table() }
    }

    /// Not all workers will come.
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

impl Working {
    /// Waits for the end of the last worker. May be dropped and called again.
    pub(crate) async fn ended(&mut self) {
        // Nothing is ever sent.
        while self.0.recv().await.is_some() {}
    }
}
