//! The capacity of a target, found by trials: gake-judge says which trial comes next, this runs it.
//!
//! ```no_run
//! use gake_run::search::{CapacityOptions, capacity};
//! use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
//!
//! let url = RequestSource::Url("http://localhost:8080/".to_owned());
//! let mut spec = RunSpec::new(ScenarioSpec::new(url, Load::closed(1)));
//! spec.objectives = vec!["p99<50ms".to_owned()];
//! let report = capacity(&spec, &CapacityOptions::default(), |_| ())?;
//! println!("{:?} after {} steps", report.answer.found, report.steps.len());
//! # Ok::<(), gake_run::RunError>(())
//! ```
//!
//! The spec says what is sent, over which connections, and under which objectives; each trial has a
//! load of its own in place of the spec's. A [`TrialRunner`] runs the trials elsewhere than in this
//! process, or writes files of them; [`Trials`] takes one.

mod backlog;
mod iterations;
mod objectives;
mod options;
mod reach;
mod runner;
mod trial_spec;
mod trials;

use std::thread::sleep;
use std::time::Duration;

use gake_engine::JoinedSecond;
use gake_judge::Clause;
use gake_judge::overload::{self, Overload, OverloadStep};
use gake_judge::search::{Purpose, Search, SearchAction, SearchStep, StepOutcome, Trial};

pub use gake_judge::search::{
    CapacityEstimate, CapacityResult, Dimension, SearchOptions, SearchResult,
};
pub use gake_report::find::FindReport;
pub use options::{CapacityOptions, connections_max};
pub use runner::{EachSecond, LocalTrials, PreparedTrial, TrialRunner};
pub use trials::Trials;

use crate::spec::RunSpec;
use crate::{Inputs, RunError, unix_now};

/// During a rest, an interrupt is looked for this often.
const LOOK: Duration = Duration::from_millis(50);

/// What happens during a search.
#[derive(Debug)]
pub enum SearchEvent<'a> {
    /// The first trial comes next; these are the objectives.
    Begin(&'a [Clause]),
    /// One second of a trial has passed.
    Second(&'a Trial, &'a JoinedSecond),
    /// The target rests for this time.
    Rest(Duration),
    /// A step is complete.
    Step(&'a SearchStep, &'a Search),
    /// The load goes beyond the capacity and back next, in these steps.
    Map(&'a [OverloadStep]),
}

/// Finds the highest load under which the target of `spec` meets its objectives; without any, those
/// that suit the target. Blocks.
///
/// # Errors
/// When the spec is not valid, an objective cannot be searched for, nothing answers, or a trial
/// cannot be run.
pub fn capacity(
    spec: &RunSpec,
    options: &CapacityOptions,
    events: impl FnMut(SearchEvent<'_>) + Send,
) -> Result<FindReport, RunError> {
    let mut runner = LocalTrials;
    Trials::new(spec, options, Inputs::default(), &mut runner)?.capacity(events)
}

impl Trials<'_> {
    /// Runs every trial that a search asks for, and gives its answer with the evidence.
    ///
    /// # Errors
    /// When an objective cannot be searched for, nothing answers, or a trial cannot be run.
    pub fn capacity(
        mut self,
        mut events: impl FnMut(SearchEvent<'_>) + Send,
    ) -> Result<FindReport, RunError> {
        let started_unix_ns = unix_now();
        let clauses = self.clauses()?;
        events(SearchEvent::Begin(&clauses));
        self.make_room_for(&clauses);
        let options = self.options;
        let users_max = options.search.users_max.min(options.connections_max / 2);
        let mut search =
            Search::new(clauses, SearchOptions { users_max, ..options.search.clone() });
        self.follow(&mut search, &mut events)?;
        let answer = search.result();
        let map = if options.maps { self.map(&answer, &mut events)? } else { None };
        let target = self.loaded().name().to_owned();
        let (causes, overloaded) = self.causes();
        Ok(FindReport {
            target,
            started_unix_ns,
            dimension: options.search.dimension,
            arrivals: options.arrivals,
            budget: options.search.budget,
            precision: options.search.precision,
            clauses: search.clauses().to_vec(),
            steps: search.steps().to_vec(),
            answer,
            map,
            causes,
            overloaded,
            bodies: self.bodies(),
        })
    }

    fn follow(
        &mut self,
        search: &mut Search,
        events: &mut (impl FnMut(SearchEvent<'_>) + Send),
    ) -> Result<(), RunError> {
        while !self.is_interrupted() {
            match search.next() {
                SearchAction::Done => return Ok(()),
                SearchAction::Rest(rest) => {
                    events(SearchEvent::Rest(rest));
                    self.rest(rest);
                }
                SearchAction::Trial(trial) => {
                    let seen = self.observe(&trial, search.clauses(), |second| {
                        events(SearchEvent::Second(&trial, second));
                    })?;
                    if self.is_interrupted() {
                        break;
                    }
                    search.tell(seen);
                    self.learn(search.unloaded());
                    let Some(step) = search.steps().last() else { continue };
                    let climbing = step.trial.purpose == Purpose::Ladder;
                    if step.outcome != StepOutcome::Limited && (climbing || step.missed()) {
                        self.blame();
                    }
                    events(SearchEvent::Step(step, search));
                }
            }
        }
        search.interrupt();
        Ok(())
    }

    /// Goes beyond the capacity and back, when there is one to go beyond.
    fn map(
        &mut self,
        answer: &SearchResult,
        events: &mut (impl FnMut(SearchEvent<'_>) + Send),
    ) -> Result<Option<Overload>, RunError> {
        let CapacityResult::Capacity(estimate) = &answer.found else { return Ok(None) };
        let SearchOptions { dimension, highest, .. } = self.options.search;
        if self.is_interrupted() || !dimension.is_rate() {
            return Ok(None);
        }
        let steps = overload::steps(estimate.capacity, highest);
        events(SearchEvent::Map(&steps));
        let seconds = self.climb(&steps, answer.binding.as_slice())?;
        Ok((!self.is_interrupted()).then(|| overload::judge(&steps, &seconds)))
    }

    fn rest(&self, rest: Duration) {
        let mut left = rest;
        while !left.is_zero() && !self.is_interrupted() {
            let part = left.min(LOOK);
            sleep(part);
            left -= part;
        }
    }
}
