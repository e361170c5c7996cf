//! One worker: its shared state, its ticks, and its end.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::task::Waker;

use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::plan::{Load, Plan};
use gake_core::record::{End, Interval, Outcome, Recorder, Tally};
use gake_core::work::{Arrival, Factory, Work};
use tokio::sync::{Notify, watch};

use crate::clock::RunClock;
use crate::closed::Rest;
use crate::control::Stop;
use crate::flight::Flight;
use crate::lane::Lanes;
use crate::log::{Log, LogSender};
use crate::start::Event;
use crate::timer::Timer;
use crate::usage::ThreadUsage;
use crate::{closed, open};

/// Where a worker is in its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Arrivals come.
    Running,
    /// No new arrival; what was due may still be fired, what is in flight may finish.
    Draining,
    /// What is in flight may finish; nothing more is fired.
    Stopping,
    /// Everything ends now.
    Cut,
}

/// What a worker is given.
pub(crate) struct Duty {
    pub(crate) plan: std::sync::Arc<Plan>,
    pub(crate) seed: u64,
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    pub(crate) clock: RunClock,
    pub(crate) stop: watch::Receiver<Stop>,
    pub(crate) events: SyncSender<Event>,
    pub(crate) spares: Receiver<Tally>,
    pub(crate) log: Option<LogSender>,
}

/// What the lanes of a worker share.
pub(crate) struct Shared {
    pub(crate) clock: RunClock,
    /// For arrivals. Nothing else sleeps on it, so that it is set once an arrival.
    pub(crate) timer: Timer,
    /// For everything else: ticks and ends.
    pub(crate) chores: Timer,
    pub(crate) phase: Cell<Phase>,
    pub(crate) flight: Flight,
    /// Notified when nothing is in flight any more and no arrival comes.
    pub(crate) quiet: Notify,
    /// Notified when a work has nothing left to send.
    pub(crate) ran_out: Notify,
    /// Arrivals handed to a lane that has not run yet.
    pub(crate) pending: Cell<u64>,
    /// When the last arrival was fired.
    pub(crate) last_fired: Cell<Nanos>,
    /// When the last one ended that was not given up.
    pub(crate) last_ended: Cell<Nanos>,
    recorder: RefCell<Recorder>,
    log: Option<Log>,
    /// The lanes' tasks, to wake them at the end.
    wakers: RefCell<Vec<Waker>>,
}

impl Shared {
    /// Fires one arrival, records what came of it, and says when and how it ended. `None` when
    /// the lane must end: the run was cut meanwhile, and the arrival is recorded as unfinished; or
    /// there was nothing left to send, and nothing is recorded.
    pub(crate) async fn fire<W: Work>(
        &self,
        work: &mut W,
        arrival: Arrival,
        blocked: Nanos,
        fired: Nanos,
    ) -> Option<(Nanos, End)> {
        self.flight.enter(fired);
        self.last_fired.set(fired);
        let whole = {
            let mut fire = std::pin::pin!(work.fire(arrival, fired));
            self.unless_cut(fire.as_mut()).await
        };
        let is_whole = whole.is_some();
        let exchange = whole.unwrap_or_else(|| work.abandon());
        let (done, end) = (exchange.done, exchange.end);
        if end == End::NothingToSend {
            self.flight.leave(done);
            self.ran_out.notify_one();
            self.notice_quiet();
            return None;
        }
        if is_whole {
            self.last_ended.set(self.last_ended.get().max(done));
        }
        let outcome = Outcome { arrival, blocked, fired, exchange };
        self.recorder.borrow_mut().record(&outcome);
        if let Some(log) = &self.log {
            log.push(outcome);
        }
        self.flight.leave(done);
        self.notice_quiet();
        is_whole.then_some((done, end))
    }

    fn is_quiet(&self) -> bool {
        self.flight.level() == 0 && self.pending.get() == 0
    }

    pub(crate) fn notice_quiet(&self) {
        if self.phase.get() != Phase::Running && self.is_quiet() {
            self.quiet.notify_one();
        }
    }

