//! A user of a closed loop.

use std::rc::Rc;
use std::task::Poll;

use gake_core::clock::{Clock, Nanos};
use gake_core::work::{FastEnd, IterationStatus, Work};

use crate::fast_loop::FastLoop;
use crate::retry::RetryPace;
use crate::scenario_state::{Progress, ScenarioState};
use crate::worker_users::{Pause, WorkerUsers};

/// When a user is active.
pub(crate) enum Presence {
    /// From its start to the end of the load.
    Always,
    /// In some spans.
    Spans {
        /// Start and end, in reverse order.
        spans: Vec<(Nanos, Nanos)>,
        /// Whether it is active at the end of the load and does not leave there.
        stays: bool,
    },
    /// For a number of iterations. Then it keeps its connection to the end of the run.
    Iterations(u64),
    /// While more users than its number are wanted.
    Wanted {
        /// Its number among all users, from 0.
        number: usize,
    },
}

/// A span in which a user is active.
#[derive(Clone, Copy)]
struct UserStay {
    from: Nanos,
    /// No new requests from here on.
    until: Option<Nanos>,
    iterations: Option<u64>,
    /// Its number, if it stays while more users are wanted.
    wanted: Option<usize>,
}

#[derive(PartialEq, Eq)]
enum StayEnd {
    /// The user may return.
    Left,
    /// The user is done.
    Done,
}

/// A user's task. Waits for the epoch first.
pub(crate) async fn user<W: Work>(
    group: Rc<WorkerUsers>,
    mut presence: Presence,
    first: Nanos,
    mut work: W,
    fast: Option<Rc<FastLoop<W::Fast>>>,
) {
    group.shared.enroll().await;
    while let Some(next) = presence.next_stay(&group, first).await {
        if stay(&group, next, &mut work, fast.as_ref()).await == StayEnd::Done {
            break;
        }
    }
    group.leave();
    if let Presence::Iterations(_) = presence {
        until_cut(&group.shared).await;
    }
}

impl Presence {
    /// The next stay; waits if it is not known yet.
    async fn next_stay(&mut self, group: &WorkerUsers, first: Nanos) -> Option<UserStay> {
        let always = UserStay { from: first, until: None, iterations: None, wanted: None };
        match self {
            Self::Always => Some(always),
            Self::Iterations(iterations) => {
                Some(UserStay { iterations: Some(*iterations), ..always })
            }
            Self::Spans { spans, stays } => {
                let (from, until) = spans.pop()?;
                // At the end of the load, users who stay are bounded by the drain.
                let is_end = *stays && Some(until) >= group.end;
                let until = (!is_end).then_some(until);
                Some(UserStay { from: from.max(first), until, ..always })
            }
            Self::Wanted { number } => {
                if !until_wanted(group, *number).await {
                    return None;
                }
                let from = first.max(group.shared.clock.now());
                Some(UserStay { from, wanted: Some(*number), ..always })
            }
        }
    }
}

async fn stay<W: Work>(
    group: &WorkerUsers,
    mut stay: UserStay,
    work: &mut W,
    fast: Option<&Rc<FastLoop<W::Fast>>>,
) -> StayEnd {
    let shared = &group.shared;
    let mut due = stay.from;
    let mut now = shared.clock.now();
    if due > now {
        let Some(later) = sleep(shared, due).await else { return StayEnd::Done };
        now = later;
    }
    let mut retry = RetryPace::default();
    let limit = stay.until.map(|until| until.saturating_add(group.graceful_ramp_down));
    let mut limit = std::pin::pin!(limit.map(|limit| shared.chores.sleep_until(limit)));
    loop {
        if stay.is_over(group, now) {
            return StayEnd::Left;
        }
        if stay.iterations == Some(0) {
            return StayEnd::Done;
        }
        let Some(mut arrival) = group.take(now) else { return StayEnd::Done };
        shared.enter(now);
        if let Some(fast) = fast
            && let Some(at) = fast.begin(work, arrival)
        {
            fast.until_ended(at).await;
            match fast.give_back(at, work) {
                Some(FastEnd::Idle(at)) => {
                    now = at;
                    continue;
                }
                Some(FastEnd::InFlight { arrival: current, .. }) => {
                    (arrival, now) = (current, current.due);
                }
                None => {}
            }
        }
        let counted = u64::from(now >= group.warmup_end);
        stay.iterations = stay.iterations.map(|left| left - counted);
        let fired = shared.fire(work, arrival, 0, now, limit.as_mut().as_pin_mut()).await;
        let Some(ended) = fired else { return StayEnd::Done };
        let earliest = retry.next_start(now, ended.status);
        now = ended.at;
        if let IterationStatus::Failed(_) = ended.status {
            // A fault may be immediate; other users must not starve.
            tokio::task::yield_now().await;
            now = shared.clock.now();
        }
        let next = match group.pause {
            Pause::None => now,
            Pause::Think(think) => now.saturating_add(think),
            Pause::Pace(pace) => {
                // Missed starts are merged into one, due now.
                due += pace * (now.saturating_sub(due) / pace).max(1);
                due
            }
        };
        let next = next.max(earliest);
        if next <= now {
            continue;
        }
        let next = stay.until.into_iter().chain(group.end).fold(next, Nanos::min);
        if next > now {
            let Some(later) = sleep(shared, next).await else { return StayEnd::Done };
            now = later;
        }
    }
}

impl UserStay {
    fn is_over(&self, group: &WorkerUsers, now: Nanos) -> bool {
        self.until.is_some_and(|until| now >= until)
            || self.wanted.is_some_and(|number| number >= group.wanted())
    }
}

/// Waits until more users than `number` are wanted; false if the load ends first.
async fn until_wanted(group: &WorkerUsers, number: usize) -> bool {
    std::future::poll_fn(|_| match group.shared.progress.get() {
        Progress::Waiting | Progress::Running if group.wanted() > number => Poll::Ready(true),
        Progress::Waiting | Progress::Running => Poll::Pending,
        Progress::Draining | Progress::Stopping | Progress::Cut => Poll::Ready(false),
    })
    .await
}

/// Waits until the run is cut. Requires an enrolled task.
async fn until_cut(shared: &ScenarioState) {
    std::future::poll_fn(|_| match shared.progress.get() {
        Progress::Cut => Poll::Ready(()),
        _ => Poll::Pending,
    })
    .await;
}

/// Sleeps until an instant and returns the time; `None` if the run is cut.
async fn sleep(shared: &ScenarioState, until: Nanos) -> Option<Nanos> {
    shared.unless_cut(std::pin::pin!(shared.timer.sleep_until(until))).await?;
    Some(shared.clock.now())
}
