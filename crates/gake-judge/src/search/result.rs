//! The result of a search.

use super::{Rung, Search, SearchStage, WarmUp};
use crate::objective::Clause;
use crate::usl;

/// Below this steepness the objective hardly depends on the load.
const FLAT: f64 = 3.5;
/// The quantiles of the estimate.
const LOW: f64 = 0.025;
/// Equal to the lower end: in simulations of M/M/8 the capacity is above the 5 % quantile in only
/// 85 to 90 % of the searches, but above this one in 95 %.
const SAFE: f64 = LOW;
const MEDIAN: f64 = 0.5;
const HIGH: f64 = 0.975;

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The interval is as narrow as requested.
    Precision,
    /// The objective holds at the highest level that is allowed or possible.
    Ceiling,
    /// The budget was spent.
    Budget,
    /// It was interrupted.
    Interrupted,
    /// The objective does not hold even under the lightest load tried.
    Infeasible,
    /// The target no longer responds.
    Gone,
    /// The generator could not make enough load.
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
pub struct CapacityEstimate {
    /// The median.
    pub capacity: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// The level to plan with: the capacity is above it in at least 95 % of searches.
    pub safe: f64,
}

impl CapacityEstimate {
    /// Half the interval's width, as a share of the capacity.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum CapacityResult {
    /// The capacity lies in an interval.
    Capacity(CapacityEstimate),
    /// Only a lower bound is known.
    AtLeast {
        /// The level.
        level: f64,
        /// Why no more is known.
        why: String,
    },
    /// The objective is missed even at this level.
    Infeasible {
        /// The lowest level tried.
        level: f64,
    },
    /// No step gave evidence.
    Unknown,
}

/// A period in which the target was in a worse state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hysteresis {
    /// The number of such periods.
    pub times: u32,
    /// A level that had passed before ...
    pub passed: f64,
    /// ... this lower one failed badly.
    pub failed: f64,
    /// Seconds of rest until recovery.
    pub rested: f64,
    /// Whether the target recovered.
    pub recovered: bool,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The outcome.
    pub found: CapacityResult,
    /// Why the search ended.
    pub ended: StopReason,
    /// The clause that bounds the capacity.
    pub binding: Option<Clause>,
    /// What bounded the levels: the generator, or the highest level allowed.
    pub ceiling: Option<String>,
    /// The exponent b with which that clause turns bad: bad ∝ load^b.
    pub steepness: Option<f64>,
    /// Whether the objective depends on stalls or a floor of bad requests rather than on the load.
    pub flat: bool,
    /// Step-to-step noise of the capacity, as a share of it.
    pub noise: f64,
    /// A period in a worse state, if there was one.
    pub hysteresis: Option<Hysteresis>,
    /// The target got much faster during the search.
    pub warm_up: Option<WarmUp>,
    /// The highest throughput of the ladder, per second.
    pub throughput_max: f64,
    /// Mean response time without load, in seconds.
    pub unloaded: f64,
    /// The rungs of the ladder, for the scalability fit.
    pub rungs: Vec<Rung>,
    /// Seconds of trials and rests.
    pub spent: f64,
    /// If the budget was too small: the budget in seconds that probably suffices for the shortest
    /// steps. `None` also without any response.
    pub budget_needed: Option<f64>,
}

impl Search {
    /// The result so far.
    #[must_use]
    pub fn result(&self) -> SearchResult {
        let ended = match self.stage {
            SearchStage::Over(ended) => ended,
            _ => StopReason::Interrupted,
        };
        let pool = self.evidence();
        // An objective that was never missed is not binding.
        let missed = |number: usize| self.counted().any(|step| step.ratios[number] > 1.0);
        let binding =
            pool.as_ref().map(super::CapacityPosterior::binding).filter(|number| missed(*number));
        SearchResult {
            found: self.found(ended, pool.as_ref()),
            ended,
            binding: binding.map(|number| self.clauses[number].clone()),
            ceiling: self.ceiling.as_ref().map(|ceiling| ceiling.why.clone()),
            steepness: pool.as_ref().map(super::CapacityPosterior::steepness),
            flat: pool.as_ref().is_some_and(|pool| pool.steepness() < FLAT),
            noise: pool.as_ref().map_or(0.0, super::CapacityPosterior::noise),
            hysteresis: self.hysteresis,
            warm_up: self.warm_up(),
            throughput_max: self.ladder.best,
            unloaded: self.base,
            rungs: self.ladder.rungs.clone(),
            spent: self.spent,
            budget_needed: (ended == StopReason::Budget && self.pool.is_none())
                .then(|| self.budget_needed())
                .flatten(),
        }
    }

    fn found(&self, ended: StopReason, pool: Option<&super::CapacityPosterior>) -> CapacityResult {
        let passed = self.highest_pass();
        let lowest = self.counted().map(super::SearchStep::level).min_by(f64::total_cmp);
        if ended == StopReason::Infeasible {
            return CapacityResult::Infeasible { level: lowest.unwrap_or(1.0) };
        }
        let failed = self.counted().any(super::SearchStep::missed);
        let ceiling = self.ceiling.as_ref();
        match (pool, passed, ceiling) {
            (Some(pool), Some(_), Some(ceiling)) if ended == StopReason::Ceiling => {
                let level = ceiling.level.min(pool.quantile(SAFE));
                CapacityResult::AtLeast { level, why: ceiling.why.clone() }
            }
            (Some(pool), Some(_), _) if failed => CapacityResult::Capacity(estimate(pool)),
            (_, Some(level), ceiling) => {
                let why = ceiling.filter(|ceiling| level >= 0.9 * ceiling.level);
                let ended = match ended {
                    StopReason::Budget => "the budget was spent before any level failed",
                    _ => "the search ended before any level failed",
                };
                let ended = ended.to_owned();
                CapacityResult::AtLeast {
                    level,
                    why: why.map_or(ended, |ceiling| ceiling.why.clone()),
                }
            }
            // Without a step that passed there is no level to plan with, but a rung of the ladder,
            // unless even one user missed the objective.
            (pool, None, _) if failed && (pool.is_some() || self.ladder.passed <= 0.0) => {
                let lowest = lowest.unwrap_or(1.0);
                let rung = self.ladder.passed_level(self.options.dimension);
                match rung.filter(|level| *level < lowest) {
                    Some(level) => CapacityResult::AtLeast {
                        level,
                        why: "no step above the ladder passed before the budget was spent"
                            .to_owned(),
                    },
                    None => CapacityResult::Infeasible { level: lowest },
                }
            }
            _ => CapacityResult::Unknown,
        }
    }
}

impl SearchResult {
    /// The scalability law fitted to the ladder; `None` with too few rungs.
    #[must_use]
    pub fn scaling(&self) -> Option<usl::Usl> {
        usl::fit(&self.rungs.iter().map(Rung::point).collect::<Vec<_>>())
    }

    /// The pool that explains the ladder's plateau, if there is one.
    #[must_use]
    pub fn pool(&self) -> Option<usl::PoolFit> {
        let rungs: Vec<_> =
            self.rungs.iter().map(|rung| (rung.point(), rung.response, rung.idle)).collect();
        usl::pool(&rungs)
    }
}

pub(super) fn estimate(pool: &super::CapacityPosterior) -> CapacityEstimate {
    CapacityEstimate {
        capacity: pool.quantile(MEDIAN),
        low: pool.quantile(LOW),
        high: pool.quantile(HIGH),
        safe: pool.quantile(SAFE),
    }
}
