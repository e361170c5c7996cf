//! The search for the capacity: the highest load at which every objective holds.
//!
//! Ask and tell: [`Search::next`] says which trial to run, [`Search::tell`] takes what it
//! measured, [`Search::answer`] is the answer so far at any time. Nothing here fires or reads a
//! clock; trials may be run on a real target or on a simulated one.
//!
//! 1. **Ladder** (`ladder.rs`): a closed loop of 1, 2, 4 ... users limits itself and shows roughly
//!    how much the target can do, how fast it is without load, and how throughput grows.
//! 2. **Floor**: is the objective met at a quarter of that? If not, no rate will do.
//! 3. **Bracket**: two levels between which the capacity lies.
//! 4. **Refine**: trials a little under and a little over the best estimate, which is the
//!    posterior of all steps together (`pool.rs`, `share.rs`, `level.rs`).
//! 5. **Guard** (`guard.rs`): a level that should pass and fails badly asks whether the target is
//!    in another state.
//!
//! It stops when the 95 % interval is as narrow as asked, or when the budget is spent.

mod answer;
mod grid;
mod guard;
mod ladder;
mod level;
mod observe;
mod pool;
mod share;
mod stages;
mod step;
mod trial;

use std::time::Duration;

pub use answer::{CapacityAnswer, Estimate, Found, Hysteresis, StopReason};
pub use observe::Observer;
pub use step::{Rung, Step, StepOutcome};
pub use trial::{Ask, Dimension, Observation, Purpose, Seen, Trial, TrialLoad, TrialSecond};

use crate::objective::{Bound, Clause};
use guard::Guard;
use ladder::Ladder;
use pool::Pool;
use stages::Stage;

/// The bracket starts at this part of what the target can do.
const START_PART: f64 = 0.7;

/// The budget and bounds of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    /// The kind of load that is searched.
    pub dimension: Dimension,
    /// Time of trials and rests.
    pub budget: Duration,
    /// Half the width of the 95 % interval at which it may stop: 0.05 for 5 %.
    pub precision: f64,
    /// Never ask for more than this level; with a rate, no closed loop is asked for either.
    pub highest: Option<f64>,
    /// Maximum number of users of the ladder.
    pub users_max: usize,
    /// The seed of the trials' arrivals.
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

/// How long steps last, in seconds; known when the ladder is done.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timing {
    /// Of the floor and the bracket.
    short: f64,
    short_warmup: f64,
    /// Of the refinement.
    step: f64,
    warmup: f64,
    /// Of steps in which bad episodes are rare.
    longest: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Self { short: 4.0, short_warmup: 1.5, step: 8.0, warmup: 2.0, longest: 20.0 }
    }
}

/// A level that cannot be gone beyond, and why.
#[derive(Debug, Clone, PartialEq)]
struct Ceiling {
    level: f64,
    why: String,
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    clauses: Vec<Clause>,
    options: SearchOptions,
    stage: Stage,
    guard: Option<Guard>,
    /// The trial asked for and not told yet.
    asked: Option<Trial>,
    /// Seconds to rest before the next trial.
    rest: f64,
    /// Seconds spent.
    spent: f64,
    number: u64,
    timing: Timing,
    ladder: Ladder,
    /// About the most that the target can do, in the unit of the levels.
    scale: f64,
    /// Mean response time without load, in seconds.
    base: f64,
    ceiling: Option<Ceiling>,
    steps: Vec<Step>,
    pool: Option<Pool>,
    /// Trials in a row that the generator limited, and in which nothing was answered.
    limited: u32,
    silent: u32,
    hysteresis: Option<Hysteresis>,
}

/// A trial is never asked to last longer than this, in seconds.
const TRIAL_MAX: f64 = 600.0;
/// A step over this multiple of what is allowed leaves a backlog to be drained.
const BACKLOG: f64 = 3.0;
/// After this many trials without an answer the target is gone.
const SILENT_MAX: u32 = 3;

impl Search {
    /// A search for the highest load at which every clause holds; at least one clause is required.
    #[must_use]
    pub fn new(clauses: Vec<Clause>, options: SearchOptions) -> Self {
        let ladder = Ladder::new(&clauses, &options);
        let ceiling = options.highest.map(|level| Ceiling {
            level,
            why: format!("{level} is the highest {} allowed", options.dimension.name()),
        });
        Self {
            clauses,
            options,
            stage: Stage::Ladder,
            guard: None,
            asked: None,
            rest: 0.0,
            spent: 0.0,
            number: 0,
            timing: Timing::default(),
            ladder,
            scale: 0.0,
            base: 0.0,
            ceiling,
            steps: Vec::new(),
            pool: None,
            limited: 0,
            silent: 0,
            hysteresis: None,
        }
    }

