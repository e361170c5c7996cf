//! The open loop: arrivals come when they are due, independent of responses.
//!
//! The pacer waits for due instants and assigns arrivals to idle lanes; a lane that finishes takes
//! the next due arrival itself. An unbounded backlog needs no queue: it is the next arrival and all
//! after it that are due.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::plan::{Overflow, Plan};
use gake_core::work::{Arrival, Factory, Work};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::arrivals::ArrivalSource;
use crate::control::{Stop, stopped};
use crate::dispatch::{Dispatch, LaneArrival, LaneSlot};
use crate::lanes::{Lanes, opens_at};
use crate::scenario_state::{Progress, ScenarioState};
use crate::takeover::Revision;

/// The end of a wait that is busy-polled with `spin`. A timerfd is later than this only on a busy
/// machine.
const SPIN_WINDOW: Nanos = 150_000;

/// Runs the open loop, whose schedule begins at `start`, and its drain. `revised` receives changes
/// of the arrivals. Returns the end of arrivals.
pub(crate) async fn run<F: Factory + 'static>(
    plan: &Arc<Plan>,
    seed: u64,
    start: Nanos,
    lanes: &Rc<Lanes<F>>,
    mut stop: watch::Receiver<Stop>,
    mut revised: UnboundedReceiver<Revision>,
) -> Nanos {
    let shared = &lanes.shared;
    let Some(mut schedule) = plan.schedule(seed) else { return 0 };
    let own = ArrivalSource::new(schedule.arrivals(lanes.slice).into_owned(), start);
    let dispatch = Rc::new(Dispatch::new(own, start, Rc::clone(shared)));
    // A separate task: the runtime polls its main future only between polls of the I/O driver.
    let mut pacer = Pacer::spawn(plan, lanes, &dispatch);
    let (over, timed_end) = loop {
        let timed_end = schedule.timed_end().map(|end| start.saturating_add(end));
        tokio::select! {
            biased;
            Some(revision) = revised.recv() => {
                dispatch.revise(revision, &mut schedule);
                // The pacer may wait for an arrival that is no longer the next.
                pacer.task.abort();
                pacer = Pacer::spawn(plan, lanes, &dispatch);
            }
            over = arrivals_over(shared, &mut pacer, timed_end, &mut stop) => {
                break (over, timed_end);
            }
        }
    };
    let now = shared.clock.now();
    let end = match (over, timed_end) {
        (ArrivalsEnd::Stopped | ArrivalsEnd::Exhausted, _) => now.min(timed_end.unwrap_or(now)),
        (ArrivalsEnd::Done, Some(end)) => end,
        // The last arrival may be fired late.
        (ArrivalsEnd::Done, None) => {
            let end = schedule.end().map_or(now, |end| start.saturating_add(end));
            end.max(shared.last_fired.get())
        }
    };
    let is_done = over == ArrivalsEnd::Done;
    shared.progress.set(if is_done { Progress::Draining } else { Progress::Stopping });
    shared.flight.close(end);
    let drained = async {
        if is_done {
            pacer.done().await;
        }
        shared.until_quiet().await;
    };
    let limit = nanos(plan.drain);
    tokio::select! {
        () = drained => {}
        () = shared.chores.sleep_until(now.saturating_add(limit)) => {}
        () = stopped(&mut stop, Stop::Now) => {}
    }
    pacer.task.abort();
    while let Ok(revision) = revised.try_recv() {
        dispatch.revise(revision, &mut schedule);
    }
    // Without a request, an arrival was not due.
    if over != ArrivalsEnd::Exhausted {
        dispatch.give_up(end);
    }
    end
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArrivalsEnd {
    /// The plan is completed.
    Done,
    /// The run was stopped.
    Stopped,
    /// The source of requests is exhausted.
    Exhausted,
}

/// Waits for the end of arrivals.
async fn arrivals_over(
    shared: &ScenarioState,
    pacer: &mut Pacer,
    timed_end: Option<Nanos>,
    stop: &mut watch::Receiver<Stop>,
) -> ArrivalsEnd {
    let over = async {
        match timed_end {
            // Even if all arrivals were fired earlier: rates are means over the whole time.
            Some(end) => shared.chores.sleep_until(end).await,
            None => pacer.done().await,
        }
    };
    tokio::select! {
        biased;
        () = stopped(stop, Stop::Drain) => ArrivalsEnd::Stopped,
        () = shared.exhausted.notified() => ArrivalsEnd::Exhausted,
        () = over => ArrivalsEnd::Done,
    }
}

/// The task that assigns arrivals to lanes when they are due.
struct Pacer {
    task: tokio::task::JoinHandle<()>,
    done: bool,
}

impl Pacer {
    fn spawn<F: Factory + 'static>(
        plan: &Arc<Plan>,
        lanes: &Rc<Lanes<F>>,
        dispatch: &Rc<Dispatch>,
    ) -> Self {
        let (plan, lanes, dispatch) = (Arc::clone(plan), Rc::clone(lanes), Rc::clone(dispatch));
        let task = tokio::task::spawn_local(async move { pace(&plan, &lanes, &dispatch).await });
        Self { task, done: false }
    }

    /// Waits until every arrival has a lane.
    async fn done(&mut self) {
        if !self.done {
            // An error means that it was aborted or panicked.
            let _ = (&mut self.task).await;
            self.done = true;
        }
    }
}

