//! A precise timer for one worker: a timerfd and a heap of sleepers.
//!
//! tokio's own timer has a granularity of 1 ms. A timerfd wakes within tens of microseconds.

#![expect(
    unsafe_code,
    reason = "AsyncFd::register of a timerfd, which is unsafe as the descriptor must stay the same one"
)]

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gake_core::clock::{Clock, Nanos, SECOND};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use crate::clock::RunClock;

/// Wakes the tasks of one worker at instants of the run's clock.
#[derive(Debug, Clone)]
pub struct Timer {
    inner: Rc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: RunClock,
    fd: AsyncFd<OwnedFd>,
    sleepers: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    /// What the timerfd is set to; [`Nanos::MAX`] when it is not.
    armed: Cell<Nanos>,
}

#[derive(Debug)]
struct Sleeper {
    at: Nanos,
    waker: Waker,
}

impl Timer {
    /// A timer on the current runtime, which must be a local one.
    ///
    /// # Errors
    /// When the system has no descriptor left for it.
    pub fn new(clock: RunClock) -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: an OwnedFd is open, gives the same descriptor every time, and lives in the
        // AsyncFd, which never gives it out to be closed.
        let fd = unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)?;
        let inner = Rc::new(Inner {
            clock,
            fd,
            sleepers: RefCell::default(),
            armed: Cell::new(Nanos::MAX),
        });
        tokio::task::spawn_local(drive(Rc::clone(&inner)));
        Ok(Self { inner })
    }

    /// Sleeps until `at`; ready at once when it has passed.
    #[must_use]
    pub fn sleep_until(&self, at: Nanos) -> Sleep<'_> {
        Sleep { inner: &self.inner, at, asleep: false }
    }
}

/// A sleep until an instant. May be dropped early.
#[derive(Debug)]
pub struct Sleep<'a> {
    inner: &'a Inner,
    at: Nanos,
    asleep: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.inner.clock.now() >= self.at {
            return Poll::Ready(());
        }
        if !self.asleep {
            self.inner
                .sleepers
                .borrow_mut()
                .push(Reverse(Sleeper { at: self.at, waker: cx.waker().clone() }));
            self.inner.arm(self.at);
            self.asleep = true;
        }
        Poll::Pending
    }
}

impl Inner {
    /// Makes the timerfd fire at `at`, unless it fires earlier anyway.
    fn arm(&self, at: Nanos) {
        if at >= self.armed.get() {
            return;
        }
        let at_monotonic = self.clock.monotonic_of(at);
        let value = Timespec {
            tv_sec: i64::try_from(at_monotonic / SECOND).unwrap_or(i64::MAX),
            tv_nsec: (at_monotonic % SECOND) as i64,
        };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: zero, it_value: value };
        // The arguments are valid by construction, so this cannot fail.
        if timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &setting).is_ok() {
            self.armed.set(at);
        }
    }

    fn wake_due(&self) {
        let mut sleepers = self.sleepers.borrow_mut();
        let now = self.clock.now();
        while let Some(Reverse(next)) = sleepers.peek() {
            if next.at > now {
                break;
            }
            if let Some(Reverse(sleeper)) = sleepers.pop() {
                sleeper.waker.wake();
            }
        }
        self.armed.set(Nanos::MAX);
        if let Some(Reverse(next)) = sleepers.peek() {
            self.arm(next.at);
        }
    }
}

async fn drive(inner: Rc<Inner>) {
    while let Ok(mut ready) = inner.fd.readable().await {
        // The number of expirations is never read: epoll tells edges, setting the timer clears
        // it, and a spurious wake-up finds nothing due.
        ready.clear_ready();
        inner.wake_due();
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Sleeper {}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
