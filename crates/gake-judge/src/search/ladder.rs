//! The ladder: a closed loop of 1, 2, 4, 8 ... users, until throughput stops growing. For targets
//! with responses of seconds the rungs are further apart, to fit the budget.
//!
//! It limits itself, so it is safe on an unknown target. It yields an upper bound of the
//! throughput, the response time without load, and the points of the scalability fit. When a
//! highest rate is set, an open loop of doubling rates replaces it.

use std::mem::discriminant;
use std::time::Duration;

use super::step::Rung;
use super::trial::{Dimension, Purpose, Trial, TrialLoad};
use super::{START_PART, Search, SearchOptions, SearchStage, SearchStep, StepTiming, seconds};
use crate::objective::{Clause, ClauseBound};
use gake_core::clock::SECOND;

/// Throughput has stopped growing below this factor between rungs.
const GROWTH: f64 = 1.08;

/// An open loop keeps up when it completes at least this share of its arrivals in time.
const KEPT_UP: f64 = 0.9;
/// A higher share of errors ends the ladder.
const ERRORS_MAX: f64 = 0.3;
/// A response longer than this multiple of the objective's limit ends the ladder.
const RESPONSE_MAX: f64 = 3.0;
/// The first rung of an open ladder, as a share of the highest rate allowed: 2⁻⁶.
const FIRST_PART: f64 = 1.0 / 64.0;
/// Its minimum rate per second, so that a rung has requests.
const FIRST_MIN: f64 = 4.0;
/// The share of each rung that is warm-up.
const WARMUP_PART: f64 = 0.25;
/// The share of the budget for the ladder.
const BUDGET_PART: f64 = 0.35;
/// A rung lasts this multiple of the response time without load ...
const RESPONSES: f64 = 8.0;
/// ... or, in a small budget, this multiple.
const RESPONSES_LEAST: f64 = 3.0;
/// The ratio of users between rungs: default and maximum.
const FACTOR: (usize, usize) = (2, 16);
/// For responses longer than this share of a rung, completions are too few: Little's law gives the
/// throughput of a closed loop from its users and response time.
const LONG_PART: f64 = 0.25;

/// Multiples of the latency limit: length of refinement steps, their warm-up, and that of the
/// bracket. Chosen so that the interval for the simulated M/M/2 queue has its nominal coverage.
const QUEUE_STEP: f64 = 50.0;
const QUEUE_WARMUP: f64 = 15.0;
const QUEUE_SHORT_WARMUP: f64 = 6.0;

/// A floor that takes more than this share of the budget is skipped.
const FLOOR_PART_MAX: f64 = 0.15;

/// Typical numbers of rungs, of steps of floor and bracket, and of refinement steps.
const RUNGS: f64 = 8.0;
const SHORT_STEPS: f64 = 5.0;
const STEPS: f64 = 8.0;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    load: TrialLoad,
    /// Seconds of a rung, including the warm-up.
    length: f64,
    /// The share of a rung that is warm-up.
    warmup_part: f64,
    /// The ratio of users between rungs.
    factor: usize,
    budget: f64,
    /// Seconds of the search at which the ladder ends.
    end: f64,
    /// The latency limit, in seconds.
    limit: Option<f64>,
    highest: f64,
    pub(super) rungs: Vec<Rung>,
    pub(super) best: f64,
    /// Whether throughput still grew on the last rung.
    pub(super) grows: bool,
    /// The highest load at which every clause held.
    pub(super) passed: f64,
}

impl Ladder {
    pub(super) fn new(clauses: &[Clause], options: &SearchOptions) -> Self {
        let limit = clauses.iter().filter_map(Clause::limit).min();
        let (load, highest) = match (options.dimension, options.highest) {
            (
                Dimension::Rate | Dimension::ConnectRate | Dimension::TlsHandshakes,
                Some(highest),
            ) => (TrialLoad::Rate((highest * FIRST_PART).max(FIRST_MIN).min(highest)), highest),
            (Dimension::Users | Dimension::Streams, Some(highest)) => {
                (TrialLoad::Users(1), highest)
            }
            // No ladder of connections: one user shows how fast the target is.
            (Dimension::Connections, _) => (TrialLoad::Users(1), 1.0),
            (_, None) => (TrialLoad::Users(1), options.users_max as f64),
        };
        let limit = limit.map(|limit| limit as f64 / SECOND as f64);
        let budget = BUDGET_PART * options.budget.as_secs_f64();
        Self {
            load,
            length: 1.0,
            warmup_part: WARMUP_PART,
            factor: FACTOR.0,
            budget,
            end: budget,
            limit,
            highest,
            rungs: Vec::new(),
            best: 0.0,
            grows: true,
            passed: 0.0,
        }
    }

