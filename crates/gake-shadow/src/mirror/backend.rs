//! The state of a shadow, shared by all threads.

use super::gate::Gate;
use super::ledger::LedgerPage;
use crate::config::Shadow;
use crate::proxy::upstream::target::BackendTarget;

#[derive(Debug)]
pub(crate) struct ShadowBackend {
    pub(crate) config: Shadow,
    pub(crate) target: BackendTarget,
    pub(crate) gate: Gate,
    /// Two per worker: one for its thread, one for its shadow thread.
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

    pub(crate) fn worker_page(&self, worker: usize) -> &LedgerPage {
        &self.pages[2 * worker]
    }

    /// The page of the worker's shadow thread.
    pub(super) fn mirror_page(&self, worker: usize) -> &LedgerPage {
        &self.pages[2 * worker + 1]
    }

    pub(crate) fn pages(&self) -> impl Iterator<Item = &LedgerPage> {
        self.pages.iter()
    }
}
