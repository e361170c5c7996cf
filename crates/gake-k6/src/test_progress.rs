//! The progress of a test, for its progress lines.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use gake_core::clock::{Nanos, nanos};

use crate::duration::GoDuration;
use crate::options::{RunProgress, ScenarioState};
use crate::scenario::ScenarioFacts;
use crate::test::Test;

impl Test {
    /// The progress of the run; once it has ended, `over` is its duration and whether it was cut
    /// short.
    pub fn progress(&self, over: Option<(Duration, bool)>) -> RunProgress {
        let went = |duration: Duration| GoDuration::from_nanos(nanos(duration) as i64);
        let load = self.load_began.get().map(|began| nanos(began.elapsed()) as i64);
        let counters = &self.counters;
        let of_scenario = |(facts, start): &(ScenarioFacts, Nanos)| {
            let progress = &facts.progress;
            let (start, last) = (*start as i64, progress.last_end.load(Relaxed) as i64);
            let (done, active) = (progress.done(), progress.running.load(Relaxed));
            let has_all_done = facts.iterations.is_some_and(|all| done >= all);
            let elapsed = load.map(|load| load - start);
            let is_over = over.is_some()
                || has_all_done
                || (facts.length > 0 && active == 0 && elapsed > Some(facts.length as i64));
            // The time of a completed scenario stands still.
            let elapsed = if has_all_done { Some(last - start) } else { elapsed };
            let is_cut = over.is_some_and(|over| over.1) && !has_all_done;
            let elapsed = elapsed.map(GoDuration::from_nanos);
            (facts.name.clone(), ScenarioState { elapsed, active, done, is_over, is_cut })
        };
        let users = match over {
            Some(_) => 0,
            None => load.map_or(0, |load| self.active(load.max(0) as Nanos) as u64),
        };
        let has_begun = load.is_some() || over.is_some();
        RunProgress {
            elapsed: went(over.map_or_else(|| self.running_for(), |over| over.0)),
            users: (users, self.initialized()),
            iterations: (counters.completed(), counters.interrupted()),
            scenarios: self.scenarios.get().into_iter().flatten().map(of_scenario).collect(),
            is_set_up: !has_begun,
        }
    }
}