async fn pace<F: Factory>(plan: &Plan, lanes: &Lanes<F>, dispatch: &Rc<Dispatch>) {
    let shared = &lanes.shared;
    let room = match plan.overflow {
        Overflow::Wait => None,
        Overflow::Drop => Some(0),
        Overflow::Queue { waiting } => Some(lanes.slice.count(waiting)),
    };
    loop {
        let Some(next) = dispatch.next.get() else { return };
        let now = shared.clock.now();
        if next.due > now {
            // Let lanes fire assigned arrivals before the timer is set for the next.
            step_back().await;
            wait(shared, next.due, plan.spin).await;
        } else if !dispatch.assign_to_idle(now) {
            overflow(plan, lanes, dispatch, room, next, now).await;
        }
    }
}

/// Handles `next`, which is due while all lanes are busy: opens a lane, waits, queues or drops it.
async fn overflow<F: Factory>(
    plan: &Plan,
    lanes: &Lanes<F>,
    dispatch: &Rc<Dispatch>,
    room: Option<usize>,
    next: Arrival,
    now: Nanos,
) {
    let shared = &lanes.shared;
    let allowed = dispatch.start + opens_at(plan, lanes.global(dispatch.opened.get()));
    if lanes.is_all() {
        // Without a backlog, arrivals are never blocked.
        if room != Some(0) {
            dispatch.full_since.set(dispatch.full_since.get().or(Some(now)));
        }
        match room {
            None => dispatch.freed.notified().await,
            Some(room) => {
                dispatch.advance();
                if !dispatch.queue(next, room) {
                    shared.recorder.drop_arrival(next.due, now);
                }
            }
        }
    } else if allowed > now {
        tokio::select! {
            () = dispatch.freed.notified() => {}
            () = shared.timer.sleep_until(allowed) => {}
        }
    } else if let Some(work) = lanes.next_work() {
        dispatch.opened.set(dispatch.opened.get() + 1);
        let slot = Rc::new(LaneSlot::default());
        slot.assigned.set(dispatch.take_due(now));
        tokio::task::spawn_local(lane(Rc::clone(shared), Rc::clone(dispatch), slot, work));
    }
}

/// Lets all ready tasks run first. Unlike the runtime's yield, it does not poll the I/O driver.
async fn step_back() {
    let mut stepped = false;
    std::future::poll_fn(|cx| {
        if stepped {
            return Poll::Ready(());
        }
        stepped = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Waits for an instant, busy-polling at the end with `spin`.
async fn wait(shared: &ScenarioState, until: Nanos, spin: bool) {
    if !spin {
        shared.timer.sleep_until(until).await;
        return;
    }
    shared.timer.sleep_until(until.saturating_sub(SPIN_WINDOW)).await;
    while shared.clock.now() < until {
        tokio::task::yield_now().await;
    }
}

async fn lane<W: Work>(
    shared: Rc<ScenarioState>,
    dispatch: Rc<Dispatch>,
    slot: Rc<LaneSlot>,
    mut work: W,
) {
    shared.enroll().await;
    loop {
        let assigned = match slot.assigned.take() {
            Some(assigned) => assigned,
            None => match park(&shared, &dispatch, &slot).await {
                Some(assigned) => assigned,
                None => return,
            },
        };
        shared.pending.set(shared.pending.get() - 1);
        let now = shared.clock.now();
        if shared.progress.get() == Progress::Cut {
            shared.recorder.drop_arrival(assigned.arrival.due, now);
            shared.notice_quiet();
            return;
        }
        shared.enter(now);
        let fired = shared.fire(&mut work, assigned.arrival, assigned.blocked, now, None).await;
        let Some(ended) = fired else { return };
        slot.assigned.set(dispatch.take_due(ended.at));
    }
}

/// Waits for an arrival; `None` at the end of the run.
async fn park(
    shared: &ScenarioState,
    dispatch: &Dispatch,
    slot: &Rc<LaneSlot>,
) -> Option<LaneArrival> {
    dispatch.full_since.set(None);
    dispatch.idle.borrow_mut().push(Rc::clone(slot));
    dispatch.freed.notify_one();
    std::future::poll_fn(|cx| {
        if let Some(assigned) = slot.assigned.take() {
            return Poll::Ready(Some(assigned));
        }
        if shared.progress.get() == Progress::Cut {
            return Poll::Ready(None);
        }
        let mut waker = slot.waker.borrow_mut();
        if waker.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await
}
