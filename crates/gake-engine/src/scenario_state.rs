//! State shared by the lanes of one scenario on a worker.

use std::cell::{Cell, RefCell};
use std::pin::{Pin, pin};
use std::task::{Poll, Waker};

use gake_core::clock::Nanos;
use gake_core::record::Recorder;
use gake_core::work::{Arrival, Iteration, IterationEnd, IterationStatus, Work};
use tokio::sync::Notify;

use crate::clock::RunClock;
use crate::in_flight::InFlight;
use crate::timer::{Sleep, Timer};

/// The progress of a scenario on a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// Before the epoch: lanes wait.
    Waiting,
    /// Arrivals come.
    Running,
    /// No new arrivals; due arrivals are fired, those in flight may finish.
    Draining,
    /// Arrivals in flight may finish; no more are fired.
    Stopping,
    /// Everything is interrupted.
    Cut,
}

/// State shared by the lanes of one scenario on a worker.
pub(crate) struct ScenarioState {
    pub(crate) clock: RunClock,
    /// Only for arrivals, so that it is set once for each.
    pub(crate) timer: Timer,
    /// For everything else.
    pub(crate) chores: Timer,
    pub(crate) progress: Cell<Progress>,
    pub(crate) flight: InFlight,
    pub(crate) recorder: Recorder,
    /// Notified when nothing is in flight after the end of arrivals.
    pub(crate) quiet: Notify,
    /// Notified when the source of requests is exhausted.
    pub(crate) exhausted: Notify,
    pub(crate) is_exhausted: Cell<bool>,
    /// Arrivals assigned to lanes that have not run yet.
    pub(crate) pending: Cell<u64>,
    /// When the last arrival was fired.
    pub(crate) last_fired: Cell<Nanos>,
    /// When the last arrival completed.
    pub(crate) last_ended: Cell<Nanos>,
    /// Wakers of lanes, for the epoch and the end.
    wakers: RefCell<Vec<Waker>>,
}

impl ScenarioState {
    /// The state before the epoch. The first timer is only for arrivals.
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

    /// Counts an arrival as fired and in flight. Before [`ScenarioState::fire`].
    #[inline]
    pub(crate) fn enter(&self, fired: Nanos) {
        self.flight.enter(fired);
        self.last_fired.set(self.last_fired.get().max(fired));
    }

    /// Fires an arrival, which is interrupted at `limit`, and returns its end. `None` if the lane
    /// must end: the run was cut, and the arrival is recorded as interrupted; or the source is
    /// exhausted, and nothing is recorded.
    pub(crate) async fn fire<W: Work>(
        &self,
        work: &mut W,
        arrival: Arrival,
        blocked: Nanos,
        fired: Nanos,
        limit: Option<Pin<&mut Sleep<'_>>>,
    ) -> Option<IterationEnd> {
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
            None => {
                IterationEnd { status: IterationStatus::Interrupted, ..work.abandon(&iteration) }
            }
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

    /// The future's output, or `None` if the run is cut first.
    pub(crate) fn unless_cut<F: Future>(
        &self,
        mut future: Pin<&mut F>,
    ) -> impl Future<Output = Option<F::Output>> {
        // Not an async function, whose state would be another cache line of a request.
        std::future::poll_fn(move |cx| {
            if self.progress.get() == Progress::Cut {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
    }

    /// Registers the calling task to be woken at the epoch and at the end, and waits for the epoch.
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

    /// Called at the epoch.
    pub(crate) fn begin(&self) {
        self.progress.set(Progress::Running);
        self.wake_all();
    }

    /// Interrupts everything.
    pub(crate) fn cut(&self) {
        self.progress.set(Progress::Cut);
        self.wake_all();
    }

    /// Wakes all lanes, which check their conditions again.
    pub(crate) fn wake_all(&self) {
        for waker in self.wakers.borrow().iter() {
            waker.wake_by_ref();
        }
    }

    /// Waits until no arrival is in flight or assigned. Call it after [`Progress::Running`].
    pub(crate) async fn until_quiet(&self) {
        while !self.is_quiet() {
            self.quiet.notified().await;
        }
    }
}

/// The future's output, or `None` if `limit` passes first.
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
