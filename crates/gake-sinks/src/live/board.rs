//! The data shown to all viewers, and their number.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The newest data and the visitors.
#[derive(Debug, Default)]
pub(super) struct Board(Arc<SharedBoard>);

#[derive(Debug, Default)]
struct SharedBoard {
    state: Mutex<BoardState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BoardState {
    data: Arc<str>,
    version: u64,
    ended: bool,
    closed: bool,
    visitors: usize,
    viewers: usize,
    /// Whether there has ever been a viewer.
    had_viewer: bool,
}

#[derive(Debug, Clone)]
pub(super) struct BoardVersion {
    pub(super) number: u64,
    pub(super) data: Arc<str>,
    pub(super) is_last: bool,
}

/// A slot for a visitor, released when dropped.
#[derive(Debug)]
pub(super) struct VisitorSlot(Arc<SharedBoard>);

/// A viewer's registration, removed when dropped.
#[derive(Debug)]
pub(super) struct ViewerGuard<'a>(&'a Board);

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

    pub(super) fn close(&self) {
        self.0.change(|state| state.closed = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    pub(super) fn viewers(&self) -> usize {
        self.0.lock().viewers
    }

    /// A slot for a visitor, if fewer than `most` are taken.
    pub(super) fn enter(&self, most: usize) -> Option<VisitorSlot> {
        let mut state = self.0.lock();
        let is_free = state.visitors < most;
        state.visitors += usize::from(is_free);
        is_free.then(|| VisitorSlot(Arc::clone(&self.0)))
    }

    pub(super) fn follow(&self) -> ViewerGuard<'_> {
        self.0.change(|state| {
            state.viewers += 1;
            state.had_viewer = true;
        });
        ViewerGuard(self)
    }

    pub(super) fn newest(&self) -> BoardVersion {
        self.0.lock().version()
    }

    /// Waits up to `patience` for a version after `number`; `None` on time-out, an error after the
    /// last version.
    pub(super) fn after(
        &self,
        number: u64,
        patience: Duration,
    ) -> std::io::Result<Option<BoardVersion>> {
        let is_old = |state: &mut BoardState| state.version <= number && !state.closed;
        let state = self.0.wait(patience, is_old);
        if state.version > number {
            return Ok(Some(state.version()));
        }
        if state.closed { Err(std::io::ErrorKind::NotConnected.into()) } else { Ok(None) }
    }

    /// Waits up to `patience` for the first viewer.
    pub(super) fn await_viewer(&self, patience: Duration) {
        drop(self.0.wait(patience, |state| !state.had_viewer));
    }

    /// Waits up to `patience` until every visitor is gone.
    pub(super) fn await_departure(&self, patience: Duration) {
        drop(self.0.wait(patience, |state| state.visitors > 0));
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

    fn wait(
        &self,
        patience: Duration,
        is_waiting: impl FnMut(&mut BoardState) -> bool,
    ) -> MutexGuard<'_, BoardState> {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl BoardState {
    fn replace(&mut self, data: String) {
        self.data = data.into();
        self.version += 1;
    }

    fn version(&self) -> BoardVersion {
        BoardVersion { number: self.version, data: Arc::clone(&self.data), is_last: self.ended }
    }
}

impl Drop for VisitorSlot {
    fn drop(&mut self) {
        self.0.change(|state| state.visitors -= 1);
    }
}

impl Drop for ViewerGuard<'_> {
    fn drop(&mut self) {
        self.0.0.change(|state| state.viewers -= 1);
    }
}
