//! How many users and iterations a test has, and how far it is.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gake_core::clock::{Nanos, nanos};

use crate::duration::GoDuration;
use crate::options::{RunProgress, ScenarioState};
use crate::test::Test;
use crate::user::vu::ScenarioFacts;

/// How many users and iterations there are, over all threads. Scripts may ask; the record has its
/// own counts.
#[derive(Debug, Default)]
pub struct Levels {
    iterating: AtomicU64,
    live: AtomicU64,
    ready: AtomicU64,
    completed: AtomicU64,
    interrupted: AtomicU64,
}

impl Levels {
    /// Users that run an iteration now.
    pub fn iterating(&self) -> u64 {
        self.iterating.load(Relaxed)
    }

    /// Users that have not ended.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(Relaxed)
    }

    /// Counts a user that begins.
    pub(crate) fn join(&self) {
        self.live.fetch_add(1, Relaxed);
    }

    /// Counts a user that has ended.
    pub(crate) fn leave(&self) {
        self.live.fetch_sub(1, Relaxed);
    }

    /// Completed iterations.
    pub fn completed(&self) -> u64 {
        self.completed.load(Relaxed)
    }

    /// Iterations that were cut short.
    pub fn interrupted(&self) -> u64 {
        self.interrupted.load(Relaxed)
    }

    /// Users that were made for iterations.
    pub fn ready(&self) -> u64 {
        self.ready.load(Relaxed)
    }

    /// Counts a user that was made for iterations.
    pub fn count_ready(&self) {
        self.ready.fetch_add(1, Relaxed);
    }

    /// Takes over the levels of users in other processes: how many were made, and how many
    /// iterations they completed and had cut short.
    pub fn take_over(&self, ready: u64, completed: u64, interrupted: u64) {
        self.ready.store(ready, Relaxed);
        self.completed.store(completed, Relaxed);
        self.interrupted.store(interrupted, Relaxed);
    }

    /// Counts an iteration that begins.
    pub fn begin(&self) {
        self.iterating.fetch_add(1, Relaxed);
    }

    /// Counts an iteration that has ended.
    pub fn end(&self, interrupted: bool) {
        self.iterating.fetch_sub(1, Relaxed);
        let ended = if interrupted { &self.interrupted } else { &self.completed };
        ended.fetch_add(1, Relaxed);
    }
}

impl Test {
    /// How far its run is; `over` is how long the run was, and whether something ended it.
    pub fn progress(&self, over: Option<(Duration, bool)>) -> RunProgress {
        let went = |duration: Duration| GoDuration::from_nanos(nanos(duration) as i64);
        let load = self.load_began.get().map(|began| nanos(began.elapsed()) as i64);
        let levels = &self.levels;
        let of_scenario = |(facts, start): &(ScenarioFacts, Nanos)| {
            let progress = &facts.progress;
            let (start, last) = (*start as i64, progress.last_end.load(Relaxed) as i64);
            let (done, active) = (progress.done(), progress.running.load(Relaxed));
            let has_all_done = facts.iterations.is_some_and(|all| done >= all);
            let elapsed = load.map(|load| load - start);
            let is_over = over.is_some()
                || has_all_done
                || (facts.length > 0 && active == 0 && elapsed > Some(facts.length as i64));
            // One that is over stands still.
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
            iterations: (levels.completed(), levels.interrupted()),
            scenarios: self.scenarios.get().into_iter().flatten().map(of_scenario).collect(),
            is_set_up: !has_begun,
        }
    }
}
