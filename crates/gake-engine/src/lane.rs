//! A lane: a long-lived task that fires one arrival at a time with its own work.

use std::rc::Rc;

use gake_core::work::Factory;

use crate::worker::Shared;

/// What makes the lanes of one worker.
pub(crate) struct Lanes<F: Factory> {
    pub(crate) shared: Rc<Shared>,
    pub(crate) factory: Rc<F>,
    pub(crate) worker: usize,
    pub(crate) workers: usize,
}

impl<F: Factory> Lanes<F> {
    /// The number of this worker's lane `lane` among the lanes of all workers.
    pub(crate) fn global(&self, lane: usize) -> usize {
        lane * self.workers + self.worker
    }
}