    /// The same ladder, begun after these seconds of the search.
    pub(super) fn after(mut self, spent: f64) -> Self {
        self.budget -= BUDGET_PART * spent;
        self.end = spent + self.budget;
        self
    }

    /// The highest load at which every clause held, if it is a level of `dimension`.
    pub(super) fn passed_level(&self, dimension: Dimension) -> Option<f64> {
        let is_level = discriminant(&self.load) == discriminant(&dimension.load(self.passed));
        (is_level && self.passed > 0.0).then_some(self.passed)
    }

    /// The latency limit, in seconds.
    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    pub(super) fn trial(&self, number: u64, seed: u64) -> Trial {
        Trial {
            number,
            purpose: Purpose::Ladder,
            load: self.load,
            warmup: seconds(self.warmup_part * self.length),
            duration: seconds((1.0 - self.warmup_part) * self.length),
            seed,
            enough: Vec::new(),
        }
    }

    /// Adds a rung; true when it was the last.
    fn climb(&mut self, step: &SearchStep) -> bool {
        let seen = &step.seen;
        // If requests are longer than the rung, repeat it without warm-up, then longer.
        if self.rungs.is_empty() && seen.ok == 0 && seen.errors == seen.unfinished {
            if self.warmup_part > 0.0 {
                self.warmup_part = 0.0;
                return false;
            }
            if self.length < 120.0 {
                self.length *= 2.0;
                return false;
            }
        }
        let users = match self.load {
            TrialLoad::Users(users) => users as f64,
            _ => seen.in_flight,
        };
        let is_closed = matches!(self.load, TrialLoad::Users(_));
        let response = seen.response;
        let throughput = match is_closed && response > LONG_PART * seen.measured {
            true => users / response * (1.0 - seen.error_share()),
            false => seen.throughput,
        };
        if !step.missed() {
            self.passed = self.passed.max(self.load.level());
        }
        self.rungs.push(Rung { users, throughput, response, ok: seen.ok, idle: seen.idle });
        // In an open loop throughput doubles with the rate while the target keeps up. With few
        // arrivals chance may hide the growth, so a rung that keeps up with its own arrivals grows,
        // too.
        let is_open = matches!(self.load, TrialLoad::Rate(_));
        let kept_up = is_open && throughput * seen.measured >= KEPT_UP * seen.due as f64;
        let grows = throughput >= GROWTH * self.best || kept_up || self.rungs.len() <= 2;
        self.best = self.best.max(throughput);
        if self.rungs.len() == 1 {
            self.space(response);
        }
        let slow = self.limit.is_some_and(|limit| response > RESPONSE_MAX * limit);
        if !grows || slow || seen.error_share() > ERRORS_MAX || seen.ok == 0 {
            self.grows = false;
            return true;
        }
        let level = self.load.level();
        if level >= self.highest {
            return true;
        }
        let next = (self.factor as f64 * level).min(self.highest);
        self.load = match self.load {
            TrialLoad::Rate(_) => TrialLoad::Rate(next),
            _ => TrialLoad::Users(next as usize),
        };
        false
    }

    /// The maximum number of rungs left, given enough budget.
    fn left(&self) -> f64 {
        if !self.grows {
            return 0.0;
        }
        let above = (self.highest / self.load.level()).max(1.0);
        let higher = above.log(self.factor as f64).ceil() + 1.0;
        higher.min(RUNGS - (self.rungs.len() as f64).min(RUNGS))
    }

