//! The ladder: a closed loop of 1, 2, 4, 8 ... users, until throughput grows no more. Of a target
//! whose answers take seconds the rungs are further apart, so that the budget holds them.
//!
//! It limits itself, so it is safe on an unknown target. It gives an upper bound of the
//! throughput, the response time without load, and the points of the scalability fit. Where no
//! more than some rate may be sent, an open loop of doubling rates takes its place.

use std::time::Duration;

use super::step::Rung;
use super::trial::{Dimension, Purpose, Trial, TrialLoad};
use super::{START_PART, Search, SearchOptions, Stage, Step, Timing, seconds};
use crate::objective::{Bound, Clause};
use gake_core::clock::SECOND;

/// Throughput that grows by less than this has stopped growing.
const GROWTH: f64 = 1.08;

/// An open loop that answers at least this share of its arrivals in their time keeps up.
const KEPT_UP: f64 = 0.9;
/// More errors than this end the ladder.
const ERRORS_MAX: f64 = 0.3;
/// A response longer than this multiple of the objective's ends the ladder.
const RESPONSE_MAX: f64 = 3.0;
/// The first rung of an open ladder, as a part of the highest rate allowed: 2⁻⁶.
const FIRST_PART: f64 = 1.0 / 64.0;
/// It is this at least, a second, so that a rung has requests.
const FIRST_MIN: f64 = 4.0;
/// The first part of each rung is left out.
const WARMUP_PART: f64 = 0.25;
/// The ladder may take this part of the budget.
const BUDGET_PART: f64 = 0.35;
/// A rung lasts this many times the response without load ...
const RESPONSES: f64 = 8.0;
/// ... or, where the budget holds no ladder of such rungs, this many.
const RESPONSES_LEAST: f64 = 3.0;
/// The users of a rung, as a multiple of those of the one before: usual, and most.
const FACTOR: (usize, usize) = (2, 16);
/// Past this part of a rung its answers are too long to be counted by when they end: Little's law
/// gives the throughput of a closed loop from its users and their response time.
const LONG_PART: f64 = 0.25;

/// Multiples of the latency that must be kept: how long steps of the refinement last, and the
/// warm-up of those and of the bracket: what keeps the simulated M/M/2 queue's interval honest.
const QUEUE_STEP: f64 = 50.0;
const QUEUE_WARMUP: f64 = 15.0;
const QUEUE_SHORT_WARMUP: f64 = 6.0;

/// A floor that takes more than this part of the budget is left out.
const FLOOR_PART_MAX: f64 = 0.15;

/// Rungs of a ladder, steps of floor and bracket, and of the refinement: what searches take.
const RUNGS: f64 = 8.0;
const SHORT_STEPS: f64 = 5.0;
const STEPS: f64 = 8.0;

/// A ladder being climbed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    /// Of the next rung.
    load: TrialLoad,
    /// Seconds of a rung, the warm-up included.
    length: f64,
    /// The part of a rung that is left out.
    warmup_part: f64,
    /// The users of a rung over those of the one before.
    factor: usize,
    /// Seconds that the ladder may take.
    room: f64,
    /// The latency objective, in seconds.
    limit: Option<f64>,
    /// The highest load that may be asked for.
    highest: f64,
    pub(super) rungs: Vec<Rung>,
    pub(super) best: f64,
    /// Whether throughput still grew on the last rung: it was the search's own bound that ended it.
    pub(super) grows: bool,
    /// The highest load under which every clause held.
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
            // Connections are not climbed: one user tells how fast the target is.
            (Dimension::Connections, _) => (TrialLoad::Users(1), 1.0),
            (_, None) => (TrialLoad::Users(1), options.users_max as f64),
        };
        let limit = limit.map(|limit| limit as f64 / SECOND as f64);
        Self {
            load,
            length: 1.0,
            warmup_part: WARMUP_PART,
            factor: FACTOR.0,
            room: BUDGET_PART * options.budget.as_secs_f64(),
            limit,
            highest,
            rungs: Vec::new(),
            best: 0.0,
            grows: true,
            passed: 0.0,
        }
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
            warmup: seconds(self.warmup_part * self.length),
            duration: seconds((1.0 - self.warmup_part) * self.length),
            seed,
            enough: Vec::new(),
        }
    }

    /// Takes a rung in; true when it was the last.
    fn climb(&mut self, step: &Step) -> bool {
        let seen = &step.seen;
        // Requests may be longer than the rung: then the first one tells how long, in the drain.
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
        // In an open loop throughput doubles with the rate as long as it can. A rung of few
        // arrivals may have had more of them by chance than the next: what kept up with its own
        // arrivals grows.
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
}

