//! Notifies the pool when the capacity of a multiplexed connection changes.

use std::cell::{Cell, RefCell};
use std::fmt;

#[derive(Default)]
pub(super) struct CapacityWatch {
    watcher: RefCell<Option<Box<dyn Fn()>>>,
    /// Whether the connection is no longer used.
    is_abandoned: Cell<bool>,
}

impl CapacityWatch {
    pub(super) fn watch(&self, watcher: Box<dyn Fn()>) {
        *self.watcher.borrow_mut() = Some(watcher);
    }

    pub(super) fn notify(&self) {
        // Taken out, since the watcher may drop the connection, and itself with it.
        let watcher = self.watcher.take();
        if let Some(watch) = watcher {
            watch();
            if !self.is_abandoned.get() {
                *self.watcher.borrow_mut() = Some(watch);
            }
        }
    }

    /// Drops the watcher: the connection is no longer used.
    pub(super) fn abandon(&self) {
        self.is_abandoned.set(true);
        self.watcher.take();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.get()
    }
}

impl fmt::Debug for CapacityWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapacityWatch")
            .field("is_abandoned", &self.is_abandoned)
            .finish_non_exhaustive()
    }
}