    /// What to do next. Asking again for a trial that was not told gives the same trial.
    #[allow(clippy::should_implement_trait, reason = "it is no iterator: answers come in between")]
    pub fn next(&mut self) -> Ask {
        if let Some(trial) = &self.asked {
            return Ask::Trial(trial.clone());
        }
        if matches!(self.stage, Stage::Over(_)) {
            return Ask::Done;
        }
        if self.rest > 0.0 {
            let rest = std::mem::take(&mut self.rest);
            self.spent += rest;
            return Ask::Rest(Duration::from_secs_f64(rest));
        }
        let trial = self.plan();
        let length = (trial.warmup + trial.duration).as_secs_f64();
        if self.spent + length > self.budget() {
            self.stage = Stage::Over(StopReason::Budget);
            return Ask::Done;
        }
        self.number += 1;
        self.asked = Some(trial.clone());
        Ask::Trial(trial)
    }

    /// Takes in the observation of the trial asked for.
    pub fn tell(&mut self, seen: Observation) {
        let Some(trial) = self.asked.take() else { return };
        self.spent += seen.took;
        let step = Step::new(self.options.dimension, &self.clauses, trial, seen);
        self.rest_after(&step);
        self.steps.push(step.clone());
        if self.is_gone(&step) {
            self.stage = Stage::Over(StopReason::Gone);
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
            self.guard = Some(Guard::default());
            return;
        }
        self.advance(&step);
    }

    /// Every step so far, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The clauses, in the order of every step's ratios.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// The mean response time without load, in seconds; 0 while it is not known.
    #[must_use]
    pub fn unloaded(&self) -> f64 {
        self.base
    }

    /// Seconds of trials and rests so far.
    #[must_use]
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Ends the search; the answer is what is known now.
    pub fn interrupt(&mut self) {
        self.asked = None;
        if !matches!(self.stage, Stage::Over(_)) {
            self.stage = Stage::Over(StopReason::Interrupted);
        }
    }

    fn budget(&self) -> f64 {
        self.options.budget.as_secs_f64()
    }

    /// What a backlog needs to be gone, before anything else is measured.
    fn rest_after(&mut self, step: &Step) {
        if step.seen.unfinished > 0 && self.scale > 0.0 && self.options.dimension.is_rate() {
            let drain = step.seen.unfinished as f64 / self.scale;
            self.rest = self.rest.max(drain.clamp(1.0, 60.0));
        } else if step.worst() > BACKLOG {
            self.rest = self.rest.max((4.0 * self.base).clamp(0.2, 10.0));
        }
    }

    /// Whether nothing has been answered for some trials.
    fn is_gone(&mut self, step: &Step) -> bool {
        self.silent = if step.seen.ok == 0 && step.seen.errors > 0 { self.silent + 1 } else { 0 };
        if self.silent > 0 {
            self.rest = self.rest.max(5.0 * f64::from(self.silent));
        }
        self.silent >= SILENT_MAX
    }

    /// Whether the generator was the limit: then the step does not count, and twice at one level
    /// is the level beyond which nothing can be said.
    fn is_limited(&mut self, step: &Step) -> bool {
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
            // Less than the floor, or a small part of what the ladder saw, is not a load.
            if matches!(self.stage, Stage::Floor(_)) || level < 0.1 * self.scale {
                self.stage = Stage::Over(StopReason::Generator);
            } else if let Stage::Bracket(bracket) = &mut self.stage {
                bracket.level = bracket.level.min(level.max(passed));
            }
        }
        step.outcome == StepOutcome::Limited || step.missed() || step.seen.due == 0
    }

    /// The highest level that passed.
    fn highest_pass(&self) -> Option<f64> {
        self.counted().filter(|step| !step.missed()).map(Step::level).max_by(f64::total_cmp)
    }

    /// The steps that say something about the capacity.
    fn counted(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| {
            matches!(step.trial.purpose, Purpose::Floor | Purpose::Bracket | Purpose::Refine)
                && !matches!(step.outcome, StepOutcome::Limited | StepOutcome::Contaminated)
                && step.seen.due > 0
        })
    }

    /// A trial at `level`.
    fn trial(&self, purpose: Purpose, level: f64, warmup: f64, duration: f64) -> Trial {
        let ceiling = self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.level);
        let load = self.options.dimension.load(level.min(ceiling));
        let enough = self.clauses.iter().map(|clause| match clause.bound {
            // Which of the requests are due is known of an open loop alone.
            Bound::Share(allowed) if matches!(load, TrialLoad::Rate(_)) => {
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

/// A bounded duration.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.clamp(0.0, TRIAL_MAX))
}
