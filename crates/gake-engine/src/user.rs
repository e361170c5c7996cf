//! One user of a closed loop: when it is there, and what it does then.

use std::rc::Rc;
use std::task::Poll;

use gake_core::clock::{Clock, Nanos};
use gake_core::work::{IterationStatus, Work};

use crate::worker_users::{WorkerUsers, Pause};
use crate::retry::RetryPace;
use crate::scenario_state::{Progress, ScenarioState};

/// When a user is there.
pub(crate) enum Presence {
    /// From its start to the end of the load.
    Always,
    /// In these spans, the last one first.
    Spans {
        /// From and until.
        spans: Vec<(Nanos, Nanos)>,
        /// Whether it is among those at the end of the load, who do not leave there.
        stays: bool,
    },
    /// Until it has made this number of iterations. Then it keeps what it holds, its connection
    /// above all, to the end of the run.
    Iterations(u64),
    /// As long as more users than its own number are wanted.
    Wanted {
        /// Its number among all users, from 0.
        number: usize,
    },
}

/// One stay of a user.
#[derive(Clone, Copy)]
struct UserStay {
    from: Nanos,
    /// No new request from here on.
    until: Option<Nanos>,
    /// Iterations left.
    iterations: Option<u64>,
    /// Its number, when it stays as long as more users than that are wanted.
    wanted: Option<usize>,
}

/// Why a stay is over.
#[derive(PartialEq, Eq)]
enum StayEnd {
    /// The user may come again.
    Left,
    /// There is nothing more to do for it.
    Done,
}

/// A user's task. It waits for the epoch first.
pub(crate) async fn user<W: Work>(
    crowd: Rc<WorkerUsers>,
    mut presence: Presence,
    first: Nanos,
    mut work: W,
) {
    crowd.shared.enroll().await;
    while let Some(next) = presence.next_stay(&crowd, first).await {
        if stay(&crowd, next, &mut work).await == StayEnd::Done {
            break;
        }
    }
    crowd.leave();
    if let Presence::Iterations(_) = presence {
        until_cut(&crowd.shared).await;
    }
}

impl Presence {
    /// When the user is there next; waits where that is not known yet.
    async fn next_stay(&mut self, crowd: &WorkerUsers, first: Nanos) -> Option<UserStay> {
        let always = UserStay { from: first, until: None, iterations: None, wanted: None };
        match self {
            Self::Always => Some(always),
            Self::Iterations(iterations) => Some(UserStay { iterations: Some(*iterations), ..always }),
            Self::Spans { spans, stays } => {
                let (from, until) = spans.pop()?;
                // At the end of the load the drain is what bounds those who are to stay.
                let is_end = *stays && Some(until) >= crowd.end;
                let until = (!is_end).then_some(until);
                Some(UserStay { from: from.max(first), until, ..always })
            }
            Self::Wanted { number } => {
                if !until_wanted(crowd, *number).await {
                    return None;
                }
                let from = first.max(crowd.shared.clock.now());
                Some(UserStay { from, wanted: Some(*number), ..always })
            }
        }
    }
}

async fn stay<W: Work>(crowd: &WorkerUsers, mut stay: UserStay, work: &mut W) -> StayEnd {
    let shared = &crowd.shared;
    let mut due = stay.from;
    let mut now = shared.clock.now();
    if due > now {
        let Some(later) = sleep(shared, due).await else { return StayEnd::Done };
        now = later;
    }
    let mut retry = RetryPace::default();
    let limit = stay.until.map(|until| until.saturating_add(crowd.graceful_ramp_down));
    let mut limit = std::pin::pin!(limit.map(|limit| shared.chores.sleep_until(limit)));
    loop {
        if stay.is_over(crowd, now) {
            return StayEnd::Left;
        }
        if stay.iterations == Some(0) {
            return StayEnd::Done;
        }
        let Some(arrival) = crowd.take(now) else { return StayEnd::Done };
        let counted = u64::from(now >= crowd.warmup_end);
        stay.iterations = stay.iterations.map(|left| left - counted);
        let fired = shared.fire(work, arrival, 0, now, limit.as_mut().as_pin_mut()).await;
        let Some(ended) = fired else { return StayEnd::Done };
        let earliest = retry.next_start(now, ended.status);
        now = ended.at;
        if let IterationStatus::Failed(_) = ended.status {
            // A fault may come without any wait; the other users must not starve.
            tokio::task::yield_now().await;
            now = shared.clock.now();
        }
        let next = match crowd.pause {
            Pause::None => now,
            Pause::Think(think) => now.saturating_add(think),
            Pause::Pace(pace) => {
                // Of the starts that were missed one is left, and is now.
                due += pace * (now.saturating_sub(due) / pace).max(1);
                due
            }
        };
        let next = next.max(earliest);
        if next <= now {
            continue;
        }
        let next = stay.until.into_iter().chain(crowd.end).fold(next, Nanos::min);
        if next > now {
            let Some(later) = sleep(shared, next).await else { return StayEnd::Done };
            now = later;
        }
    }
}

impl UserStay {
    fn is_over(&self, crowd: &WorkerUsers, now: Nanos) -> bool {
        self.until.is_some_and(|until| now >= until)
            || self.wanted.is_some_and(|number| number >= crowd.wanted())
    }
}

/// Waits until more users than `number` are wanted; false when the load is over before.
async fn until_wanted(crowd: &WorkerUsers, number: usize) -> bool {
    std::future::poll_fn(|_| match crowd.shared.progress.get() {
        Progress::Waiting | Progress::Running if crowd.wanted() > number => Poll::Ready(true),
        Progress::Waiting | Progress::Running => Poll::Pending,
        Progress::Draining | Progress::Stopping | Progress::Cut => Poll::Ready(false),
    })
    .await
}

/// Waits for the end of everything. The task is enrolled, so that it is woken.
async fn until_cut(shared: &ScenarioState) {
    std::future::poll_fn(|_| match shared.progress.get() {
        Progress::Cut => Poll::Ready(()),
        _ => Poll::Pending,
    })
    .await;
}

/// Sleeps to an instant and reads the clock; `None` when the run is cut meanwhile.
async fn sleep(shared: &ScenarioState, until: Nanos) -> Option<Nanos> {
    shared.unless_cut(std::pin::pin!(shared.timer.sleep_until(until))).await?;
    Some(shared.clock.now())
}
