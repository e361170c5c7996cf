//! The closed loop: a fixed number of users, each waits for its answer before the next request.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};
use gake_core::plan::Plan;
use gake_core::record::End;
use gake_core::work::{Arrival, Factory, Work};
use tokio::sync::watch;

use crate::control::{Stop, stopped};
use crate::lane::Lanes;
use crate::open::opens_at;
use crate::share::{numbers, part};
use crate::worker::{Arrivals, Phase, Shared};

/// What a user does between an answer and the next request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rest {
    /// Waits so long.
    Think(Duration),
    /// Waits for the next of the instants that lie so far apart, if it has not missed one.
    Pace(Duration),
}

/// What the users of one worker share.
struct Crowd {
    shared: Rc<Shared>,
    think: Nanos,
    pace: Nanos,
    warmup_end: Nanos,
    /// No new request from here on.
    end: Nanos,
    /// Requests left after the warm-up.
    left: Cell<u64>,
    next_number: Cell<u64>,
    stride: u64,
    /// Users who are not done.
    active: Cell<usize>,
}

impl Crowd {
    /// The number of the next request at `now`, unless there is none.
    fn take(&self, now: Nanos) -> Option<Arrival> {
        if self.shared.phase.get() != Phase::Running || now >= self.end {
            return None;
        }
        if now >= self.warmup_end {
            self.left.set(self.left.get().checked_sub(1)?);
        }
        let number = self.next_number.get();
        self.next_number.set(number + self.stride);
        Some(Arrival { number, due: now })
    }
}

/// Runs the closed loop and its drain.
pub(crate) async fn run<F: Factory>(
    plan: &Plan,
    rest: Rest,
    lanes: &Lanes<F>,
    mut stop: watch::Receiver<Stop>,
) -> Arrivals {
    let shared = &lanes.shared;
    let users = part(plan.connections, lanes.worker, lanes.workers);
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    let end = plan.length().map_or(Nanos::MAX, nanos);
    let (think, pace) = match rest {
        Rest::Think(think) => (nanos(think), 0),
        Rest::Pace(pace) => (0, nanos(pace)),
    };
    let crowd = Rc::new(Crowd {
        shared: Rc::clone(shared),
        think,
        pace,
        warmup_end: nanos(plan.warmup),
        end,
        left: Cell::new(
            plan.requests.map_or(u64::MAX, |n| numbers(n, lanes.worker, lanes.workers)),
        ),
        next_number: Cell::new(lanes.worker as u64),
        stride: lanes.workers as u64,
        active: Cell::new(users),
    });
    for lane in 0..users {
        // Users who keep a pace keep it one after the other, not all at once.
        let offset = u128::from(pace) * lanes.global(lane) as u128 / plan.connections as u128;
        let starts = opens_at(plan, lanes.global(lane)).max(offset as Nanos);
        tokio::task::spawn_local(user(Rc::clone(&crowd), starts, lanes.factory.work(lane)));
    }
    let all_done = async {
        while crowd.active.get() > 0 {
            shared.quiet.notified().await;
        }
    };
    tokio::select! {
        () = stopped(&mut stop, Stop::Drain) => {}
        () = all_done => {}
        () = shared.chores.sleep_until(end) => {}
    }
    let now = shared.clock.now();
    let end = now.min(end);
    shared.phase.set(Phase::Stopping);
    shared.flight.close(end);
    tokio::select! {
        () = shared.until_quiet() => {}
        () = shared.chores.sleep_until(now.saturating_add(nanos(plan.drain))) => {}
        () = stopped(&mut stop, Stop::Now) => {}
    }
    Arrivals { end }
}

async fn user<W: Work>(crowd: Rc<Crowd>, starts: Nanos, work: W) {
    crowd.shared.enroll().await;
    live(&crowd, starts, work).await;
    crowd.active.set(crowd.active.get() - 1);
    if crowd.active.get() == 0 {
        crowd.shared.quiet.notify_one();
    }
}

async fn live<W: Work>(crowd: &Crowd, starts: Nanos, mut work: W) {
    let shared = &crowd.shared;
    let mut due = starts;
    let mut now = shared.clock.now();
    if starts > now {
        let Some(later) = sleep(shared, starts).await else { return };
        now = later;
    }
    while let Some(arrival) = crowd.take(now) {
        let Some((done, end)) = shared.fire(&mut work, arrival, 0, now).await else { return };
        now = done;
        if let End::Fault(_) = end {
            // A fault may come without any wait; the other users must not starve.
            tokio::task::yield_now().await;
            now = shared.clock.now();
        }
        let next = if crowd.pace > 0 {
            // Of the starts that were missed one is left, and is now.
            due += crowd.pace * (now.saturating_sub(due) / crowd.pace).max(1);
            due.min(crowd.end)
        } else {
            now.saturating_add(crowd.think).min(crowd.end)
        };
        if next > now {
            let Some(later) = sleep(shared, next).await else { return };
            now = later;
        }
    }
}

/// Sleeps to an instant and reads the clock; `None` when the run is cut meanwhile.
async fn sleep(shared: &Shared, until: Nanos) -> Option<Nanos> {
    shared.unless_cut(std::pin::pin!(shared.timer.sleep_until(until))).await?;
    Some(shared.clock.now())
}
