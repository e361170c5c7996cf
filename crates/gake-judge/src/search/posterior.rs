//! The posterior of the capacity from all steps: the minimum over the clauses.

use super::grid::{Grid, convolve, normal_kernel};
use super::level::LevelPosterior;
use super::share::{SharePosterior, StepCount};
use super::step::SearchStep;
use crate::objective::{Clause, ClauseBound};

/// Model error: the minimum standard deviation of ln C ...
const MODEL_ERROR: f64 = 0.012;
/// ... or this share of the step-to-step noise.
const NOISE_ERROR: f64 = 0.2;
/// Steps within this distance of ln C are evidence on the episodes there.
const NEAR: f64 = 0.15;

#[derive(Debug, Clone)]
pub(super) struct CapacityPosterior {
    clauses: Vec<Clause>,
    grid: Grid,
    posteriors: Vec<ClausePosterior>,
    steps: Vec<SearchStep>,
    /// P(C ≤ point).
    cdf: Vec<f64>,
}

#[derive(Debug, Clone)]
enum ClausePosterior {
    Share(SharePosterior),
    Level(LevelPosterior),
}

impl ClausePosterior {
    fn cdf(&self) -> &[f64] {
        match self {
            Self::Share(share) => &share.cdf,
            Self::Level(level) => &level.cdf,
        }
    }

    fn steepness(&self) -> f64 {
        match self {
            Self::Share(share) => share.steepness,
            Self::Level(level) => level.steepness,
        }
    }
}

impl CapacityPosterior {
    /// The posterior between `low` and `high` from `steps`.
    pub(super) fn new(clauses: &[Clause], (low, high): (f64, f64), steps: Vec<SearchStep>) -> Self {
        let grid = Grid::between(low, high);
        let posterior = |clause: &Clause| match clause.bound {
            ClauseBound::Share(allowed) => {
                ClausePosterior::Share(SharePosterior::new(allowed, &grid))
            }
            ClauseBound::Level(bound) => ClausePosterior::Level(LevelPosterior::new(bound, &grid)),
        };
        let posteriors = clauses.iter().map(posterior).collect();
        let clauses = clauses.to_vec();
        let mut pool = Self { clauses, grid, posteriors, steps: Vec::new(), cdf: Vec::new() };
        for step in steps {
            pool.take(step);
        }
        pool.settle();
        pool
    }

    /// Adds a step; the grid grows when the posterior comes near its end.
    pub(super) fn add(&mut self, step: SearchStep, highest: f64) {
        self.take(step);
        self.settle();
        let (low, high) = self.grid.range();
        let lower = self.quantile(0.01) < low * 1.03;
        let higher = self.quantile(0.99) > high / 1.03 && high < highest;
        if lower || higher {
            let low = if lower { low / 1.6 } else { low };
            let high = if higher { high * 1.6 } else { high };
            *self = Self::new(&self.clauses, (low, high), std::mem::take(&mut self.steps));
        }
    }

    /// Starts over with other steps in the same range.
    pub(super) fn replace(&mut self, steps: Vec<SearchStep>) {
        *self = Self::new(&self.clauses, self.grid.range(), steps);
    }

    fn take(&mut self, step: SearchStep) {
        for (number, posterior) in self.posteriors.iter_mut().enumerate() {
            match posterior {
                ClausePosterior::Share(share) => share.add(&step.count(number)),
                ClausePosterior::Level(level) => {
                    if let Some(mean) = step.mean_level(number) {
                        level.add(step.level(), mean);
                    }
                }
            }
        }
        self.steps.push(step);
    }

    fn settle(&mut self) {
        let mut survival = vec![1.0; self.grid.len()];
        for (number, posterior) in self.posteriors.iter_mut().enumerate() {
            match posterior {
                ClausePosterior::Share(share) => {
                    let centre = self.grid.quantile(&share.cdf, 0.5);
                    let near = |s: &&SearchStep| (s.level().ln() - centre).abs() < NEAR;
                    let near: Vec<StepCount> =
                        self.steps.iter().filter(near).map(|step| step.count(number)).collect();
                    share.learn_episodes(&near);
                    share.settle();
                }
                ClausePosterior::Level(level) => level.settle(),
            }
            survival.iter_mut().zip(posterior.cdf()).for_each(|(s, cdf)| *s *= 1.0 - cdf);
        }
        let mut highest = 0.0f64;
        let cdf: Vec<f64> = survival
            .iter()
            .map(|survival| {
                highest = highest.max(1.0 - survival);
                highest
            })
            .collect();
        let error = MODEL_ERROR.max(NOISE_ERROR * self.noise());
        self.cdf = convolve(&cdf, &normal_kernel(error));
    }

    /// The index of the clause that bounds the capacity.
    pub(super) fn binding(&self) -> usize {
        let median = |p: &ClausePosterior| self.grid.quantile(p.cdf(), 0.5);
        let medians: Vec<f64> = self.posteriors.iter().map(median).collect();
        (0..medians.len()).min_by(|a, b| medians[*a].total_cmp(&medians[*b])).unwrap_or(0)
    }

    /// The capacity exceeded with probability 1 − `share`.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        self.grid.quantile(&self.cdf, share).exp()
    }

    /// The exponent b of the binding clause: (r/C)^b.
    pub(super) fn steepness(&self) -> f64 {
        self.posteriors[self.binding()].steepness()
    }

    /// Step-to-step noise of ln C.
    pub(super) fn noise(&self) -> f64 {
        match &self.posteriors[self.binding()] {
            ClausePosterior::Share(share) => share.noise,
            ClausePosterior::Level(_) => 0.0,
        }
    }

    /// Independent bad episodes a second of the binding clause, if known.
    pub(super) fn episode_rate(&self) -> Option<f64> {
        match &self.posteriors[self.binding()] {
            ClausePosterior::Share(share) => share.episode_rate,
            ClausePosterior::Level(_) => None,
        }
    }

    pub(super) fn steps(&self) -> &[SearchStep] {
        &self.steps
    }
}
