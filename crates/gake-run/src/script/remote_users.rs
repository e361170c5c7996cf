//! Scripts with users in other processes.

use std::sync::atomic::Ordering::Relaxed;

use gake_core::clock::SECOND;
use gake_core::record::{Counts, Run, Tally};
use gake_k6::test::Test;

use super::scenario_users::{LostSlices, ScenarioUsers};
use crate::{RemoteWorkers, RunError, SecondUpdate};

/// The users of a run's scripts in other processes.
pub trait RemoteUsers {
    /// Prepares the users with the result of each `setup`.
    ///
    /// # Errors
    /// When one of the processes cannot; all are released then.
    fn assemble(&mut self, set_up: &[SetupResult]) -> Result<&mut dyn RemoteWorkers, RunError>;

    /// Whether this process must call `teardown` once the run is over here. Another process may
    /// have taken over the run, or may already have completed it.
    fn needs_teardown(&self) -> bool;

    /// Releases users that are ready or running, when the run cannot be made. Blocks until they
    /// have been notified.
    fn give_up(&mut self);

    /// The slices of users that are lost so far.
    fn lost(&self) -> LostSlices;
}

/// The result of `setup`.
#[derive(Debug, Clone, Default)]
pub struct SetupResult {
    /// The return value, as JSON.
    pub data: Option<String>,
    /// Its samples.
    pub recorded: Tally,
}

/// Updates the progress of users in other processes from their figures.
pub(super) struct RemoteProgress<'a> {
    pub(super) test: &'a Test,
    pub(super) scenario_users: &'a [ScenarioUsers],
    /// Indices of the scenarios in the plan.
    pub(super) scenarios: &'a [usize],
}

impl RemoteProgress<'_> {
    /// Updates progress after a second.
    pub(super) fn follow(&self, update: &SecondUpdate<'_>) {
        let second = update.second;
        for (users, number) in self.scenario_users.iter().zip(self.scenarios) {
            let tally = second.scenarios.get(*number).unwrap_or(&second.tally);
            // The mean during the second.
            let running = (tally.in_flight_ns + u128::from(SECOND) / 2) / u128::from(SECOND);
            users.progress.running.store(u64::try_from(running).unwrap_or(u64::MAX), Relaxed);
        }
        let so_far = update.so_far;
        let several: Vec<_> = so_far.scenarios().map(|(tally, _)| tally.counts).collect();
        self.note(&several, so_far.tally().counts);
    }

    /// Updates progress at the end of the run.
    pub(super) fn end(&self, run: &Run) {
        let several: Vec<_> = run.scenarios.iter().map(|one| one.tally.counts).collect();
        self.note(&several, run.tally.counts);
    }

    /// Takes the counts of each scenario; a run with one scenario has only the whole.
    fn note(&self, several: &[Counts], whole: Counts) {
        let (mut finished, mut interrupted) = (0, 0);
        for (users, number) in self.scenario_users.iter().zip(self.scenarios) {
            let counts = several.get(*number).unwrap_or(&whole);
            users.progress.begun.store(counts.started, Relaxed);
            finished += counts.finished();
            interrupted += counts.interrupted;
        }
        let users: usize = self.scenario_users.iter().map(ScenarioUsers::users).sum();
        self.test.counters.take_over(users as u64, finished, interrupted);
    }
}
