//! The messages of Chromium for one user, from the reading thread to the user's worker.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The bytes of messages that wait for a user, at most; events above it are dropped.
const BYTES_MAX: usize = 64 << 20;

/// The messages that a script takes at once.
const BATCH: usize = 64;

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<String>,
    bytes: usize,
    /// Whether the wait is to end without messages.
    is_woken: bool,
    /// Why no message will come.
    closed: Option<String>,
    waker: Option<Waker>,
}

/// The messages of one user.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<State>);

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. An event is dropped when too many bytes wait.
    pub(crate) fn push(&self, message: String, is_event: bool) {
        let mut state = self.state();
        if is_event && state.bytes.saturating_add(message.len()) > BYTES_MAX {
            return;
        }
        state.bytes = state.bytes.saturating_add(message.len());
        state.messages.push_back(message);
        wake(state);
    }

    /// Ends the wait of [`Inbox::poll`].
    pub(crate) fn wake(&self) {
        let mut state = self.state();
        state.is_woken = true;
        wake(state);
    }

    /// Reports that no message will come.
    pub(crate) fn close(&self, why: &str) {
        let mut state = self.state();
        state.closed.get_or_insert_with(|| why.to_owned());
        wake(state);
    }

    /// Drops all messages.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.messages.clear();
        state.bytes = 0;
        state.is_woken = false;
    }

    /// The next messages; none after [`Inbox::wake`]; an error when the browser is gone.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Result<Vec<String>, String>> {
        let mut state = self.state();
        if !state.messages.is_empty() {
            let count = state.messages.len().min(BATCH);
            let messages: Vec<String> = state.messages.drain(..count).collect();
            let taken: usize = messages.iter().map(String::len).sum();
            state.bytes = state.bytes.saturating_sub(taken);
            return Poll::Ready(Ok(messages));
        }
        if let Some(why) = &state.closed {
            return Poll::Ready(Err(why.clone()));
        }
        if std::mem::take(&mut state.is_woken) {
            return Poll::Ready(Ok(Vec::new()));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Wakes the user, without the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    waker.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(inbox: &Inbox) -> Poll<Result<Vec<String>, String>> {
        inbox.poll(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn what_waits_is_bounded_but_for_responses() {
        let inbox = Inbox::default();
        inbox.push("x".repeat(BYTES_MAX), true);
        inbox.push("event".to_owned(), true);
        inbox.push("response".to_owned(), false);
        let Poll::Ready(Ok(messages)) = poll(&inbox) else { panic!("no messages") };
        assert_eq!(messages.iter().map(String::len).collect::<Vec<_>>(), [BYTES_MAX, 8]);
        inbox.push("event".to_owned(), true);
        assert_eq!(poll(&inbox), Poll::Ready(Ok(vec!["event".to_owned()])));
    }

    #[test]
    fn messages_come_before_the_end() {
        let inbox = Inbox::default();
        inbox.push("last".to_owned(), true);
        inbox.close("gone");
        inbox.close("again");
        assert_eq!(poll(&inbox), Poll::Ready(Ok(vec!["last".to_owned()])));
        assert_eq!(poll(&inbox), Poll::Ready(Err("gone".to_owned())));
    }

    #[test]
    fn a_wake_up_ends_one_wait() {
        let inbox = Inbox::default();
        inbox.wake();
        assert_eq!(poll(&inbox), Poll::Ready(Ok(Vec::new())));
        assert!(poll(&inbox).is_pending());
    }
}
