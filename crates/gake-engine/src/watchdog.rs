//! Workers that block their thread: the last net below everything that yields.
//!
//! A worker reports every second, also while it drains. One that says nothing for a while after the
//! run had to be over is blocked in code that never yields, such as a native function of a script.
//! It is abandoned: its thread runs until the process ends, and the run ends with the figures of
//! the others and its own last report.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use gake_core::activity::Activity;
use gake_core::clock::Clock;
use gake_core::plan::Plan;
use gake_core::record::{ScenarioEnd, WorkerEnd};

use crate::clock::RunClock;
use crate::control::{Stop, StopHandle};
use crate::message::Message;

/// Silence after which a worker is abandoned once the run had to be over.
const SILENCE: Duration = Duration::from_secs(10);

/// What closing a connection adds to it. The workers of a full machine close all of theirs in one turn,
/// in which they report nothing: a million took 28 s on two cores that the server shared.
const CLOSING: Duration = Duration::from_micros(20);

/// The same after a second interrupt.
const SILENCE_URGENT: Duration = Duration::from_secs(1);

/// How often it looks.
const LOOK: Duration = Duration::from_millis(250);

/// Watches the workers of a run in this process.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// From the first message received to when the run has to be over; `None` if only a stop ends
    /// it.
    length: Option<Duration>,
    started: Instant,
    /// Since when it has been known that the run had to be over.
    over: Option<Instant>,
    /// By worker: when it last reported; `None` once it has ended.
    reported: Vec<Option<Instant>>,
    scenarios: usize,
    silence: Duration,
    abandoned: Vec<usize>,
    activities: Vec<Arc<Activity>>,
}

/// Silence after which a worker of this plan is abandoned once the run had to be over.
pub(crate) fn silence(plan: &Plan) -> Duration {
    let lanes: usize = plan.scenarios().iter().map(Plan::lanes).sum();
    SILENCE + CLOSING * u32::try_from(lanes).unwrap_or(u32::MAX)
}

impl Watchdog {
    /// Begins with the epoch.
    pub(crate) fn new(plan: &Plan, activities: Vec<Arc<Activity>>) -> Self {
        let ends = plan.scenarios().iter();
        let ends =
            ends.map(|one| Some(one.start.saturating_add(one.length()?).saturating_add(one.drain)));
        let length = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
        let (started, over, abandoned) = (Instant::now(), None, Vec::new());
        let scenarios = plan.scenarios().len();
        let reported = vec![Some(started); activities.len()];
        let silence = silence(plan);
        Self { length, started, over, reported, scenarios, silence, abandoned, activities }
    }

    /// The workers abandoned so far.
    pub(crate) fn abandoned(&self) -> &[usize] {
        &self.abandoned
    }

    /// The calls in which they are blocked, as far as they are known.
    pub(crate) fn blocked_calls(&self) -> Vec<String> {
        self.abandoned.iter().filter_map(|worker| self.activities[*worker].call()).collect()
    }

    /// The next message, or the end of a worker that is abandoned; `None` if all senders are gone.
    pub(crate) fn receive(
        &mut self,
        messages: &Receiver<Message>,
        stop: &StopHandle,
        clock: &RunClock,
    ) -> Option<Message> {
        loop {
            match messages.recv_timeout(LOOK) {
                Ok(message) => {
                    let (worker, at) = match &message {
                        Message::Interval(interval) => (interval.worker, Some(Instant::now())),
                        Message::Ended(end) => (end.worker, None),
                    };
                    if self.abandoned.contains(&worker) {
                        // It came back after all, too late.
                        continue;
                    }
                    if let Some(reported) = self.reported.get_mut(worker) {
                        *reported = at;
                    }
                    return Some(message);
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(worker) = self.silent(Instant::now(), stop) {
                        self.reported[worker] = None;
                        self.abandoned.push(worker);
                        let end = ScenarioEnd { done: clock.now(), ..ScenarioEnd::default() };
                        let scenarios = (0..self.scenarios).map(|number| (number, end)).collect();
                        let log_lost = 0;
                        return Some(Message::Ended(WorkerEnd { worker, scenarios, log_lost }));
                    }
                }
            }
        }
    }

