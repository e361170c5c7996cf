//! A script whose users are in other processes.

use std::sync::atomic::Ordering::Relaxed;

use gake_core::clock::SECOND;
use gake_core::record::{Counts, Run, Tally};
use gake_k6::test::Test;

use super::crew::{Crew, LostParts};
use crate::{Moment, RemoteWorkers, RunError};

/// Users of a script in other processes.
pub trait RemoteUsers {
    /// Makes them ready; `set_up` is what `setup` gave.
    ///
    /// # Errors
    /// When one of the processes cannot; none of them goes on then.
    fn assemble(&mut self, set_up: &SetUp) -> Result<&mut dyn RemoteWorkers, RunError>;

    /// Whether `teardown` is this process's to call, once the run is over here: another one may go
    /// on with the run, or may have had all of it.
    fn needs_teardown(&self) -> bool;

    /// Ends those that are ready or run already, when the run cannot be made. Blocks until they have
    /// been told.
    fn give_up(&mut self);

    /// The parts of the users that are lost by now.
    fn lost(&self) -> LostParts;
}

/// What `setup` gave.
#[derive(Debug, Clone, Default)]
pub struct SetUp {
    /// What it returned, as JSON.
    pub data: Option<String>,
    /// What it recorded.
    pub recorded: Tally,
}

/// What the users of other processes have done so far, by the figures that came of them.
pub(super) struct Followed<'a> {
    pub(super) test: &'a Test,
    pub(super) crews: &'a [Crew],
}

impl Followed<'_> {
    /// Takes over the counts of the run so far.
    pub(super) fn follow(&self, moment: &Moment<'_>) {
        let second = moment.second;
        for (crew, tally) in self.crews.iter().zip(each(&second.scenarios, &second.tally)) {
            // The mean of the second.
            let running = (tally.in_flight_ns + u128::from(SECOND) / 2) / u128::from(SECOND);
            crew.progress.running.store(u64::try_from(running).unwrap_or(u64::MAX), Relaxed);
        }
        let so_far = moment.so_far;
        let several: Vec<_> = so_far.scenarios().map(|(tally, _)| tally.counts).collect();
        self.note(&several, so_far.tally().counts);
    }

    /// Takes over the counts of the whole run.
    pub(super) fn end(&self, run: &Run) {
        let several: Vec<_> = run.scenarios.iter().map(|one| one.tally.counts).collect();
        self.note(&several, run.tally.counts);
    }

    fn note(&self, several: &[Counts], whole: Counts) {
        for (crew, counts) in self.crews.iter().zip(each(several, &whole)) {
            crew.progress.begun.store(counts.started, Relaxed);
        }
        let users: usize = self.crews.iter().map(Crew::users).sum();
        self.test.counters.take_over(users as u64, whole.finished(), whole.interrupted);
    }
}

/// What there is of each scenario: a run of one has the whole alone.
fn each<'a, T>(several: &'a [T], whole: &'a T) -> &'a [T] {
    if several.is_empty() { std::slice::from_ref(whole) } else { several }
}
