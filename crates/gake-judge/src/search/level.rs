//! The posterior of the capacity under one bounded level (CPU, memory, a mean).
//!
//! The model of a level y, read at load r, is
//!
//! ```text
//! y/bound = floor + (1 − floor)·(r/C)^b, give or take a factor of e^(±s)
//! ```
//!
//! so that y reaches its bound at r = C. The steepness b, the floor (the level without load) and
//! the noise s are integrated out on grids.

use super::grid::{Grid, cumulate};

const STEEPNESS: [f64; 9] = [0.25, 0.5, 1.0, 1.5, 3.0, 6.0, 15.0, 50.0, 200.0];
const FLOORS: [f64; 5] = [0.0, 0.1, 0.3, 0.6, 0.85];
const NOISE: [f64; 4] = [0.01, 0.03, 0.1, 0.3];

/// Ratios of a level to its bound are clamped to this range.
const RATIO_RANGE: (f64, f64) = (0.1, 3.0);

/// The posterior of ln C and the nuisance parameters.
#[derive(Debug, Clone)]
pub(super) struct LevelPosterior {
    grid: Grid,
    bound: f64,
    /// Log weights by row (steepness, floor, noise) and point.
    log: Vec<f64>,
    /// The distribution function of ln C.
    pub(super) cdf: Vec<f64>,
    /// The geometric mean of b.
    pub(super) steepness: f64,
}

impl LevelPosterior {
    pub(super) fn new(bound: f64, grid: &Grid) -> Self {
        let rows = STEEPNESS.len() * FLOORS.len() * NOISE.len();
        let mut posterior = Self {
            grid: grid.clone(),
            bound,
            log: vec![0.0; rows * grid.len()],
            cdf: Vec::new(),
            steepness: 0.0,
        };
        posterior.settle();
        posterior
    }

    /// Adds a step at `level` whose samples have this mean. Call [`Self::settle`] afterwards.
    pub(super) fn add(&mut self, level: f64, mean: f64) {
        let clamped = |ratio: f64| ratio.clamp(RATIO_RANGE.0, RATIO_RANGE.1).ln();
        let measured = clamped(mean / self.bound);
        let mut rows = self.log.chunks_exact_mut(self.grid.len());
        for steepness in STEEPNESS {
            for floor in FLOORS {
                let expected = |point: usize| {
                    let power = (steepness * (level.ln() - self.grid.at(point))).min(30.0).exp();
                    clamped(floor + (1.0 - floor) * power)
                };
                let off: Vec<f64> = (0..self.grid.len()).map(|x| measured - expected(x)).collect();
                for noise in NOISE {
                    let Some(row) = rows.next() else { return };
                    for (log, off) in row.iter_mut().zip(&off) {
                        *log -= 0.5 * (off / noise).powi(2) + noise.ln();
                    }
                }
            }
        }
    }

    /// Computes the distribution of ln C.
    pub(super) fn settle(&mut self) {
        let points = self.grid.len();
        let best = self.log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut masses = vec![0.0; points];
        let mut steepness = 0.0;
        for (number, row) in self.log.chunks_exact(points).enumerate() {
            let b = STEEPNESS[number / (FLOORS.len() * NOISE.len())];
            for (sum, log) in masses.iter_mut().zip(row) {
                let weight = (log - best).exp();
                *sum += weight;
                steepness += weight * b.ln();
            }
        }
        let whole: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= whole);
        self.cdf = cumulate(&masses);
        self.steepness = (steepness / whole).exp();
    }
}
