//! The queue in front of a sink, bounded by kind.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gake_core::clock::Nanos;
use gake_core::record::Reading;
use gake_engine::LogBatch;

use super::SinkSecond;

/// What waits for a sink.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Second(Arc<SinkSecond>),
    Outcomes(Arc<LogBatch>),
    Readings(Nanos, Arc<[Reading]>),
}

/// Maximum number of items of each kind: seconds, batches of outcomes, readings.
pub(super) type Bounds = [usize; 3];

/// A queue with one reader.
#[derive(Debug)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    bounds: Bounds,
    /// Notified when there is something to take, or never will be.
    filled: Condvar,
    /// Notified when there is room.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    counts: [usize; 3],
    closed: bool,
    /// The reader is gone.
    abandoned: bool,
}

impl Item {
    fn kind(&self) -> usize {
        match self {
            Self::Second(_) => 0,
            Self::Outcomes(_) => 1,
            Self::Readings(..) => 2,
        }
    }
}

impl Mailbox {
    pub(super) fn new(bounds: Bounds) -> Self {
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::default(), bounds, filled, emptied }
    }

    /// Puts an item in, when there is room for its kind.
    pub(super) fn offer(&self, item: Item) -> Result<(), Item> {
        let mut state = self.lock();
        let kind = item.kind();
        if state.counts[kind] >= self.bounds[kind] || state.abandoned {
            return Err(item);
        }
        state.counts[kind] += 1;
        state.items.push_back(item);
        self.filled.notify_one();
        Ok(())
    }

    /// Puts an item in, and waits for room.
    pub(super) fn put(&self, item: Item) {
        let mut item = Err(item);
        while let Err(refused) = item {
            let kind = refused.kind();
            let mut state = self.lock();
            while state.counts[kind] >= self.bounds[kind] && !state.abandoned {
                state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.abandoned {
                return;
            }
            drop(state);
            item = self.offer(refused);
        }
    }

    /// Takes the next item; waits for it. `None` when nothing more comes.
    pub(super) fn take(&self) -> Option<Item> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                state.counts[item.kind()] -= 1;
                self.emptied.notify_one();
                return Some(item);
            }
            if state.closed {
                return None;
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }

    /// The reader is gone: wakes those who wait for room.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.items.clear();
        self.emptied.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
