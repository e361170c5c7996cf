//! The pending timers of a user.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

use crate::test::{LogLevel, Test};

/// The function that starts a repeating timer.
pub(super) const INTERVAL: &str = "setInterval";

#[derive(Default)]
pub(super) struct Timers {
    last: Cell<u32>,
    live: RefCell<BTreeMap<u32, PendingTimer>>,
}

struct PendingTimer {
    repeats: bool,
    /// Of the task that sleeps.
    waker: Option<Waker>,
}

impl Timers {
    /// Adds a timer; returns its number.
    pub(super) fn next(&self, repeats: bool) -> u32 {
        self.last.set(self.last.get() + 1);
        self.live.borrow_mut().insert(self.last.get(), PendingTimer { repeats, waker: None });
        self.last.get()
    }

    /// Whether a timer is to be fired; afterwards it is pending only if it repeats.
    pub(super) fn fires(&self, number: u32) -> bool {
        let mut live = self.live.borrow_mut();
        match live.get(&number) {
            Some(timer) if timer.repeats => true,
            _ => live.remove(&number).is_some(),
        }
    }

    /// Removes a timer. Its task ends: it would hold its function, and the iteration.
    pub(super) fn clear(&self, number: u32) {
        let cleared = self.live.borrow_mut().remove(&number);
        cleared.and_then(|timer| timer.waker).into_iter().for_each(Waker::wake);
    }

    /// Sleeps until the timer is due or cleared.
    pub(super) async fn sleep(&self, number: u32, due: impl Future<Output = ()>) {
        let mut due = pin!(due);
        poll_fn(|cx| {
            match self.live.borrow_mut().get_mut(&number) {
                Some(timer) => timer.waker = Some(cx.waker().clone()),
                None => return Poll::Ready(()),
            }
            due.as_mut().poll(cx)
        })
        .await;
    }

    /// Drops pending timers at the end of an iteration, with k6's warnings.
    pub(super) fn stop(&self, test: &Test) {
        for (number, PendingTimer { repeats, .. }) in self.live.take() {
            let name = if repeats { INTERVAL } else { "setTimeout" };
            let message =
                format!("{name} {number} was stopped because the VU iteration was interrupted");
            test.log(LogLevel::Warning, &message, &[]);
        }
    }
}
