//! The ladder: a closed loop of 1, 2, 4, 8 ... users, until throughput grows no more.
//!
//! It limits itself, so it is safe on an unknown target. It gives an upper bound of the
//! throughput, the response time without load, and the points of the scalability fit. Where no
//! more than some rate may be sent, an open loop of doubling rates takes its place.

use std::time::Duration;

use super::trial::{Dimension, Purpose, Trial, TrialLoad};
use super::{Options, Search, Stage, Step, Timing, seconds};
use crate::objective::Clause;
use crate::usl;
use gake_core::clock::SECOND;

/// Throughput that grows by less than this has stopped growing.
const GROWTH: f64 = 1.08;

/// An open loop that answers at least this share of its arrivals in their time keeps up.
const KEPT_UP: f64 = 0.9;
/// More errors than this end the ladder.
const ERRORS_MAX: f64 = 0.3;
/// A response longer than so many times the objective's ends the ladder.
const RESPONSE_MAX: f64 = 3.0;
/// The first rung of an open ladder, as a part of the highest rate allowed: 2⁻⁶.
const FIRST_PART: f64 = 1.0 / 64.0;
/// It is this at least, a second, so that a rung has requests.
const FIRST_MIN: f64 = 4.0;
/// The first part of each rung is left out.
const WARMUP_PART: f64 = 0.25;
/// The ladder may take this part of the budget.
const BUDGET_PART: f64 = 0.35;

/// Steps of the refinement last so many times the latency that must be kept, and their warm-up and
/// that of the bracket so many: what keeps the simulated M/M/2 queue's interval honest.
const QUEUE_STEP: f64 = 50.0;
const QUEUE_WARMUP: f64 = 15.0;
const QUEUE_SHORT_WARMUP: f64 = 6.0;

/// A budget that bounds no step.
const LONGEST: Duration = Duration::from_secs(86_400);
/// Rungs of a ladder, steps of floor and bracket, and of the refinement: what searches take.
const RUNGS: f64 = 8.0;
const SHORT_STEPS: f64 = 5.0;
const STEPS: f64 = 8.0;

/// What one rung of the ladder saw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Users, or the mean number in flight of an open loop.
    pub users: f64,
    /// Ok responses a second.
    pub throughput: f64,
    /// Their mean time, in seconds.
    pub response: f64,
    /// Their number.
    pub ok: u64,
    /// Whether the target had CPU to spare; `None` when nothing tells.
    pub idle: Option<bool>,
}

impl Rung {
    /// The rung as a point of the scalability law.
    #[must_use]
    pub fn point(&self) -> usl::UslPoint {
        usl::UslPoint { users: self.users, throughput: self.throughput, count: self.ok }
    }
}

/// A ladder being climbed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    /// Of the next rung.
    load: TrialLoad,
    /// Seconds of a rung, the warm-up included.
    length: f64,
    /// The latency objective, in seconds.
    limit: Option<f64>,
    /// The highest load that may be asked for.
    highest: f64,
    pub(super) rungs: Vec<Rung>,
    pub(super) best: f64,
    /// Whether throughput still grew on the last rung: it was the search's own bound that ended it.
    pub(super) grows: bool,
}

impl Ladder {
    pub(super) fn new(clauses: &[Clause], options: &Options) -> Self {
        let limit = clauses.iter().filter_map(Clause::limit).min();
        let (load, highest) = match (options.dimension, options.highest) {
            (Dimension::Rate | Dimension::ConnectRate, Some(highest)) => {
                (TrialLoad::Rate((highest * FIRST_PART).max(FIRST_MIN).min(highest)), highest)
            }
            (Dimension::Users, Some(highest)) => (TrialLoad::Users(1), highest),
            // Connections are not climbed: one user tells how fast the target is.
            (Dimension::Connections, _) => (TrialLoad::Users(1), 1.0),
            (_, None) => (TrialLoad::Users(1), options.users_max as f64),
        };
        let limit = limit.map(|limit| limit as f64 / SECOND as f64);
        Self { load, length: 1.0, limit, highest, rungs: Vec::new(), best: 0.0, grows: true }
    }

    /// The longest latency that is allowed, in seconds.
    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    pub(super) fn trial(&self, number: u64, seed: u64) -> Trial {
        Trial {
            number,
            purpose: Purpose::Ladder,
            load: self.load,
            warmup: seconds(WARMUP_PART * self.length),
            duration: seconds((1.0 - WARMUP_PART) * self.length),
            seed,
            enough: Vec::new(),
        }
    }

