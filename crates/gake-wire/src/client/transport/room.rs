//! Whoever hears that a connection with many streams has other room than before.

use std::cell::{Cell, RefCell};
use std::fmt;

/// The watcher of the room on one connection.
#[derive(Default)]
pub(super) struct RoomWatch {
    watcher: RefCell<Option<Box<dyn Fn()>>>,
    /// Nobody needs the connection any more.
    is_unwanted: Cell<bool>,
}

impl RoomWatch {
    /// From now on `watcher` hears of it.
    pub(super) fn watch(&self, watcher: Box<dyn Fn()>) {
        *self.watcher.borrow_mut() = Some(watcher);
    }

    /// The room is another one, or gone.
    pub(super) fn tell(&self) {
        // The watcher may let go of the connection, and itself with it.
        let watcher = self.watcher.take();
        if let Some(watch) = watcher {
            watch();
            if !self.is_unwanted.get() {
                *self.watcher.borrow_mut() = Some(watch);
            }
        }
    }

    /// Nobody needs the connection any more, and nobody hears of its room.
    pub(super) fn abandon(&self) {
        self.is_unwanted.set(true);
        // It may hold what holds this.
        self.watcher.take();
    }

    /// Whether nobody needs the connection any more.
    pub(super) fn is_unwanted(&self) -> bool {
        self.is_unwanted.get()
    }
}

impl fmt::Debug for RoomWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomWatch").field("is_unwanted", &self.is_unwanted).finish_non_exhaustive()
    }
}
