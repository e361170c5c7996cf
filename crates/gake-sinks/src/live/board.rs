//! What all viewers are shown, and how many there are.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The newest data, and who waits for newer.
#[derive(Debug, Default)]
pub(super) struct Board(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    data: Arc<str>,
    version: u64,
    /// The data is the last.
    ended: bool,
    closed: bool,
    visitors: usize,
    viewers: usize,
    /// Whether anybody has ever followed.
    seen: bool,
}

/// Data with the number of its version.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) number: u64,
    pub(super) data: Arc<str>,
    pub(super) is_last: bool,
}

/// A visitor's place, free again when dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Shared>);

/// A visitor that follows the run, until dropped.
#[derive(Debug)]
pub(super) struct Following<'a>(&'a Board);

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

    /// A place for a visitor, if fewer than `most` are here.
    pub(super) fn enter(&self, most: usize) -> Option<Place> {
        let mut state = self.0.lock();
        let is_free = state.visitors < most;
        state.visitors += usize::from(is_free);
        is_free.then(|| Place(Arc::clone(&self.0)))
    }

    pub(super) fn follow(&self) -> Following<'_> {
        self.0.change(|state| {
            state.viewers += 1;
            state.seen = true;
        });
        Following(self)
    }

    pub(super) fn newest(&self) -> Version {
        self.0.lock().version()
    }

    /// Waits up to `patience` for a version after `number`; `None` when there is none yet, an
    /// error when there will be none.
    pub(super) fn after(
        &self,
        number: u64,
        patience: Duration,
    ) -> std::io::Result<Option<Version>> {
        let is_old = |state: &mut State| state.version <= number && !state.closed;
        let state = self.0.wait(patience, is_old);
        if state.version > number {
            return Ok(Some(state.version()));
        }
        if state.closed { Err(std::io::ErrorKind::NotConnected.into()) } else { Ok(None) }
    }

    /// Waits up to `patience` for the first viewer.
    pub(super) fn await_viewer(&self, patience: Duration) {
        drop(self.0.wait(patience, |state| !state.seen));
    }

    /// Waits up to `patience` until every visitor has gone.
    pub(super) fn await_nobody(&self, patience: Duration) {
        drop(self.0.wait(patience, |state| state.visitors > 0));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait(
        &self,
        patience: Duration,
        is_waiting: impl FnMut(&mut State) -> bool,
    ) -> MutexGuard<'_, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, is_waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    fn replace(&mut self, data: String) {
        self.data = data.into();
        self.version += 1;
    }

    fn version(&self) -> Version {
        Version { number: self.version, data: Arc::clone(&self.data), is_last: self.ended }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.change(|state| state.visitors -= 1);
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.0.change(|state| state.viewers -= 1);
    }
}
