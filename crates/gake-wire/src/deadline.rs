//! Time-outs without a timer per request: each lane keeps its deadline in a cell, and one task a
//! worker looks at all of them every few milliseconds.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};

/// How often deadlines are looked at: a hundredth of the shortest, within these bounds.
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

    /// Looks after the deadlines for as long as the worker's runtime lives.
    pub(crate) fn watch<C: Clock + 'static>(self: &Rc<Self>, clock: C, shortest: Duration) {
        let every = (shortest / 100).clamp(LOOK_MIN, LOOK_MAX);
        let deadlines = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let mut interval = tokio::time::interval(every);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                deadlines.look(clock.now());
            }
        });
    }

    fn look(&self, now: Nanos) {
        self.all.borrow_mut().retain(|weak| {
            let Some(deadline) = weak.upgrade() else { return false };
            if deadline.at.get() <= now {
                deadline.at.set(Nanos::MAX);
                deadline.passed.set(true);
                if let Some(waker) = deadline.waker.borrow().as_ref() {
                    waker.wake_by_ref();
                }
            }
            true
        });
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