impl Ladder {
    /// Rungs that a budget which holds them would still have, at most.
    fn left(&self) -> f64 {
        if !self.grows {
            return 0.0;
        }
        let above = (self.highest / self.load.level()).max(1.0);
        let higher = above.log(self.factor as f64).ceil() + 1.0;
        higher.min(RUNGS - (self.rungs.len() as f64).min(RUNGS))
    }

    /// Sets how long rungs last and how far they are apart, now that the response time without
    /// load is known.
    fn space(&mut self, response: f64) {
        self.warmup_part = WARMUP_PART;
        let usual = RESPONSES * response;
        if RUNGS * usual <= self.room || matches!(self.load, TrialLoad::Rate(_)) {
            self.length = self.length.max(usual);
            return;
        }
        self.length = (self.room / RUNGS).clamp(RESPONSES_LEAST * response, usual).max(1.0);
        // The drain of a rung takes about one response.
        let rungs = (self.room / (self.length + response)).floor().clamp(2.0, RUNGS);
        let factor = self.highest.powf(rungs.recip()).ceil() as usize;
        self.factor = factor.clamp(FACTOR.0, FACTOR.1);
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
            Dimension::Rate | Dimension::ConnectRate | Dimension::TlsHandshakes => {
                self.scale = self.ladder.best;
                let floor = self.timing.short + self.timing.short_warmup;
                // The ladder's rungs are too short for a reading of the target.
                let read = |clause: &Clause| matches!(clause.bound, Bound::Share(_));
                let is_known = self.ladder.passed > 0.0 && self.clauses.iter().all(read);
                if floor > FLOOR_PART_MAX * self.budget() && is_known {
                    // A budget of few steps needs them where the capacity is.
                    self.bracket_from(START_PART * self.scale);
                } else {
                    self.stage = Stage::Floor(1);
                }
            }
            Dimension::Users | Dimension::Streams => {
                self.scale = top;
                // The ladder has seen whether the objective holds for the users of its last rung.
                let holds = self.ladder.passed >= top;
                self.bracket_from(if holds { top } else { (0.5 * top).max(1.0) });
            }
            Dimension::Connections => {
                self.scale = 64.0;
                self.bracket_from(self.scale);
            }
        }
    }

    /// Seconds that a whole search of this target probably takes: what is spent, the ladder's rungs
    /// that are left, a floor, a bracket and a refinement of steps as short as they may be, since a
    /// budget shortens the steps that it cannot hold. `None` when nothing was answered: then it is
    /// not known how long a step must be.
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
        // Steps as short as they may be cannot spare half of themselves.
        let most = if step <= 8.0 * base { step / 4.0 } else { step / 2.0 };
        let warmup =
            |short: f64, base: f64, limit: f64| base.max(limit).clamp(short.min(most), most);
        Timing {
            short: (step / 2.0).max(4.0),
            short_warmup: warmup(1.5, 3.0 * base, QUEUE_SHORT_WARMUP * limit),
            step,
            warmup: warmup(2.0, 4.0 * base, QUEUE_WARMUP * limit),
            longest: step.max(20.0),
        }
    }
}