    /// Takes a rung in; true when it was the last.
    fn climb(&mut self, step: &Step) -> bool {
        let seen = &step.seen;
        // Requests may be longer than the rung.
        if self.rungs.is_empty() && seen.ok < 2 && seen.errors == 0 && self.length < 120.0 {
            self.length *= 2.0;
            return false;
        }
        let users = match self.load {
            TrialLoad::Users(users) => users as f64,
            _ => seen.in_flight,
        };
        let (throughput, response) = (seen.throughput, seen.response);
        self.rungs.push(Rung { users, throughput, response, ok: seen.ok, idle: seen.idle });
        // In an open loop throughput doubles with the rate as long as it can. A rung of few
        // arrivals may have had more of them by chance than the next: what kept up with its own
        // arrivals grows.
        let is_open = matches!(self.load, TrialLoad::Rate(_));
        let kept_up = is_open && throughput * seen.measured >= KEPT_UP * seen.due as f64;
        let grows = throughput >= GROWTH * self.best || kept_up || self.rungs.len() <= 2;
        self.best = self.best.max(throughput);
        if self.rungs.len() == 1 {
            self.length = self.length.max(8.0 * response);
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
        let next = (2.0 * level).min(self.highest);
        self.load = match self.load {
            TrialLoad::Rate(_) => TrialLoad::Rate(next),
            _ => TrialLoad::Users(next as usize),
        };
        false
    }
}

impl Search {
    /// Takes a rung of the ladder in, and goes on to the floor after the last.
    pub(super) fn climb(&mut self, step: &Step) {
        let over = self.ladder.climb(step);
        if !over && self.spent < BUDGET_PART * self.budget() {
            return;
        }
        let first = self.ladder.rungs.first().copied();
        match first {
            Some(first) if first.ok > 0 => self.ladder_done(first),
            _ => self.stage = Stage::Over(super::StopReason::Infeasible),
        }
    }

    fn ladder_done(&mut self, first: Rung) {
        self.base = first.response;
        self.timing = self.timing();
        let top = self.ladder.load.level();
        match self.options.dimension {
            Dimension::Rate | Dimension::ConnectRate => {
                self.scale = self.ladder.best;
                self.stage = Stage::Floor(1);
            }
            Dimension::Users => {
                self.scale = top;
                self.bracket_from((0.5 * top).max(1.0));
            }
            Dimension::Connections => {
                self.scale = 64.0;
                self.bracket_from(self.scale);
            }
        }
    }

    /// Seconds that a whole search of this target probably takes: what is spent, the ladder's rungs
    /// that are left, a floor, a bracket and a refinement of steps as long as the target needs.
    pub(super) fn budget_needed(&self) -> f64 {
        let base = self.ladder.rungs.first().map_or(self.ladder.length, |rung| rung.response);
        let long = Self {
            base,
            options: Options { budget: LONGEST, ..self.options.clone() },
            ..self.clone()
        };
        let timing = long.timing();
        let rungs = match self.stage {
            Stage::Ladder | Stage::Floor(_) => RUNGS - (self.ladder.rungs.len() as f64).min(RUNGS),
            _ => 0.0,
        };
        let (short, step) = (timing.short + timing.short_warmup, timing.step + timing.warmup);
        self.spent + rungs * self.ladder.length + SHORT_STEPS * short + STEPS * step
    }

    /// Steps long enough for the response times and the precision, as far as the budget goes.
    fn timing(&self) -> Timing {
        let base = self.base;
        let limit = self.ladder.limit().unwrap_or(0.0);
        let shares = 5.0;
        let affordable = ((self.budget() - self.spent) / shares).max(8.0 * base).max(8.0);
        // A queue that makes requests wait so long takes many times that to build up: steps that
        // begin with an empty one and end before it stands find the target better than it is.
        let queue = (QUEUE_STEP * limit).max(limit / self.options.precision);
        let step = (20.0 * base).max(queue).max(8.0).min(affordable);
        let warmup = |short: f64, base: f64, limit: f64| base.max(limit).clamp(short, step / 2.0);
        Timing {
            short: (step / 2.0).max(4.0),
            short_warmup: warmup(1.5, 3.0 * base, QUEUE_SHORT_WARMUP * limit),
            step,
            warmup: warmup(2.0, 4.0 * base, QUEUE_WARMUP * limit),
            longest: step.max(20.0),
        }
    }
}
