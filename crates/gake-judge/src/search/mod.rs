//! The search for the capacity: the highest load at which every objective holds.
//!
//! Ask and tell: [`Search::next`] returns the next trial, [`Search::tell`] takes its observation,
//! [`Search::result`] returns the result so far. Nothing here fires or reads a clock; trials may
//! run on a real or a simulated target.
//!
//! 1. **Ladder** (`ladder.rs`): a closed loop of 1, 2, 4 ... users limits itself and gives a rough
//!    capacity, the response time without load, and the growth of throughput.
//! 2. **Floor**: is the objective met at a quarter of that? If not, it is infeasible.
//! 3. **Bracket**: two levels between which the capacity lies.
//! 4. **Refine**: trials slightly below and above the best estimate, which is the posterior of all
//!    steps together (`posterior.rs`, `share.rs`, `level.rs`).
//! 5. **Guard** (`guard.rs`): when a level that should pass fails badly, checks whether the target
//!    is in a worse state.
//!
//! A target that gets much faster meanwhile was cold: the search starts again (`warm_up.rs`).
//!
//! It stops when the 95 % interval is as narrow as requested, or when the budget is spent.

mod grid;
mod guard;
mod ladder;
mod level;
mod observer;
mod posterior;
mod result;
mod share;
mod stages;
mod step;
mod trial;
mod warm_up;

use std::time::Duration;

pub use observer::Observer;
pub use result::{CapacityEstimate, CapacityResult, Hysteresis, SearchResult, StopReason};
pub use step::{Rung, SearchStep, StepOutcome};
pub use trial::{
    ClauseCounts, Dimension, Observation, Purpose, SearchAction, Trial, TrialLoad, TrialSecond,
};
pub use warm_up::WarmUp;

use crate::objective::{Clause, ClauseBound};
use guard::StateGuard;
use ladder::Ladder;
use posterior::CapacityPosterior;
use stages::SearchStage;

/// The bracket starts at this share of the target's scale.
const START_PART: f64 = 0.7;

/// Options of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    /// The kind of load to search.
    pub dimension: Dimension,
    /// Total time for trials and rests.
    pub budget: Duration,
    /// Half the width of the 95 % interval at which to stop, as a share: 0.05 for 5 %.
    pub precision: f64,
    /// The highest level to try; with a rate, it also excludes closed loops.
    pub highest: Option<f64>,
    /// Maximum number of users of the ladder.
    pub users_max: usize,
    /// The seed of the arrivals.
    pub seed: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            dimension: Dimension::Rate,
            budget: Duration::from_secs(120),
            precision: 0.05,
            highest: None,
            users_max: 1024,
            seed: 1,
        }
    }
}

/// The lengths of steps in seconds, known after the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
struct StepTiming {
    /// Of the floor and the bracket.
    short: f64,
    short_warmup: f64,
    /// Of the refinement.
    step: f64,
    warmup: f64,
    /// Of steps when bad episodes are rare.
    longest: f64,
}

impl Default for StepTiming {
    fn default() -> Self {
        Self { short: 4.0, short_warmup: 1.5, step: 8.0, warmup: 2.0, longest: 20.0 }
    }
}

/// The highest possible level, and the reason.
#[derive(Debug, Clone, PartialEq)]
struct Ceiling {
    level: f64,
    why: String,
}

impl Ceiling {
    /// The highest level that the options allow.
    fn allowed(options: &SearchOptions) -> Option<Self> {
        let why = |level| format!("{level} is the highest {} allowed", options.dimension.name());
        options.highest.map(|level| Self { level, why: why(level) })
    }
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    clauses: Vec<Clause>,
    options: SearchOptions,
    stage: SearchStage,
    guard: Option<StateGuard>,
    /// The trial whose observation is pending.
    pending: Option<Trial>,
    /// Seconds to rest before the next trial.
    rest: f64,
    spent: f64,
    number: u64,
    timing: StepTiming,
    ladder: Ladder,
    /// The approximate maximum of the target, in the unit of the levels.
    scale: f64,
    /// Mean response time without load, in seconds.
    base: f64,
    ceiling: Option<Ceiling>,
    steps: Vec<SearchStep>,
    pool: Option<CapacityPosterior>,
    /// Consecutive trials limited by the generator.
    limited: u32,
    /// Consecutive trials without a response.
    silent: u32,
    hysteresis: Option<Hysteresis>,
    warm_up: Option<WarmUp>,
}

const TRIAL_MAX: f64 = 600.0;
/// A step above this multiple of the bound leaves a backlog to drain.
const BACKLOG: f64 = 3.0;
/// Consecutive trials without a response after which the target counts as gone.
const SILENT_MAX: u32 = 3;

impl Search {
    /// A search for the highest load at which every clause holds; needs at least one clause.
    #[must_use]
    pub fn new(clauses: Vec<Clause>, options: SearchOptions) -> Self {
        let ladder = Ladder::new(&clauses, &options);
        let ceiling = Ceiling::allowed(&options);
        Self {
            clauses,
            options,
            stage: SearchStage::Ladder,
            guard: None,
            pending: None,
            rest: 0.0,
            spent: 0.0,
            number: 0,
            timing: StepTiming::default(),
            ladder,
            scale: 0.0,
            base: 0.0,
            ceiling,
            steps: Vec::new(),
            pool: None,
            limited: 0,
            silent: 0,
            hysteresis: None,
            warm_up: None,
        }
    }

