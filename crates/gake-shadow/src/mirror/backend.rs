//! A shadow as all threads see it.

use super::gate::Gate;
use super::ledger::LedgerPage;
use crate::config::Shadow;
use crate::proxy::upstream::target::BackendTarget;

/// What the threads share about one shadow.
#[derive(Debug)]
pub(crate) struct ShadowBackend {
    pub(crate) config: Shadow,
    pub(crate) target: BackendTarget,
    pub(crate) gate: Gate,
    /// Two for each worker: its own, and that of the thread for shadows beside it.
    pages: Vec<LedgerPage>,
}

impl ShadowBackend {
    pub(crate) fn new(config: Shadow, target: BackendTarget, gate: Gate, workers: usize) -> Self {
        Self {
            config,
            target,
            gate,
            pages: (0..2 * workers).map(|_| LedgerPage::default()).collect(),
        }
    }

    /// The page that a worker writes.
    pub(crate) fn worker_page(&self, worker: usize) -> &LedgerPage {
        &self.pages[2 * worker]
    }

    /// The page that the thread for shadows beside it writes.
    pub(super) fn mirror_page(&self, worker: usize) -> &LedgerPage {
        &self.pages[2 * worker + 1]
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = &LedgerPage> {
        self.pages.iter()
    }
}
