//! Floor, bracket and refinement: chooses the next level.

use super::result::estimate;
use super::{
    CapacityPosterior, ClauseBound, Purpose, START_PART, Search, SearchStep, StopReason, Trial,
};
use crate::stats::poisson_at_least;

/// The floor's level, as a share of the target's scale.
const FLOOR_PART: f64 = 0.25;
/// Maximum probability of the floor's count under the objective for the floor to fail.
const FLOOR_LUCK: f64 = 0.005;
/// Factors for the next level after a pass and after a failure ...
const UP: f64 = 1.25;
const DOWN: f64 = 0.7;
/// ... and after a pass when the ladder gives no maximum.
const DOUBLE: f64 = 2.0;
/// The bracket is closed when its ends are within this factor.
const BRACKET: f64 = 1.35;
const BRACKET_ROUNDS: u32 = 20;
/// Below this share of the target's scale the objective is infeasible.
const LOWEST_PART: f64 = 0.1;
/// The same for a bound on a level, which any load raises.
const LOWEST_PART_OF_LEVEL: f64 = 0.002;
/// After a level missed its bound by a factor, the load is divided by that factor, within this
/// range.
const DOWN_OF_LEVEL: (f64, f64) = (0.1, 0.9);
/// The refinement's distance on both sides of the estimate, in units of ln 3 of the bad share ...
const ASIDE: f64 = 0.9;
/// ... within these limits in ln of the level.
const ASIDE_MIN: f64 = 0.01;
const ASIDE_MAX: f64 = 0.12;
/// To stop, this many steps must lie within this distance in ln of the level, ...
const NEAR: f64 = 0.15;
const NEAR_STEPS: usize = 6;
/// ... of which this many must pass and as many fail.
const NEAR_EACH: usize = 2;
/// Independent bad episodes that a step should contain, when they are rare.
const EPISODES: f64 = 3.0;
/// Below this steepness episodes determine the step length.
const FLAT: f64 = 4.0;
/// Factors that widen the bracket for the posterior's range.
const WIDEN: (f64, f64) = (0.5, 1.8);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum SearchStage {
    Ladder,
    /// The attempt, from 1.
    Floor(u32),
    Bracket(Bracket),
    /// The number of the step; its parity is the side.
    Refine(u32),
    Over(StopReason),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bracket {
    pub(super) level: f64,
    low: Option<f64>,
    high: Option<f64>,
    rounds: u32,
}

impl Search {
    pub(super) fn plan(&mut self) -> Trial {
        if self.guard.is_some() {
            return self.probe();
        }
        let timing = self.timing;
        match &self.stage {
            SearchStage::Ladder | SearchStage::Over(_) => {
                self.ladder.trial(self.number, self.options.seed.wrapping_add(self.number))
            }
            SearchStage::Floor(attempt) => {
                let length = f64::from(*attempt) * timing.short;
                self.trial(Purpose::Floor, FLOOR_PART * self.scale, timing.short_warmup, length)
            }
            SearchStage::Bracket(bracket) => {
                self.trial(Purpose::Bracket, bracket.level, timing.short_warmup, timing.short)
            }
            SearchStage::Refine(side) => self.refinement(*side),
        }
    }

    pub(super) fn bracket_from(&mut self, level: f64) {
        self.stage = SearchStage::Bracket(Bracket { level, ..Bracket::default() });
    }

    pub(super) fn advance(&mut self, step: &SearchStep) {
        match self.stage.clone() {
            SearchStage::Floor(attempt) => self.floor_done(step, attempt),
            SearchStage::Bracket(bracket) => self.bracket_done(step, bracket),
            SearchStage::Refine(side) => {
                let highest = 3.0 * self.scale.max(step.level());
                if let Some(pool) = &mut self.pool {
                    pool.add(step.clone(), highest);
                }
                self.stage = SearchStage::Refine(side + 1);
                self.stop_when_known();
            }
            SearchStage::Ladder | SearchStage::Over(_) => {}
        }
    }

    /// Whether a floor built up a backlog: a closed loop of few users may be far faster than the
    /// target, or this machine, is in an open loop. The actual completion rate becomes the scale.
    pub(super) fn rescaled(&mut self, step: &SearchStep) -> bool {
        let is_floor = matches!(self.stage, SearchStage::Floor(_));
        let scale = step.ended_rate();
        if !is_floor || step.is_sustained() || scale <= 0.0 {
            return false;
        }
        self.scale = scale;
        // The top of the ladder was not the target's maximum.
        self.ladder.grows = true;
        self.stage = SearchStage::Floor(1);
        true
    }

    fn floor_done(&mut self, step: &SearchStep, attempt: u32) {
        let missed = (0..self.clauses.len()).any(|n| match self.clauses[n].bound {
            ClauseBound::Share(allowed) => {
                let count = step.count(n).bad;
                poisson_at_least(count.bad, allowed * count.of) < FLOOR_LUCK
            }
            ClauseBound::Level(_) => false,
        });
        if !missed {
            self.base = step.seen.response;
            self.bracket_by_level(step);
        } else if attempt < 2 {
            self.stage = SearchStage::Floor(attempt + 1);
        } else {
            self.stage = SearchStage::Over(StopReason::Infeasible);
        }
    }

    /// Starts the bracket after a floor. A level of the target grows about linearly with the load,
    /// so its value at the floor predicts where it reaches its bound.
    fn bracket_by_level(&mut self, floor: &SearchStep) {
        let usual = START_PART * self.scale;
        let level = match self.level_ratio(floor) {
            Some(ratio) => usual.min(floor.level() / ratio),
            None => usual,
        };
        self.bracket_from(level.max(LOWEST_PART_OF_LEVEL * self.scale));
    }

    /// The largest ratio of a level to its bound; `None` without such a bound.
    fn level_ratio(&self, step: &SearchStep) -> Option<f64> {
        let bounds = self.clauses.iter().zip(&step.ratios);
        let levels = bounds.filter(|(clause, _)| matches!(clause.bound, ClauseBound::Level(_)));
        levels.map(|(_, ratio)| *ratio).reduce(f64::max).filter(|ratio| *ratio > 0.0)
    }

    fn bracket_done(&mut self, step: &SearchStep, mut bracket: Bracket) {
        let asked = bracket.level;
        if step.missed() {
            bracket.high = Some(bracket.high.map_or(asked, |high| high.min(asked)));
        } else {
            bracket.low = Some(bracket.low.map_or(asked, |low| low.max(asked)));
        }
        bracket.rounds += 1;
        let whole = !self.options.dimension.is_rate();
        let ceiling = self.ceiling.as_ref().map_or(f64::INFINITY, |ceiling| ceiling.level);
        let closed = match (bracket.low, bracket.high) {
            (Some(low), Some(high)) => {
                bracket.level = (low * high).sqrt();
                high <= BRACKET * low || (whole && high - low <= 1.0)
            }
            (Some(low), None) => {
                // A ladder that ended while throughput grew gives no maximum.
                let climbed = !self.ladder.grows;
                let blind =
                    !climbed && self.options.highest.is_none() || !self.options.dimension.is_rate();
                bracket.level = (low * if blind { DOUBLE } else { UP }).min(ceiling);
                low >= ceiling
            }
            (None, high) => {
                // The ratio of a level to its bound gives the next load.
                let by_level = self.level_ratio(step).filter(|ratio| *ratio >= step.worst());
                let (part, lowest) = match by_level {
                    Some(ratio) => {
                        let (least, most) = DOWN_OF_LEVEL;
                        (ratio.recip().clamp(least, most), LOWEST_PART_OF_LEVEL)
                    }
                    None => (DOWN, LOWEST_PART),
                };
                bracket.level = high.unwrap_or(asked) * part;
                let lowest = if whole { 1.0 } else { lowest * self.scale };
                if bracket.level < lowest {
                    self.stage = SearchStage::Over(StopReason::Infeasible);
                    return;
                }
                false
            }
        };
        if closed || bracket.rounds >= BRACKET_ROUNDS {
            self.pool = Some(self.pool_of(&bracket));
            self.stage = SearchStage::Refine(0);
            self.stop_when_known();
        } else {
            self.stage = SearchStage::Bracket(bracket);
        }
    }

    fn pool_of(&self, bracket: &Bracket) -> CapacityPosterior {
        let low = bracket.low.or(bracket.high).unwrap_or(bracket.level);
        let high = bracket.high.or(bracket.low).unwrap_or(bracket.level);
        let range = (WIDEN.0 * low.min(high), WIDEN.1 * low.max(high));
        CapacityPosterior::new(&self.clauses, range, self.counted().cloned().collect())
    }

    /// The posterior of the refinement, or else of all steps so far.
    pub(super) fn evidence(&self) -> Option<CapacityPosterior> {
        if let Some(pool) = &self.pool {
            return Some(pool.clone());
        }
        let levels = || self.counted().map(SearchStep::level);
        let low = levels().min_by(f64::total_cmp)?;
        let high = levels().max_by(f64::total_cmp)?;
        let range = (WIDEN.0 * low, WIDEN.1 * high);
        Some(CapacityPosterior::new(&self.clauses, range, self.counted().cloned().collect()))
    }

    fn refinement(&self, side: u32) -> Trial {
        let timing = self.timing;
        let Some(pool) = &self.pool else {
            return self.trial(Purpose::Refine, self.scale, timing.warmup, timing.step);
        };
        let aside = (ASIDE * 3f64.ln() / pool.steepness()).clamp(ASIDE_MIN, ASIDE_MAX);
        let centre = pool.quantile(0.5);
        let over = side.is_multiple_of(2);
        let mut level = centre * if over { aside.exp() } else { (-aside).exp() };
        if self.options.dimension.is_rate() {
            // Not far beyond levels known to work.
            let known = 1.15 * self.scale;
            level = level.min(known.max(1.1 * self.highest_pass().unwrap_or(0.0)));
        } else {
            level = if over { level.max(centre + 1.0).ceil() } else { level.min(centre).floor() };
        }
        let step = match pool.episode_rate() {
            Some(rate) if pool.steepness() < FLAT => {
                timing.step.max(EPISODES / rate).min(timing.longest)
            }
            _ => timing.step,
        };
        let left = self.budget() - self.spent - timing.warmup;
        self.trial(Purpose::Refine, level, timing.warmup, step.min(left.max(timing.step)))
    }

    /// Ends the search when the estimate is as precise as requested.
    fn stop_when_known(&mut self) {
        let Some(pool) = &self.pool else { return };
        let estimate = estimate(pool);
        if let Some(ceiling) = &self.ceiling
            && estimate.safe >= 0.98 * ceiling.level
        {
            self.stage = SearchStage::Over(StopReason::Ceiling);
            return;
        }
        let whole = if self.options.dimension.is_rate() { 0.0 } else { 1.5 };
        let near: Vec<&SearchStep> = pool
            .steps()
            .iter()
            .filter(|step| {
                (step.level() / estimate.capacity).ln().abs() < NEAR
                    || (step.level() - estimate.capacity).abs() <= whole
            })
            .collect();
        let failed = near.iter().filter(|step| step.missed()).count();
        let enough =
            near.len() >= NEAR_STEPS && failed >= NEAR_EACH && near.len() - failed >= NEAR_EACH;
        if enough && estimate.half_width() <= self.options.precision {
            self.stage = SearchStage::Over(StopReason::Precision);
        }
    }
}
