//! The data shown to all viewers, and their number.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The newest data and the viewers.
#[derive(Debug, Default)]
pub(super) struct Board(Arc<SharedBoard>);

#[derive(Debug, Default)]
struct SharedBoard {
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BoardState {
    data: Arc<[u8]>,
    version: u64,
    ended: bool,
    viewers: usize,
    /// Whether there has ever been a viewer.
    had_viewer: bool,
}

#[derive(Debug, Clone)]
pub(super) struct BoardVersion {
    pub(super) number: u64,
    pub(super) data: Arc<[u8]>,
    pub(super) is_last: bool,
}

/// A viewer's registration, removed when dropped.
#[derive(Debug)]
pub(super) struct ViewerGuard(Arc<SharedBoard>);

impl Board {
    pub(super) fn show(&self, data: String) {
        self.0.change(|state| state.replace(data));
    }

    pub(super) fn end(&self, data: String) {
        self.0.change(|state| {
            state.replace(data);
            state.ended = true;
        });
    }

    pub(super) fn viewers(&self) -> usize {
        self.0.lock().viewers
    }

    pub(super) fn follow(&self) -> ViewerGuard {
        self.0.change(|state| {
            state.viewers += 1;
            state.had_viewer = true;
        });
        ViewerGuard(Arc::clone(&self.0))
    }

    pub(super) fn newest(&self) -> BoardVersion {
        self.0.lock().version()
    }

    /// The newest version, if that is after `number`.
    pub(super) fn after(&self, number: u64) -> Option<BoardVersion> {
        let state = self.0.lock();
        (state.version > number).then(|| state.version())
    }

    /// Waits up to `patience` for the first viewer.
    pub(super) fn await_viewer(&self, patience: Duration) {
        let is_waiting = |state: &mut BoardState| !state.had_viewer;
        drop(self.0.changed.wait_timeout_while(self.0.lock(), patience, is_waiting));
    }
}

impl SharedBoard {
    fn lock(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut BoardState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

impl BoardState {
    fn replace(&mut self, data: String) {
        self.data = data.into_bytes().into();
        self.version += 1;
    }

    fn version(&self) -> BoardVersion {
        BoardVersion { number: self.version, data: Arc::clone(&self.data), is_last: self.ended }
    }
}

impl Drop for ViewerGuard {
    fn drop(&mut self) {
        self.0.change(|state| state.viewers -= 1);
    }
}
