//! A precise timer: a timerfd, which wakes within tens of microseconds, and a heap of sleepers.
//! tokio's timer has a granularity of 1 ms.

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
    inner: Rc<TimerState>,
}

#[derive(Debug)]
struct TimerState {
    clock: RunClock,
    fd: AsyncFd<OwnedFd>,
    sleepers: RefCell<BinaryHeap<Reverse<Sleeper>>>,
    /// The expiration of the timerfd; [`Nanos::MAX`] if it is not armed.
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
    /// When no descriptor is left.
    pub fn new(clock: RunClock) -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: the AsyncFd owns the OwnedFd, whose descriptor stays open and the same.
        let fd = unsafe { AsyncFd::register(fd) }.map_err(io::Error::from)?;
        let inner = Rc::new(TimerState {
            clock,
            fd,
            sleepers: RefCell::default(),
            armed: Cell::new(Nanos::MAX),
        });
        tokio::task::spawn_local(drive(Rc::clone(&inner)));
        Ok(Self { inner })
    }

    /// Sleeps until `at`. Completes immediately if it has passed.
    #[must_use]
    pub fn sleep_until(&self, at: Nanos) -> Sleep<'_> {
        Sleep { inner: &self.inner, at, asleep: false }
    }
}

/// A sleep until an instant. May be dropped early.
#[derive(Debug)]
pub struct Sleep<'a> {
    inner: &'a TimerState,
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

impl TimerState {
    /// Arms the timerfd for `at`, unless it fires earlier.
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
        // Cannot fail: the arguments are valid.
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

async fn drive(inner: Rc<TimerState>) {
    while let Ok(mut ready) = inner.fd.readable().await {
        // No need to read the timerfd: epoll is edge-triggered, arming clears it, and spurious
        // wake-ups are harmless.
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