    /// The next action; the same trial again while its observation is pending.
    #[allow(
        clippy::should_implement_trait,
        reason = "not an iterator: observations come in between"
    )]
    pub fn next(&mut self) -> SearchAction {
        if let Some(trial) = &self.pending {
            return SearchAction::Trial(trial.clone());
        }
        if matches!(self.stage, SearchStage::Over(_)) {
            return SearchAction::Done;
        }
        if self.rest > 0.0 {
            let rest = std::mem::take(&mut self.rest);
            self.spent += rest;
            return SearchAction::Rest(Duration::from_secs_f64(rest));
        }
        let trial = self.plan();
        let length = (trial.warmup + trial.duration).as_secs_f64();
        if self.spent + length > self.budget() {
            self.stage = SearchStage::Over(StopReason::Budget);
            return SearchAction::Done;
        }
        self.number += 1;
        self.pending = Some(trial.clone());
        SearchAction::Trial(trial)
    }

    /// Takes the observation of the pending trial.
    pub fn tell(&mut self, seen: Observation) {
        let Some(trial) = self.pending.take() else { return };
        self.spent += seen.took;
        let step = SearchStep::new(self.options.dimension, &self.clauses, trial, seen);
        self.rest_after(&step);
        self.steps.push(step.clone());
        if self.is_gone(&step) {
            self.stage = SearchStage::Over(StopReason::Gone);
            return;
        }
        if self.restarts_warm(&step) {
            return;
        }
        if step.trial.purpose == Purpose::Ladder {
            return self.climb(&step);
        }
        if self.guard.is_some() {
            return self.probed(&step);
        }
        if self.rescaled(&step) {
            return;
        }
        if self.is_limited(&step) {
            return;
        }
        if self.is_suspicious(&step) {
            self.guard = Some(StateGuard::default());
            return;
        }
        self.advance(&step);
    }

    /// Every step so far, in order.
    #[must_use]
    pub fn steps(&self) -> &[SearchStep] {
        &self.steps
    }

    /// The clauses, in the order of every step's ratios.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The mean response time without load, in seconds; 0 while unknown.
    #[must_use]
    pub fn unloaded(&self) -> f64 {
        self.base
    }

    /// Seconds of trials and rests so far.
    #[must_use]
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Ends the search with the evidence so far.
    pub fn interrupt(&mut self) {
        self.pending = None;
        if !matches!(self.stage, SearchStage::Over(_)) {
            self.stage = SearchStage::Over(StopReason::Interrupted);
        }
    }

    fn budget(&self) -> f64 {
        self.options.budget.as_secs_f64()
    }

    fn rest_after(&mut self, step: &SearchStep) {
        if step.seen.unfinished > 0 && self.scale > 0.0 && self.options.dimension.is_rate() {
            let drain = step.seen.unfinished as f64 / self.scale;
            self.rest = self.rest.max(drain.clamp(1.0, 60.0));
        } else if step.worst() > BACKLOG {
            self.rest = self.rest.max((4.0 * self.base).clamp(0.2, 10.0));
        }
    }

    /// Whether several trials in a row had no response.
    fn is_gone(&mut self, step: &SearchStep) -> bool {
        self.silent = if step.seen.ok == 0 && step.seen.errors > 0 { self.silent + 1 } else { 0 };
        if self.silent > 0 {
            self.rest = self.rest.max(5.0 * f64::from(self.silent));
        }
        self.silent >= SILENT_MAX
    }

    /// Whether the generator was the limit, so that the step does not count; after two in a row
    /// their level becomes the ceiling.
    fn is_limited(&mut self, step: &SearchStep) -> bool {
        let asked = step.trial.load.level();
        let short = step.seen.due == 0 || step.level() < 0.95 * asked;
        let why = match &step.seen.limited {
            Some(why) if short || step.outcome == StepOutcome::Limited => why.clone(),
            _ => {
                self.limited = 0;
                return false;
            }
        };
        self.limited += 1;
        if self.limited >= 2 {
            let passed = self.highest_pass().unwrap_or(0.0);
            let level = match step.is_sustained() {
                false => step.ended_rate(),
                true if short && !step.missed() => step.level(),
                true => 0.9 * asked,
            };
            self.ceiling = Some(Ceiling { level: level.max(passed), why });
            self.limited = 0;
            // A load below the floor, or far below the ladder's, is useless.
            if matches!(self.stage, SearchStage::Floor(_)) || level < 0.1 * self.scale {
                self.stage = SearchStage::Over(StopReason::Generator);
            } else if let SearchStage::Bracket(bracket) = &mut self.stage {
                bracket.level = bracket.level.min(level.max(passed));
            }
        }
        step.outcome == StepOutcome::Limited || step.missed() || step.seen.due == 0
    }

    fn highest_pass(&self) -> Option<f64> {
        self.counted().filter(|step| !step.missed()).map(SearchStep::level).max_by(f64::total_cmp)
    }

    /// The steps that are evidence on the capacity.
    fn counted(&self) -> impl Iterator<Item = &SearchStep> {
        self.steps.iter().filter(|step| {
            matches!(step.trial.purpose, Purpose::Floor | Purpose::Bracket | Purpose::Refine)
                && step.outcome.is_evidence()
                && step.seen.due > 0
        })
    }

    fn trial(&self, purpose: Purpose, level: f64, warmup: f64, duration: f64) -> Trial {
        let ceiling = self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.level);
        let load = self.options.dimension.load(level.min(ceiling));
        let enough = self.clauses.iter().map(|clause| match clause.bound {
            // Only an open loop knows which requests are due.
            ClauseBound::Share(allowed) if matches!(load, TrialLoad::Rate(_)) => {
                share::cap(allowed) * load.level() * duration
            }
            _ => f64::INFINITY,
        });
        Trial {
            number: self.number,
            purpose,
            load,
            warmup: seconds(warmup),
            duration: seconds(duration),
            seed: self.options.seed.wrapping_add(self.number),
            enough: enough.collect(),
        }
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, TRIAL_MAX))
}
