//! Time-outs without a timer per request: each lane keeps its deadline in a cell, and one task a
//! worker looks at all of them when the first may have passed.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};

use crate::connect::nanos;

/// How often deadlines are looked at at most: a hundredth of the shortest, within these bounds.
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(20);

/// The deadlines of one worker.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    all: RefCell<Vec<Weak<Deadline>>>,
}

/// The deadline of one lane.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Cell<Nanos>,
    passed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Deadlines {
    /// A deadline for a new lane, not set.
    pub(crate) fn add(&self) -> Rc<Deadline> {
        let deadline = Rc::new(Deadline {
            at: Cell::new(Nanos::MAX),
            passed: Cell::new(false),
            waker: RefCell::new(None),
        });
        self.all.borrow_mut().push(Rc::downgrade(&deadline));
        deadline
    }

    /// Looks after the deadlines for as long as the worker's runtime lives. None is ever set to
    /// less than `shortest` from then, nor to less than what it was set to before in the same
    /// request: so nothing can pass between a look and the next one.
    pub(crate) fn watch<C: Clock + 'static>(self: &Rc<Self>, clock: C, shortest: Duration) {
        let rest = nanos((shortest / 100).clamp(LOOK_MIN, LOOK_MAX));
        let shortest = nanos(shortest);
        let deadlines = Rc::clone(self);
        tokio::task::spawn_local(async move {
            loop {
                let now = clock.now();
                let first = deadlines.look(now);
                let wait = first.saturating_sub(now).min(shortest).max(rest);
                tokio::time::sleep(Duration::from_nanos(wait)).await;
            }
        });
    }

    /// Wakes those whose deadline has passed, and returns the first deadline that has not.
    fn look(&self, now: Nanos) -> Nanos {
        let mut first = Nanos::MAX;
        self.all.borrow_mut().retain(|weak| {
            let Some(deadline) = weak.upgrade() else { return false };
            let at = deadline.at.get();
            if at > now {
                first = first.min(at);
                return true;
            }
            deadline.at.set(Nanos::MAX);
            deadline.passed.set(true);
            if let Some(waker) = deadline.waker.borrow().as_ref() {
                waker.wake_by_ref();
            }
            true
        });
        first
    }
}

impl Deadline {
    /// Sets the deadline, and forgets that an earlier one has passed.
    #[inline]
    pub(crate) fn set(&self, at: Nanos) {
        self.at.set(at);
        self.passed.set(false);
    }

    /// Whether the deadline has passed.
    #[inline]
    pub(crate) fn has_passed(&self) -> bool {
        self.passed.get()
    }

    /// Makes the calling task the one that is woken.
    #[inline]
    pub(crate) fn wakes(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// The future's output, or `None` when the deadline passes first.
    pub(crate) async fn before<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        poll_fn(|cx| {
            if self.has_passed() {
                return Poll::Ready(None);
            }
            self.wakes(cx);
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_finds_what_has_passed_and_what_comes_next() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.look(5), Nanos::MAX);
        let (early, late, unset) = (deadlines.add(), deadlines.add(), deadlines.add());
        early.set(10);
        late.set(20);
        assert_eq!((deadlines.look(9), early.has_passed()), (10, false));
        assert_eq!((deadlines.look(10), early.has_passed(), late.has_passed()), (20, true, false));
        // It is told once, until it is set again.
        early.set(30);
        assert!(!early.has_passed());
        assert_eq!(deadlines.look(25), 30);
        assert!(late.has_passed() && !unset.has_passed());
    }

    #[test]
    fn lanes_that_are_gone_are_forgotten() {
        let deadlines = Deadlines::default();
        deadlines.add().set(10);
        let kept = deadlines.add();
        assert_eq!(deadlines.look(0), Nanos::MAX);
        assert_eq!((deadlines.all.borrow().len(), Rc::weak_count(&kept)), (1, 1));
    }
}