    /// A worker to abandon at `now`.
    fn silent(&mut self, now: Instant, stop: &StopHandle) -> Option<usize> {
        let is_over = stop.asked() == Stop::Now
            || self.length.is_some_and(|length| now.duration_since(self.started) > length);
        if !is_over {
            return None;
        }
        let over = *self.over.get_or_insert(now);
        let silence = if stop.is_urgent() { SILENCE_URGENT } else { self.silence };
        // Since both: a worker that has just reported is given all of it.
        let is_silent = |reported: &Option<Instant>| {
            reported.is_some_and(|reported| now.duration_since(reported.max(over)) >= silence)
        };
        self.reported.iter().position(is_silent)
    }
}

#[cfg(test)]
mod tests {
    use gake_core::Load;
    use gake_core::activity::{self, NativeCall};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watchdog(duration: Option<Duration>) -> Watchdog {
        let load = Load::External { users: 2, max: 2 };
        let plan = Plan { duration, drain: 5 * SECOND, ..Plan::new("", load) };
        Watchdog::new(&plan, vec![Arc::default(); 2])
    }

    #[test]
    fn a_worker_is_abandoned_when_it_is_silent_after_the_end() {
        let mut watchdog = watchdog(Some(60 * SECOND));
        watchdog.silence = SILENCE;
        let (stop, _receiver) = StopHandle::new();
        let start = watchdog.started;
        // It may block for as long as the run lasts.
        assert_eq!(watchdog.silent(start + 65 * SECOND, &stop), None);
        let over = start + 66 * SECOND;
        assert_eq!(watchdog.silent(over, &stop), None);
        watchdog.reported = vec![Some(start), Some(over + 5 * SECOND)];
        assert_eq!(watchdog.silent(over + SILENCE - SECOND, &stop), None);
        assert_eq!(watchdog.silent(over + SILENCE, &stop), Some(0));
        watchdog.reported[0] = None;
        assert_eq!(watchdog.silent(over + SILENCE, &stop), None);
        assert_eq!(watchdog.silent(over + SILENCE + 5 * SECOND, &stop), Some(1));
    }

    #[test]
    fn many_connections_take_time_to_close() {
        let of = |users| silence(&Plan::new("", Load::closed(users)));
        assert_eq!(of(50), Duration::from_millis(10_001));
        assert_eq!(of(1_000_000), 30 * SECOND);
    }

    #[test]
    fn a_stop_is_an_end_and_an_urgent_one_waits_for_a_second() {
        let mut watchdog = watchdog(None);
        let (stop, _receiver) = StopHandle::new();
        let start = watchdog.started;
        assert_eq!(watchdog.silent(start + 1_000 * SECOND, &stop), None);
        stop.stop(Stop::Drain);
        assert_eq!(watchdog.silent(start + 1_000 * SECOND, &stop), None);
        stop.stop(Stop::Now);
        let over = start + 1_001 * SECOND;
        assert_eq!(watchdog.silent(over, &stop), None);
        assert_eq!(watchdog.silent(over + 2 * SECOND, &stop), None);
        stop.insist();
        assert_eq!(watchdog.silent(over + 2 * SECOND, &stop), Some(0));
    }

    #[test]
    fn an_abandoned_worker_ends_and_its_late_messages_are_dropped() {
        let mut watchdog = watchdog(None);
        let (stop, _receiver) = StopHandle::new();
        let (sender, messages) = std::sync::mpsc::channel();
        let long_ago = Instant::now().checked_sub(100 * SECOND);
        (watchdog.over, watchdog.reported[0]) = (long_ago, long_ago);
        stop.insist();
        let clock = RunClock::not_started();
        let end = watchdog.receive(&messages, &stop, &clock);
        assert!(matches!(end, Some(Message::Ended(WorkerEnd { worker: 0, .. }))), "{end:?}");
        assert_eq!(watchdog.abandoned(), [0]);
        assert_eq!(watchdog.blocked_calls(), Vec::<String>::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                watchdog.activities[0].enter();
                let md4 = NativeCall::new("crypto", "md4");
                activity::resume(7, NativeCall::default());
                activity::during(md4, || {
                    assert_eq!(watchdog.blocked_calls(), ["crypto.md4 of user 7"]);
                });
            });
        });
        let late = |worker| Message::Ended(WorkerEnd { worker, scenarios: vec![], log_lost: 0 });
        sender.send(late(0)).unwrap();
        sender.send(late(1)).unwrap();
        let end = watchdog.receive(&messages, &stop, &clock);
        assert!(matches!(end, Some(Message::Ended(WorkerEnd { worker: 1, .. }))), "{end:?}");
        drop(sender);
        assert!(watchdog.receive(&messages, &stop, &clock).is_none());
    }
}
