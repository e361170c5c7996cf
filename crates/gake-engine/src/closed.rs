//! The closed loop: each user waits for its response before the next request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use gake_core::Load;
use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::plan::{Plan, presence};
use gake_core::work::Factory;
use tokio::sync::watch;

use crate::arrival_numbers::ArrivalNumbers;
use crate::control::{Stop, stopped};
use crate::fast_loop::FastLoop;
use crate::lanes::{Lanes, opens_at};
use crate::scenario_state::Progress;
use crate::user::{Presence, user};
use crate::worker_users::{Pause, WorkerUsers};

/// Spawns a worker's users of a closed load that begins at `start`; they wait for the epoch.
/// `setting` is the number of users wanted, for an externally controlled load.
pub(crate) fn spawn_users<F: Factory>(
    plan: &Plan,
    start: Nanos,
    lanes: &Lanes<F>,
    setting: Option<watch::Receiver<usize>>,
    numbers: ArrivalNumbers,
) -> Rc<WorkerUsers> {
    let slice = lanes.slice;
    let total = plan.load.users().unwrap_or(0);
    let (pause, graceful_ramp_down) = match plan.load.one() {
        Some(Load::Closed { think, .. }) => (Pause::Think(nanos(*think)), 0),
        Some(Load::Paced { pace, .. }) => (Pause::Pace(nanos(*pace).max(1)), 0),
        Some(Load::Ramping { think, graceful_ramp_down, .. }) => {
            (Pause::Think(nanos(*think)), nanos(*graceful_ramp_down))
        }
        _ => (Pause::None, 0),
    };
    let pause = if pause == Pause::Think(0) { Pause::None } else { pause };
    let users = slice.count(total);
    let group = Rc::new(WorkerUsers {
        shared: Rc::clone(&lanes.shared),
        pause,
        graceful_ramp_down,
        warmup_end: start.saturating_add(nanos(plan.warmup)),
        end: plan.length().map(|length| start.saturating_add(nanos(length))),
        numbers,
        active: Cell::new(users),
        wanted: Cell::new(setting.as_ref().map_or(0, |setting| *setting.borrow())),
        setting: RefCell::new(setting),
    });
    // Without descriptors for it, there is no fast path.
    let fast = if users >= plan.fast_users && is_plain(plan, pause) {
        FastLoop::new(Rc::clone(&group)).ok().map(Rc::new)
    } else {
        None
    };
    for lane in 0..users {
        let Some(work) = lanes.next_work() else { break };
        let number = lanes.global(lane);
        // Paced users start staggered.
        let offset = match pause {
            Pause::Pace(pace) => (u128::from(pace) * number as u128 / total as u128) as Nanos,
            Pause::None | Pause::Think(_) => 0,
        };
        let first = start.saturating_add(opens_at(plan, number).max(offset));
        let presence = match plan.load.one() {
            Some(Load::Ramping { stages, .. }) => {
                let spans = presence(stages, number).into_iter().rev();
                let at = |offset| start.saturating_add(nanos(offset));
                Presence::Spans {
                    spans: spans.map(|(from, until)| (at(from), at(until))).collect(),
                    stays: stages.last().is_some_and(|last| number < last.to),
                }
            }
            Some(Load::PerUser { iterations, .. }) => Presence::Iterations(*iterations),
            Some(Load::External { .. }) => Presence::Wanted { number },
            _ => Presence::Always,
        };
        tokio::task::spawn_local(user(Rc::clone(&group), presence, first, work, fast.clone()));
    }
    group
}

/// Whether users begin an iteration at the end of the last, up to the end of the load.
fn is_plain(plan: &Plan, pause: Pause) -> bool {
    let is_closed = matches!(plan.load.one(), Some(Load::Closed { .. } | Load::Shared { .. }));
    is_closed && pause == Pause::None
}

/// Runs the closed loop and its drain. Returns the end of arrivals.
pub(crate) async fn run(
    plan: &Plan,
    group: &WorkerUsers,
    mut stop: watch::Receiver<Stop>,
) -> Nanos {
    let shared = &group.shared;
    let all_done = async {
        while group.active.get() > 0 {
            shared.quiet.notified().await;
        }
    };
    let time_over = async {
        match group.end {
            Some(end) => shared.chores.sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stopped(&mut stop, Stop::Drain) => {}
        () = all_done => {}
        () = time_over => {}
        () = follow(group) => {}
    }
    let now = shared.clock.now();
    let end = group.end.map_or(now, |end| now.min(end));
    shared.progress.set(Progress::Stopping);
    shared.flight.close(end);
    tokio::select! {
        () = shared.until_quiet() => {}
        () = shared.chores.sleep_until(now.saturating_add(nanos(plan.drain))) => {}
        () = stopped(&mut stop, Stop::Now) => {}
    }
    end
}

/// Follows the number of users of an externally controlled load. Never returns.
async fn follow(group: &WorkerUsers) {
    let Some(mut setting) = group.setting.take() else { return std::future::pending().await };
    while setting.changed().await.is_ok() {
        group.wanted.set(*setting.borrow_and_update());
        group.shared.wake_all();
    }
    // The sender is gone.
    std::future::pending().await
}
