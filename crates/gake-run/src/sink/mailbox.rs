//! The queue in front of a sink, bounded by kind.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gake_core::clock::Nanos;
use gake_core::record::GaugeReading;
use gake_engine::LogBatch;

use super::SinkSecond;

/// What waits for a sink.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Second(Arc<SinkSecond>),
    Outcomes(Arc<LogBatch>),
    Readings(Nanos, Arc<[GaugeReading]>),
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
    /// The reader has been asked to leave what is left to somebody else.
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

    /// Puts an item in, when there is room for its kind or no reader.
    pub(super) fn offer(&self, item: Item) -> Result<(), Item> {
        let mut state = self.lock();
        if state.abandoned || !self.has_room(&state, item.kind()) {
            return Err(item);
        }
        self.push(&mut state, item);
        Ok(())
    }

    /// Puts an item in, and waits for room while there is a reader.
    pub(super) fn put(&self, item: Item) {
        let kind = item.kind();
        let mut state = self.lock();
        while !state.abandoned && !self.has_room(&state, kind) {
            state = self.emptied.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.abandoned {
            self.push(&mut state, item);
        }
    }

    /// What comes when the reader is gone is the last of a run, and bounded by its own queue.
    fn has_room(&self, state: &State, kind: usize) -> bool {
        state.closed || state.counts[kind] < self.bounds[kind]
    }

    fn push(&self, state: &mut State, item: Item) {
        state.counts[item.kind()] += 1;
        state.items.push_back(item);
        self.filled.notify_one();
    }

    /// Takes the next item; waits for it. `None` when the mailbox is closed.
    pub(super) fn take(&self) -> Option<Item> {
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

    /// Ends the reader. What it has not taken is [`Mailbox::rest`], and so is what is still put in.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.emptied.notify_all();
    }

    /// Takes the next item that the reader left.
    pub(super) fn rest(&self) -> Option<Item> {
        self.lock().items.pop_front()
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn reading(at: Nanos) -> Item {
        Item::Readings(at, Arc::new([]))
    }

    fn instant(item: Option<Item>) -> Option<Nanos> {
        match item? {
            Item::Readings(at, _) => Some(at),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_waits_when_the_reader_ends_is_the_rest_in_its_order() {
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
    fn who_waits_for_room_puts_it_in_when_the_reader_ends() {
        let mailbox = Arc::new(Mailbox::new([1, 1, 1]));
        mailbox.put(reading(1));
        let waiting = Arc::clone(&mailbox);
        let thread = thread::spawn(move || waiting.put(reading(2)));
        mailbox.close();
        thread.join().unwrap();
        assert_eq!((instant(mailbox.rest()), instant(mailbox.rest())), (Some(1), Some(2)));
    }
}
