//! The capacity of a target, found by trials: gake-judge chooses the next trial, and this module
//! runs it.
//!
//! ```no_run
//! use gake_run::search::{CapacityOptions, capacity};
//! use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
//!
//! let url = RequestSource::Url("http://localhost:8080/".to_owned());
//! let mut spec = RunSpec::new(ScenarioSpec::new(url, Load::closed(1)));
//! spec.objectives = vec!["p99<50ms".to_owned()];
//! let report = capacity(&spec, &CapacityOptions::default(), |_| ())?;
//! println!("{:?} after {} steps", report.result.found, report.steps.len());
//! # Ok::<(), gake_run::RunError>(())
//! ```
//!
//! The spec describes requests, connections and objectives; each trial has its own load in place of
//! the spec's. A [`TrialRunner`] passed to [`Trials`] can run the trials elsewhere or save them.

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
pub use runner::{LocalTrials, PreparedTrial, TrialRunner};
pub use trials::Trials;

use crate::spec::RunSpec;
use crate::{Inputs, RunError, unix_now};

/// Polling interval for an interrupt during a rest.
const LOOK: Duration = Duration::from_millis(50);

/// An event of a search.
#[derive(Debug)]
pub enum SearchEvent<'a> {
    /// The search starts, with these objectives.
    Begin(&'a [Clause]),
    /// A second of a trial.
    Second(&'a Trial, &'a JoinedSecond),
    /// A pause of this length.
    Rest(Duration),
    /// A step is complete.
    Step(&'a SearchStep, &'a Search),
    /// The load goes beyond the capacity and back, in these steps.
    Map(&'a [OverloadStep]),
}

/// Finds the highest load under which the target of `spec` meets its objectives, or default ones if
/// it has none. Blocks.
///
/// # Errors
/// When the spec is not valid, an objective is not suitable for a search, the target does not
/// respond, or a trial cannot be run.
pub fn capacity(
    spec: &RunSpec,
    options: &CapacityOptions,
    events: impl FnMut(SearchEvent<'_>) + Send,
) -> Result<FindReport, RunError> {
    let mut runner = LocalTrials;
    Trials::new(spec, options, Inputs::default(), &mut runner)?.capacity(events)
}

impl Trials<'_> {
    /// Runs the trials of a search, and returns its result with the evidence.
    ///
    /// # Errors
    /// When an objective is not suitable for a search, the target does not respond, or a trial
    /// cannot be run.
    pub fn capacity(
        mut self,
        mut events: impl FnMut(SearchEvent<'_>) + Send,
    ) -> Result<FindReport, RunError> {
        let started_unix_ns = unix_now();
        let clauses = self.clauses()?;
        events(SearchEvent::Begin(&clauses));
        self.set_latency_limit(&clauses);
        let options = self.options;
        let users_max = options.search.users_max.min(options.connections_max / 2);
        let mut search =
            Search::new(clauses, SearchOptions { users_max, ..options.search.clone() });
        self.follow(&mut search, &mut events)?;
        let result = search.result();
        let map = if options.maps { self.map(&result, &mut events)? } else { None };
        let target = self.loaded().name().to_owned();
        let (causes, overloaded) = self.causes(result.pool());
        Ok(FindReport {
            target,
            started_unix_ns,
            dimension: options.search.dimension,
            arrivals: options.arrivals,
            budget: options.search.budget,
            precision: options.search.precision,
            clauses: search.clauses().to_vec(),
            steps: search.steps().to_vec(),
            result,
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
                    self.set_unloaded(search.unloaded());
                    let Some(step) = search.steps().last() else { continue };
                    let climbing = step.trial.purpose == Purpose::Ladder;
                    if step.outcome != StepOutcome::Limited && (climbing || step.missed()) {
                        self.record_cause();
                    }
                    events(SearchEvent::Step(step, search));
                }
            }
        }
        search.interrupt();
        Ok(())
    }

    /// Goes beyond the capacity and back, if it was found.
    fn map(
        &mut self,
        result: &SearchResult,
        events: &mut (impl FnMut(SearchEvent<'_>) + Send),
    ) -> Result<Option<Overload>, RunError> {
        let CapacityResult::Capacity(estimate) = &result.found else { return Ok(None) };
        let SearchOptions { dimension, highest, .. } = self.options.search;
        if self.is_interrupted() || !dimension.is_rate() {
            return Ok(None);
        }
        let steps = overload::steps(estimate.capacity, highest);
        events(SearchEvent::Map(&steps));
        let seconds = self.climb(&steps, result.binding.as_slice())?;
        Ok((!self.is_interrupted()).then(|| overload::judge(&steps, &seconds)))
    }

    fn rest(&self, rest: Duration) {
        let mut left = rest;
        while !left.is_zero() && !self.is_interrupted() {
            let nap = left.min(LOOK);
            sleep(nap);
            left -= nap;
        }
    }
}
