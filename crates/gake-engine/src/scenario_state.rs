//! What the lanes of one worker share.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};

use gake_core::clock::Nanos;
use gake_core::record::Recorder;
use gake_core::work::{Arrival, IterationEnd, IterationStatus, Iteration, Work};
use tokio::sync::Notify;

use crate::clock::RunClock;
use crate::in_flight::InFlight;
use crate::timer::{Sleep, Timer};

/// Where a worker is in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Before the epoch: lanes are made and wait.
    Waiting,
    /// Arrivals come.
    Running,
    /// No new arrival; what was due may still be fired, what is in flight may finish.
    Draining,
    /// What is in flight may finish; nothing more is fired.
    Stopping,
    /// Everything ends now.
    Cut,
}

/// What the lanes of a worker share.
pub(crate) struct ScenarioState {
    pub(crate) clock: RunClock,
    /// For arrivals. Nothing else sleeps on it, so that it is set once an arrival.
    pub(crate) timer: Timer,
    /// For everything else: seconds and ends.
    pub(crate) chores: Timer,
    pub(crate) progress: Cell<Progress>,
    pub(crate) flight: InFlight,
    pub(crate) recorder: Recorder,
    /// Notified when nothing is in flight any more and no arrival comes.
    pub(crate) quiet: Notify,
    /// Notified when the source has no more to send.
    pub(crate) exhausted: Notify,
    /// Whether the source is exhausted.
    pub(crate) is_exhausted: Cell<bool>,
    /// Arrivals handed to a lane that has not run yet.
    pub(crate) pending: Cell<u64>,
    /// When the last arrival was fired.
    pub(crate) last_fired: Cell<Nanos>,
    /// When the last one completed.
    pub(crate) last_ended: Cell<Nanos>,
    /// The lanes' tasks, to wake them at the epoch and at the end.
    wakers: RefCell<Vec<Waker>>,
}

impl ScenarioState {
    /// The state before the epoch. What is in flight counts from `warmup_end` on. The first timer
    /// is only for arrivals.
    pub(crate) fn new(
        clock: RunClock,
        (timer, chores): (Timer, Timer),
        warmup_end: Nanos,
        recorder: Recorder,
    ) -> Self {
        Self {
            clock,
            timer,
            chores,
            progress: Cell::new(Progress::Waiting),
            flight: InFlight::new(warmup_end),
            recorder,
            quiet: Notify::new(),
            exhausted: Notify::new(),
            is_exhausted: Cell::new(false),
            pending: Cell::new(0),
            last_fired: Cell::new(0),
            last_ended: Cell::new(0),
            wakers: RefCell::default(),
        }
    }

    /// Fires one arrival and says how it ended; what is unfinished at `limit` is interrupted.
    /// `None` when the lane must end: the run was cut meanwhile, and the arrival is recorded as
    /// interrupted; or the source had no more to send, and nothing is recorded.
    pub(crate) async fn fire<W: Work>(
        &self,
        work: &mut W,
        arrival: Arrival,
        blocked: Nanos,
        fired: Nanos,
        limit: Option<Pin<&mut Sleep<'_>>>,
    ) -> Option<IterationEnd> {
        self.flight.enter(fired);
        self.last_fired.set(self.last_fired.get().max(fired));
        let iteration = Iteration::new(arrival, blocked, fired, &self.recorder);
        let whole = {
            let mut fire = pin!(work.fire(&iteration));
            match limit {
                None => self.unless_cut(fire.as_mut()).await,
                Some(limit) => self.unless_cut(pin!(before(fire, limit))).await.flatten(),
            }
        };
        let ended = match whole {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => {
                self.flight.retract(fired);
                self.is_exhausted.set(true);
                self.exhausted.notify_one();
                self.notice_quiet();
                return None;
            }
            None => IterationEnd { status: IterationStatus::Interrupted, ..work.abandon(&iteration) },
        };
        if ended.status != IterationStatus::Interrupted {
            self.last_ended.set(self.last_ended.get().max(ended.at));
        }
        self.recorder.end(&iteration, ended);
        self.flight.leave(ended.at);
        self.notice_quiet();
        (self.progress.get() != Progress::Cut).then_some(ended)
    }

    fn is_quiet(&self) -> bool {
        self.flight.level() == 0 && self.pending.get() == 0
    }

    pub(crate) fn notice_quiet(&self) {
        if self.progress.get() != Progress::Running && self.is_quiet() {
            self.quiet.notify_one();
        }
    }

    /// The future's output, or `None` when the run is cut before it.
    pub(crate) async fn unless_cut<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|cx| {
            if self.progress.get() == Progress::Cut {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Makes the calling task one that is woken at the epoch and when the run is cut, and waits
    /// for the epoch.
    pub(crate) async fn enroll(&self) {
        let mut enrolled = false;
        std::future::poll_fn(|cx| {
            if !enrolled {
                self.wakers.borrow_mut().push(cx.waker().clone());
                enrolled = true;
            }
            match self.progress.get() {
                Progress::Waiting => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    }

    /// The epoch has come.
    pub(crate) fn begin(&self) {
        self.progress.set(Progress::Running);
        self.wake_all();
    }

    /// Ends everything.
    pub(crate) fn cut(&self) {
        self.progress.set(Progress::Cut);
        self.wake_all();
    }

    /// Wakes every lane, which looks again at what it waits for.
    pub(crate) fn wake_all(&self) {
        for waker in self.wakers.borrow().iter() {
            waker.wake_by_ref();
        }
    }

    /// Waits until nothing is in flight or handed out; call it later than [`Progress::Running`].
    pub(crate) async fn until_quiet(&self) {
        while !self.is_quiet() {
            self.quiet.notified().await;
        }
    }
}

/// The future's output, or `None` when `limit` is over before it.
async fn before<F: Future>(
    mut future: Pin<&mut F>,
    mut limit: Pin<&mut Sleep<'_>>,
) -> Option<F::Output> {
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}