    /// Sets the length and spacing of rungs from the response time without load.
    fn space(&mut self, response: f64) {
        self.warmup_part = WARMUP_PART;
        let usual = RESPONSES * response;
        if RUNGS * usual <= self.budget || matches!(self.load, TrialLoad::Rate(_)) {
            self.length = self.length.max(usual);
            return;
        }
        self.length = (self.budget / RUNGS).clamp(RESPONSES_LEAST * response, usual).max(1.0);
        // The drain of a rung takes about one response.
        let rungs = (self.budget / (self.length + response)).floor().clamp(2.0, RUNGS);
        let factor = self.highest.powf(rungs.recip()).ceil() as usize;
        self.factor = factor.clamp(FACTOR.0, FACTOR.1);
    }
}

impl Search {
    /// Handles a rung, and proceeds to the floor after the last one.
    pub(super) fn climb(&mut self, step: &SearchStep) {
        let is_last = self.ladder.climb(step);
        if !is_last && self.spent < self.ladder.end {
            return;
        }
        let first = self.ladder.rungs.first().copied();
        match first {
            Some(first) if first.ok > 0 => self.ladder_done(first),
            _ => self.stage = SearchStage::Over(super::StopReason::Infeasible),
        }
    }

    fn ladder_done(&mut self, first: Rung) {
        self.base = first.response;
        self.timing = self.timing();
        let top = self.ladder.load.level();
        match self.options.dimension {
            Dimension::Rate | Dimension::ConnectRate | Dimension::TlsHandshakes => {
                self.scale = self.ladder.best;
                let floor = self.timing.short + self.timing.short_warmup;
                // The ladder's rungs are too short to read the target's levels.
                let is_share = |clause: &Clause| matches!(clause.bound, ClauseBound::Share(_));
                let is_known = self.ladder.passed > 0.0 && self.clauses.iter().all(is_share);
                if floor > FLOOR_PART_MAX * self.budget() && is_known {
                    // With few steps in the budget, spend them near the capacity.
                    self.bracket_from(START_PART * self.scale);
                } else {
                    self.stage = SearchStage::Floor(1);
                }
            }
            Dimension::Users | Dimension::Streams => {
                self.scale = top;
                // The ladder has shown whether the objective holds for the users of its last rung.
                let holds = self.ladder.passed >= top;
                self.bracket_from(if holds { top } else { (0.5 * top).max(1.0) });
            }
            Dimension::Connections => {
                self.scale = 64.0;
                self.bracket_from(self.scale);
            }
        }
    }

    /// Seconds that a whole search of this target probably takes: the time spent, the remaining
    /// rungs, and floor, bracket and refinement in the shortest steps. `None` without any response,
    /// which leaves the step length unknown.
    pub(super) fn budget_needed(&self) -> Option<f64> {
        let first = self.ladder.rungs.first().filter(|rung| rung.ok > 0)?;
        let shortest = Self {
            base: first.response,
            options: SearchOptions { budget: Duration::ZERO, ..self.options.clone() },
            ..self.clone()
        };
        let timing = shortest.timing();
        let (short, step) = (timing.short + timing.short_warmup, timing.step + timing.warmup);
        let rungs = self.ladder.left() * self.ladder.length;
        Some(self.spent + rungs + SHORT_STEPS * short + STEPS * step)
    }

    /// Step lengths for the response times and the precision, within the budget.
    fn timing(&self) -> StepTiming {
        let base = self.base;
        let limit = self.ladder.limit().unwrap_or(0.0);
        let steps = 5.0;
        let affordable = ((self.budget() - self.spent) / steps).max(8.0 * base).max(8.0);
        // A queue takes many times its waiting time to build up: shorter steps, which begin with an
        // empty queue, overestimate the capacity.
        let queue = (QUEUE_STEP * limit).max(limit / self.options.precision);
        let step = (20.0 * base).max(queue).max(8.0).min(affordable);
        // The shortest steps cannot spend half of their length on warm-up.
        let most = if step <= 8.0 * base { step / 4.0 } else { step / 2.0 };
        let warmup =
            |short: f64, base: f64, limit: f64| base.max(limit).clamp(short.min(most), most);
        StepTiming {
            short: (step / 2.0).max(4.0),
            short_warmup: warmup(1.5, 3.0 * base, QUEUE_SHORT_WARMUP * limit),
            step,
            warmup: warmup(2.0, 4.0 * base, QUEUE_WARMUP * limit),
            longest: step.max(20.0),
        }
    }
}
