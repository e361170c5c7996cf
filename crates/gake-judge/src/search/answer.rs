//! The answer of a search.

use super::{Rung, Search, Stage};
use crate::objective::Clause;
use crate::usl;

/// Below this steepness the objective is hardly set by the load.
const FLAT: f64 = 3.5;
/// The quantiles of the answer.
const LOW: f64 = 0.025;
/// The same as the lower end: of the 5 % quantile the simulations of M/M/8 showed that the capacity
/// lies above it in 85 to 90 % of the searches and not in 95 %; of this one they hold that.
const SAFE: f64 = LOW;
const MEDIAN: f64 = 0.5;
const HIGH: f64 = 0.975;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The interval is as narrow as asked.
    Precision,
    /// The objective holds at the highest level allowed or possible.
    Ceiling,
    /// The budget was spent.
    Budget,
    /// It was interrupted.
    Interrupted,
    /// The objective does not hold under the lightest load that was tried.
    Infeasible,
    /// The target has stopped answering.
    Gone,
    /// The generator could not make enough load for an answer.
    Generator,
}

impl StopReason {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Precision => "precision",
            Self::Ceiling => "ceiling",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::Infeasible => "infeasible",
            Self::Gone => "target_gone",
            Self::Generator => "generator",
        }
    }
}

/// The estimated capacity and its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median.
    pub capacity: f64,
    /// The 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The level to plan with: the capacity is above it in at least 95 % of searches.
    pub safe: f64,
}

impl Estimate {
    /// Half the interval's width, as a part of the capacity.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// What is known of the capacity.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// It lies in an interval.
    Capacity(Estimate),
    /// A lower bound of it, and why there is no better answer.
    AtLeast {
        /// The level.
        level: f64,
        /// Why there is no better answer.
        why: String,
    },
    /// The objective is not even met at this level.
    Infeasible {
        /// The lowest level tried.
        level: f64,
    },
    /// Nothing is known.
    Unknown,
}

/// The target was in another state for a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hysteresis {
    /// How often it was seen.
    pub times: u32,
    /// A level that had passed ...
    pub passed: f64,
    /// ... when this lower one failed badly.
    pub failed: f64,
    /// Seconds of rest until it was as before.
    pub rested: f64,
    /// Whether it was as before in the end.
    pub recovered: bool,
}

/// The answer of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct CapacityAnswer {
    /// What is known of the capacity.
    pub found: Found,
    /// Why the search ended.
    pub ended: StopReason,
    /// The clause that bounds the capacity.
    pub binding: Option<Clause>,
    /// What kept the search from higher levels: the generator, or the highest level allowed.
    pub ceiling: Option<String>,
    /// How steeply that clause turns bad with the load: bad ∝ load^b.
    pub steepness: Option<f64>,
    /// Whether the objective hardly depends on the load, but on stalls or a floor of bad requests.
    pub flat: bool,
    /// Noise of the capacity from step to step, as a part of it.
    pub noise: f64,
    /// Whether the target was in another state for a while.
    pub hysteresis: Option<Hysteresis>,
    /// The highest throughput of the ladder.
    pub throughput_max: f64,
    /// Mean response time without load, in seconds.
    pub unloaded: f64,
    /// The ladder, for the scalability fit.
    pub rungs: Vec<Rung>,
    /// Seconds of trials and rests.
    pub spent: f64,
    /// When the budget ended it before enough was known: the budget, in seconds, that probably holds
    /// the shortest steps that this target allows. `None` also when nothing was answered.
    pub budget_needed: Option<f64>,
}

impl Search {
    /// The answer so far.
    #[must_use]
    pub fn answer(&self) -> CapacityAnswer {
        let ended = match self.stage {
            Stage::Over(ended) => ended,
            _ => StopReason::Interrupted,
        };
        let pool = self.evidence();
        // Nothing is bound by an objective that was never missed.
        let missed = |number: usize| self.counted().any(|step| step.ratios[number] > 1.0);
        let binding = pool.as_ref().map(super::Pool::binding).filter(|number| missed(*number));
        CapacityAnswer {
            found: self.found(ended, pool.as_ref()),
            ended,
            binding: binding.map(|number| self.clauses[number].clone()),
            ceiling: self.ceiling.as_ref().map(|ceiling| ceiling.why.clone()),
            steepness: pool.as_ref().map(super::Pool::steepness),
            flat: pool.as_ref().is_some_and(|pool| pool.steepness() < FLAT),
            noise: pool.as_ref().map_or(0.0, super::Pool::noise),
            hysteresis: self.hysteresis,
            throughput_max: self.ladder.best,
            unloaded: self.base,
            rungs: self.ladder.rungs.clone(),
            spent: self.spent,
            budget_needed: (ended == StopReason::Budget && self.pool.is_none())
                .then(|| self.budget_needed())
                .flatten(),
        }
    }

    fn found(&self, ended: StopReason, pool: Option<&super::Pool>) -> Found {
        let passed = self.highest_pass();
        let lowest = self.counted().map(super::Step::level).min_by(f64::total_cmp);
        if ended == StopReason::Infeasible {
            return Found::Infeasible { level: lowest.unwrap_or(1.0) };
        }
        let failed = self.counted().any(super::Step::missed);
        let ceiling = self.ceiling.as_ref();
        match (pool, passed, ceiling) {
            (Some(pool), Some(_), Some(ceiling)) if ended == StopReason::Ceiling => {
                let level = ceiling.level.min(pool.quantile(SAFE));
                Found::AtLeast { level, why: ceiling.why.clone() }
            }
            (Some(pool), Some(_), _) if failed => Found::Capacity(estimate(pool)),
            (_, Some(level), ceiling) => {
                let why = ceiling.filter(|ceiling| level >= 0.9 * ceiling.level);
                let ended = match ended {
                    StopReason::Budget => "the budget was spent before any level failed",
                    _ => "the search ended before any level failed",
                };
                let ended = ended.to_owned();
                Found::AtLeast { level, why: why.map_or(ended, |ceiling| ceiling.why.clone()) }
            }
            // Not even one user was served well: no level is known that would be.
            (_, None, _) if failed && self.ladder.passed <= 0.0 => {
                Found::Infeasible { level: lowest.unwrap_or(1.0) }
            }
            (Some(pool), None, _) if failed => Found::Capacity(estimate(pool)),
            _ => Found::Unknown,
        }
    }
}

impl CapacityAnswer {
    /// The scalability law that fits the ladder; `None` when it has too few rungs.
    #[must_use]
    pub fn scaling(&self) -> Option<usl::Usl> {
        usl::fit(&self.rungs.iter().map(Rung::point).collect::<Vec<_>>())
    }

    /// The pool that explains the ladder's plateau, when it has one.
    #[must_use]
    pub fn pool(&self) -> Option<usl::Pool> {
        let rungs: Vec<_> =
            self.rungs.iter().map(|rung| (rung.point(), rung.response, rung.idle)).collect();
        usl::pool(&rungs)
    }
}

/// The quantiles of what is known.
pub(super) fn estimate(pool: &super::Pool) -> Estimate {
    Estimate {
        capacity: pool.quantile(MEDIAN),
        low: pool.quantile(LOW),
        high: pool.quantile(HIGH),
        safe: pool.quantile(SAFE),
    }
}
