//! The queue in front of a sink, bounded by kind.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gake_core::clock::Nanos;
use gake_core::record::GaugeReading;
use gake_engine::LogBatch;

use super::SinkSecond;

#[derive(Debug, Clone)]
pub(super) enum SinkItem {
    Second(Arc<SinkSecond>),
    Outcomes(Arc<LogBatch>),
    Readings(Nanos, Arc<[GaugeReading]>),
}

/// Maximum number of items by kind: seconds, batches of outcomes, readings.
pub(super) type MailboxBounds = [usize; 3];

/// A queue with one reader.
#[derive(Debug)]
pub(super) struct Mailbox {
    state: Mutex<MailboxState>,
    bounds: MailboxBounds,
    /// Notified when there is an item, or the mailbox is closed.
    filled: Condvar,
    /// Notified when there is room.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct MailboxState {
    items: VecDeque<SinkItem>,
    counts: [usize; 3],
    /// The reader must stop, and leave the rest to [`Mailbox::rest`].
    closed: bool,
    /// The reader has stopped.
    abandoned: bool,
}

impl SinkItem {
    fn kind(&self) -> usize {
        match self {
            Self::Second(_) => 0,
            Self::Outcomes(_) => 1,
            Self::Readings(..) => 2,
        }
    }
}

impl Mailbox {
    pub(super) fn new(bounds: MailboxBounds) -> Self {
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        Self { state: Mutex::default(), bounds, filled, emptied }
    }

    /// Adds an item, unless its kind has no room or the reader has stopped.
    pub(super) fn offer(&self, item: SinkItem) -> Result<(), SinkItem> {
        let mut state = self.lock();
        if state.abandoned || !self.has_room(&state, item.kind()) {
            return Err(item);
        }
        self.push(&mut state, item);
        Ok(())
    }

    /// Adds an item, and waits for room while there is a reader.
    pub(super) fn put(&self, item: SinkItem) {
        let kind = item.kind();
        let mut state = self.lock();
        while !state.abandoned && !self.has_room(&state, kind) {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.abandoned {
            self.push(&mut state, item);
        }
    }

    /// Items after the reader has stopped are the last of a run, and bounded by their own queue.
    fn has_room(&self, state: &MailboxState, kind: usize) -> bool {
        state.closed || state.counts[kind] < self.bounds[kind]
    }

    fn push(&self, state: &mut MailboxState, item: SinkItem) {
        state.counts[item.kind()] += 1;
        state.items.push_back(item);
        self.filled.notify_one();
    }

    /// Waits for the next item. `None` when the mailbox is closed.
    pub(super) fn take(&self) -> Option<SinkItem> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(item) = state.items.pop_front() {
                state.counts[item.kind()] -= 1;
                self.emptied.notify_one();
                return Some(item);
            }
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops the reader. Remaining and later items are taken by [`Mailbox::rest`].
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.emptied.notify_all();
    }

    /// Takes the next item that the reader left.
    pub(super) fn rest(&self) -> Option<SinkItem> {
        self.lock().items.pop_front()
    }

    /// The reader has stopped: wakes writers that wait for room.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.items.clear();
        self.emptied.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn reading(at: Nanos) -> SinkItem {
        SinkItem::Readings(at, Arc::new([]))
    }

    fn instant(item: Option<SinkItem>) -> Option<Nanos> {
        match item? {
            SinkItem::Readings(at, _) => Some(at),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn remaining_items_keep_their_order() {
        let mailbox = Mailbox::new([1, 1, 2]);
        for at in 1..=2 {
            mailbox.offer(reading(at)).unwrap();
        }
        assert!(mailbox.offer(reading(3)).is_err(), "it is full");
        mailbox.close();
        assert!(mailbox.take().is_none());
        mailbox.offer(reading(3)).unwrap();
        mailbox.put(reading(4));
        let rest: Vec<_> = std::iter::from_fn(|| instant(mailbox.rest())).collect();
        assert_eq!(rest, [1, 2, 3, 4]);
    }

    #[test]
    fn a_blocked_writer_continues_when_the_reader_ends() {
        let mailbox = Arc::new(Mailbox::new([1, 1, 1]));
        mailbox.put(reading(1));
        let waiting = Arc::clone(&mailbox);
        let thread = thread::spawn(move || waiting.put(reading(2)));
        mailbox.close();
        thread.join().unwrap();
        assert_eq!((instant(mailbox.rest()), instant(mailbox.rest())), (Some(1), Some(2)));
    }
}