    /// The future's output, or `None` when the run is cut before it.
    pub(crate) async fn unless_cut<F: Future>(&self, mut future: Pin<&mut F>) -> Option<F::Output> {
        std::future::poll_fn(|cx| {
            if self.phase.get() == Phase::Cut {
                return std::task::Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Counts an arrival that is given up without having been sent.
    pub(crate) fn drop_arrival(&self, arrival: Arrival, now: Nanos) {
        self.recorder.borrow_mut().record_dropped(arrival.due, now);
    }

    /// Makes the calling task one that is woken when the run is cut.
    pub(crate) async fn enroll(&self) {
        std::future::poll_fn(|cx| {
            self.wakers.borrow_mut().push(cx.waker().clone());
            std::task::Poll::Ready(())
        })
        .await;
    }

    fn cut(&self) {
        self.phase.set(Phase::Cut);
        for waker in self.wakers.borrow().iter() {
            waker.wake_by_ref();
        }
    }

    /// Waits until nothing is in flight or handed out; call it in a later phase than `Running`.
    pub(crate) async fn until_quiet(&self) {
        while !self.is_quiet() {
            self.quiet.notified().await;
        }
    }
}

/// How a worker's arrivals ended.
pub(crate) struct Arrivals {
    /// When no more came.
    pub(crate) end: Nanos,
}

/// Runs one worker to its end. The epoch lies a little ahead.
pub(crate) async fn run<F: Factory + 'static>(duty: Duty, factory: F) {
    let (Ok(timer), Ok(chores)) = (Timer::new(duty.clock), Timer::new(duty.clock)) else {
        let _ = duty.events.send(Event::Failed("no file descriptor for a timer".to_owned()));
        return;
    };
    let warmup = u64::try_from(duty.plan.warmup.as_nanos()).unwrap_or(u64::MAX);
    let shared = Rc::new(Shared {
        clock: duty.clock,
        timer,
        chores,
        phase: Cell::new(Phase::Running),
        flight: Flight::new(warmup),
        quiet: Notify::new(),
        ran_out: Notify::new(),
        pending: Cell::new(0),
        last_fired: Cell::new(0),
        last_ended: Cell::new(0),
        recorder: RefCell::new(Recorder::new(
            duty.plan.expect.clone(),
            warmup,
            duty.plan.labels.len(),
        )),
        log: duty.log.map(Log::new),
        wakers: RefCell::default(),
    });
    let factory = Rc::new(factory);
    factory.begin();
    let Duty { plan, seed, worker, workers, stop, events, spares, .. } = duty;
    let desk = Rc::new(Desk {
        shared: Rc::clone(&shared),
        factory: Rc::clone(&factory),
        worker,
        events,
        spares,
        usage: RefCell::new(ThreadUsage::new()),
    });
    let ticks = tokio::task::spawn_local(tick(Rc::clone(&desk)));
    let lanes = Rc::new(Lanes { shared: Rc::clone(&shared), factory, worker, workers });
    // Before the epoch the clock stands at 0, and nothing could be timed.
    shared.chores.sleep_until(1).await;
    let arrivals = match &plan.load {
        Load::Open { .. } | Load::Replay(_) => open::run(&plan, seed, &lanes, stop).await,
        Load::Closed { think } => closed::run(&plan, Rest::Think(*think), &lanes, stop).await,
        Load::Paced { pace } => closed::run(&plan, Rest::Pace(*pace), &lanes, stop).await,
    };
    shared.cut();
    shared.until_quiet().await;
    ticks.abort();
    desk.factory.finish();
    let done = shared.clock.now();
    // The last part of a second is handed over like a whole one.
    desk.hand_over(done / SECOND + 1, true);
    let ended = Event::Ended {
        worker,
        arrivals_end: arrivals.end,
        last_fired: shared.last_fired.get(),
        last_ended: shared.last_ended.get(),
        done,
        log_lost: shared.log.as_ref().map_or(0, Log::finish),
    };
    let _ = desk.events.send(ended);
}

/// Where a worker hands over what it recorded.
struct Desk<F: Factory> {
    shared: Rc<Shared>,
    factory: Rc<F>,
    worker: usize,
    events: SyncSender<Event>,
    spares: Receiver<Tally>,
    usage: RefCell<ThreadUsage>,
}

async fn tick<F: Factory>(desk: Rc<Desk<F>>) {
    loop {
        let second = desk.shared.clock.now() / SECOND + 1;
        desk.shared.chores.sleep_until(second * SECOND).await;
        desk.hand_over(second, false);
    }
}

impl<F: Factory> Desk<F> {
    /// Hands over what was recorded up to now. When the receiver is behind, it is kept and goes
    /// with the next second: nothing is lost, and nothing piles up. `wait` makes it wait instead.
    fn hand_over(&self, second: u64, wait: bool) {
        let now = self.shared.clock.now();
        if let Some(log) = &self.shared.log {
            log.flush();
        }
        let spare = self.spares.try_recv().unwrap_or_default();
        let mut recorder = self.shared.recorder.borrow_mut();
        recorder.tally_mut().in_flight_ns += self.shared.flight.take(now);
        recorder.tally_mut().fired += self.shared.flight.take_entered();
        let gauges = self.factory.observe(recorder.tally_mut());
        let (cpu, run_delay) = self.usage.borrow_mut().take();
        let (tally, warmup) = recorder.take(spare);
        let interval = Box::new(Interval {
            worker: self.worker,
            second,
            tally,
            warmup,
            gauges,
            cpu,
            run_delay,
        });
        if wait {
            // The receiver is gone only when the program is ending.
            let _ = self.events.send(Event::Interval(interval));
        } else if let Err(TrySendError::Full(Event::Interval(kept))) =
            self.events.try_send(Event::Interval(interval))
        {
            recorder.put_back(&kept.tally, &kept.warmup);
        }
    }
}
