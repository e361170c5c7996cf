//! The posterior of the capacity under one bounded share of bad requests.
//!
//! A step at rate r with k bad requests of n has the likelihood Poisson(k; n·q) with
//!
//! ```text
//! q = floor + (p − floor)·(r/C)^b        within [0.2 p, 10 p]
//! ```
//!
//! where p is the share allowed, so that q = p at r = C. Integrated out on grids are the steepness
//! b, the floor (bad requests independent of the load), the rate ν of independent bad episodes (bad
//! requests come in bursts, so a step's count is overdispersed: lognormal with variance ln(1 +
//! 1/(νD)) over D seconds), and the step-to-step noise τ of ln C (a noisy neighbour). The count is
//! clamped at both ends, since the curve does not hold far from C.

use super::grid::{Grid, STEP, cumulate};
use crate::objective::BadCount;

/// The share is clamped to this multiple of the one allowed ...
pub(super) const CAP: f64 = 10.0;
/// ... and to this from below.
const LEAST: f64 = 0.2;

/// Steepness b, with its prior weights.
const STEEPNESS: [(f64, f64); 9] = [
    (1.5, 0.4),
    (3.0, 0.6),
    (6.0, 1.0),
    (12.0, 1.0),
    (24.0, 1.0),
    (48.0, 1.0),
    (96.0, 0.7),
    (200.0, 0.4),
    (600.0, 0.3),
];

/// The floor as a share of p, whether it comes in the same bursts, and its prior weight.
const FLOORS: [(f64, bool, f64); 8] = [
    (0.001, false, 0.5),
    (0.08, false, 0.15),
    (0.25, false, 0.12),
    (0.5, false, 0.11),
    (0.75, false, 0.1),
    (0.25, true, 0.04),
    (0.5, true, 0.05),
    (0.8, true, 0.06),
];

/// Independent bad episodes a second, with their prior weights.
const EPISODES: [(f64, f64); 6] =
    [(0.015, 0.2), (0.05, 0.25), (0.15, 0.2), (0.5, 0.15), (2.0, 0.12), (20.0, 0.08)];

/// Step-to-step standard deviation of ln C, with its prior weights.
pub(super) const NOISE: [(f64, f64); 5] =
    [(0.0, 0.4), (0.02, 0.2), (0.05, 0.15), (0.1, 0.15), (0.2, 0.1)];

/// Nodes of the sum over the overdispersion, in standard deviations.
const NODES: usize = 13;
const NODE_REACH: f64 = 3.2;

/// Rows this much (in ln) less likely than the best are discarded: they cannot recover.
const HOPELESS: f64 = 30.0;

/// The data of a step for this posterior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepCount {
    pub(super) level: f64,
    pub(super) bad: BadCount,
    pub(super) measured: f64,
    /// The variance of the bad count, from its autocorrelation.
    pub(super) variance: f64,
}

/// The posterior of ln C and the nuisance parameters.
#[derive(Debug, Clone)]
pub(super) struct SharePosterior {
    allowed: f64,
    cap: f64,
    grid: Grid,
    /// Log weights by noise, row (steepness, floor, episodes) and point.
    log: Vec<f64>,
    alive: Vec<bool>,
    /// Log weights of the episode rates, from the autocorrelation.
    episodes: [f64; EPISODES.len()],
    /// The estimated episode rate, if there is one.
    pub(super) episode_rate: Option<f64>,
    /// The distribution function of ln C.
    pub(super) cdf: Vec<f64>,
    /// The geometric mean of b.
    pub(super) steepness: f64,
    /// The mean of τ.
    pub(super) noise: f64,
}

const ROWS: usize = STEEPNESS.len() * FLOORS.len() * EPISODES.len();

impl SharePosterior {
    pub(super) fn new(allowed: f64, grid: &Grid) -> Self {
        let points = grid.len();
        let mut log = Vec::with_capacity(NOISE.len() * ROWS * points);
        for (_, noise) in NOISE {
            for (_, steepness) in STEEPNESS {
                for (_, _, floor) in FLOORS {
                    for (_, episodes) in EPISODES {
                        let weight = (noise * steepness * floor * episodes).ln();
                        log.extend(std::iter::repeat_n(weight, points));
                    }
                }
            }
        }
        let mut posterior = Self {
            allowed,
            cap: cap(allowed),
            grid: grid.clone(),
            log,
            alive: vec![true; ROWS],
            episodes: [0.0; EPISODES.len()],
            episode_rate: None,
            cdf: Vec::new(),
            steepness: 0.0,
            noise: 0.0,
        };
        posterior.settle();
        posterior
    }

    /// Adds a step. Call [`Self::settle`] afterwards.
    pub(super) fn add(&mut self, step: &StepCount) {
        let of = step.bad.of.max(1.0);
        let bad = step.bad.bad.clamp(LEAST * self.allowed * of, self.cap * of);
        let points = self.grid.len();
        let mut row = vec![0.0; points];
        let mut smoother = NoiseSmoother::new(points);
        for (f, &(floor, bursts, _)) in FLOORS.iter().enumerate() {
            for (e, &(episodes, _)) in EPISODES.iter().enumerate() {
                let table =
                    LikelihoodTable::new(self, (bad, of), floor, bursts, episodes * step.measured);
                for (s, &(steepness, _)) in STEEPNESS.iter().enumerate() {
                    let number = (s * FLOORS.len() + f) * EPISODES.len() + e;
                    if !self.alive[number] {
                        continue;
                    }
                    // The level n/D is itself a noisy count: the mean of (n/D)^b exceeds C^b by
                    // about this.
                    let correction = (0.5 / of * steepness * steepness).min(1.0);
                    let level = step.level.ln();
                    for (point, value) in row.iter_mut().enumerate() {
                        *value = table.at(steepness * (level - self.grid.at(point)) - correction);
                    }
                    self.add_row(number, &row, &mut smoother);
                }
            }
        }
    }

    /// Adds a row of log likelihoods, smoothed along ln C by each step noise.
    fn add_row(&mut self, number: usize, row: &[f64], smoother: &mut NoiseSmoother) {
        let points = row.len();
        let best = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        smoother.load(row, best);
        for t in 0..NOISE.len() {
            let start = (t * ROWS + number) * points;
            let log = &mut self.log[start..start + points];
            if t == 0 {
                log.iter_mut().zip(row).for_each(|(log, value)| *log += value);
            } else {
                let smoothed = smoother.smooth(t);
                log.iter_mut()
                    .zip(smoothed)
                    .for_each(|(log, sum)| *log += (sum + 1e-30).ln() + best);
            }
        }
    }

    /// Estimates an upper bound of the episode rate from the autocorrelation within the steps near
    /// C.
    pub(super) fn learn_episodes(&mut self, near: &[StepCount]) {
        let significant =
            || near.iter().filter(|s| s.bad.bad > 0.0 && s.bad.bad < 5.0 * self.allowed * s.bad.of);
        if significant().map(|s| s.bad.bad).sum::<f64>() < 10.0 {
            self.episodes = [0.0; EPISODES.len()];
            return;
        }
        let excess: f64 = significant().map(|s| (s.variance - s.bad.bad).max(0.0)).sum();
        let square: f64 = significant().map(|s| s.bad.bad * s.bad.bad / s.measured).sum();
        let rate = square / excess.max(1e-3 * square);
        let low = EPISODES[0].0;
        let high = EPISODES[EPISODES.len() - 1].0;
        // Short steps miss slow correlation, so the estimate is high.
        let centre = (rate / 5.0).clamp(low, high).ln();
        for (log, (episodes, prior)) in self.episodes.iter_mut().zip(EPISODES) {
            let far = (episodes.ln() - centre) / 0.6;
            *log = (0.1 * prior + (-0.5 * far * far).exp()).ln() - prior.ln();
        }
        self.episode_rate = Some(rate);
    }

    /// Computes the distribution of ln C and the means of the nuisance parameters.
    pub(super) fn settle(&mut self) {
        let points = self.grid.len();
        let of_row = |number: usize| self.episodes[number % EPISODES.len()];
        let mut best_of = vec![f64::NEG_INFINITY; ROWS];
        for (slot, chunk) in self.log.chunks_exact(points).enumerate() {
            let number = slot % ROWS;
            if self.alive[number] {
                let best = chunk.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                best_of[number] = best_of[number].max(best + of_row(number));
            }
        }
        let best = best_of.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut masses = vec![0.0; points];
        let (mut steepness, mut noise) = (0.0, 0.0);
        for (slot, chunk) in self.log.chunks_exact(points).enumerate() {
            let number = slot % ROWS;
            if best_of[number] < best - HOPELESS {
                continue;
            }
            let shift = of_row(number) - best;
            let mut mass = 0.0;
            for (sum, log) in masses.iter_mut().zip(chunk) {
                let weight = if log + shift < -HOPELESS { 0.0 } else { (log + shift).exp() };
                *sum += weight;
                mass += weight;
            }
            steepness += mass * STEEPNESS[number / (FLOORS.len() * EPISODES.len())].0.ln();
            noise += mass * NOISE[slot / ROWS].0;
        }
        for (alive, best_of) in self.alive.iter_mut().zip(&best_of) {
            *alive = *alive && *best_of >= best - HOPELESS;
        }
        let whole: f64 = masses.iter().sum();
        masses.iter_mut().for_each(|mass| *mass /= whole);
        self.cdf = cumulate(&masses);
        self.steepness = (steepness / whole).exp();
        self.noise = noise / whole;
    }
}

/// The share at which the curve is clamped.
pub(super) fn cap(allowed: f64) -> f64 {
    (CAP * allowed).min(f64::midpoint(1.0, allowed))
}

/// Convolves a likelihood along ln C with normals of the step noises, in reused buffers.
struct NoiseSmoother {
    /// The likelihood, with its edges repeated on both sides.
    padded: Vec<f64>,
    smoothed: Vec<f64>,
    offsets: [[usize; NORMAL.len()]; NOISE.len()],
}

impl NoiseSmoother {
    const REACH: f64 = 2.4;
    const PAD: usize = (Self::REACH * NOISE[NOISE.len() - 1].0 / STEP) as usize + 1;

    fn new(points: usize) -> Self {
        let half = (NORMAL.len() / 2) as f64;
        let offset = |deviation: f64, node: usize| {
            let z = Self::REACH * (node as f64 - half) / half;
            (Self::PAD as f64 + z * deviation / STEP).round() as usize
        };
        Self {
            padded: vec![0.0; points + 2 * Self::PAD],
            smoothed: vec![0.0; points],
            offsets: NOISE
                .map(|(deviation, _)| std::array::from_fn(|node| offset(deviation, node))),
        }
    }

    fn load(&mut self, row: &[f64], best: f64) {
        let end = Self::PAD + row.len();
        let inner = &mut self.padded[Self::PAD..end];
        inner
            .iter_mut()
            .zip(row)
            .for_each(|(likelihood, value)| *likelihood = (value - best).exp());
        let (first, last) = (inner[0], inner[row.len() - 1]);
        self.padded[..Self::PAD].fill(first);
        self.padded[end..].fill(last);
    }

    fn smooth(&mut self, noise: usize) -> &[f64] {
        let whole: f64 = NORMAL.iter().sum();
        self.smoothed.fill(0.0);
        for (weight, offset) in NORMAL.iter().zip(self.offsets[noise]) {
            let shifted = &self.padded[offset..offset + self.smoothed.len()];
            let weight = weight / whole;
            self.smoothed.iter_mut().zip(shifted).for_each(|(sum, value)| *sum += weight * value);
        }
        &self.smoothed
    }
}

/// exp(−z²/2) at z = −2.4, −1.8 ... 2.4.
const NORMAL: [f64; 9] = [
    0.056_134_762_8,
    0.197_898_699_1,
    0.486_752_256_0,
    0.835_270_211_4,
    1.0,
    0.835_270_211_4,
    0.486_752_256_0,
    0.197_898_699_1,
    0.056_134_762_8,
];

/// The log likelihood of one step for one floor and one episode rate, as a function of u = ln((q −
/// floor)/(p − floor)): tabulated, since every steepness and capacity needs it.
struct LikelihoodTable {
    values: Vec<f64>,
}

impl LikelihoodTable {
    /// Below, only the floor counts; above, the cap.
    const LOW: f64 = -9.0;
    const HIGH: f64 = 4.5;
    const STEP: f64 = 0.03;

    fn new(
        posterior: &SharePosterior,
        (bad, of): (f64, f64),
        floor: f64,
        bursts: bool,
        episodes: f64,
    ) -> Self {
        let (p, cap) = (posterior.allowed, posterior.cap);
        let variance = (1.0 / episodes).ln_1p();
        let deviation = variance.sqrt();
        let z = |node: usize| NODE_REACH * (2.0 * node as f64 / (NODES - 1) as f64 - 1.0);
        let weights: [f64; NODES] = std::array::from_fn(|node| (-0.5 * z(node).powi(2)).exp());
        let factors: [f64; NODES] =
            std::array::from_fn(|node| (deviation * z(node) - variance / 2.0).exp());
        let sum: f64 = weights.iter().sum();
        let base = p * floor;
        let len = ((Self::HIGH - Self::LOW) / Self::STEP) as usize + 2;
        let value = |entry: usize| {
            let u = Self::LOW + entry as f64 * Self::STEP;
            let excess = (p * (1.0 - floor) * u.exp()).min(cap - base);
            let logs: [f64; NODES] = std::array::from_fn(|node| {
                let burst = factors[node];
                let q = if bursts { (base + excess) * burst } else { base + excess * burst };
                let mean = of * q.clamp(LEAST * p, cap);
                bad * mean.ln() - mean
            });
            let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logs.iter().zip(&weights).map(|(log, w)| w * (log - best).exp()).sum();
            best + (total / sum).ln()
        };
        Self { values: (0..len).map(value).collect() }
    }

    fn at(&self, u: f64) -> f64 {
        let position = (u.clamp(Self::LOW, Self::HIGH) - Self::LOW) / Self::STEP;
        let entry = position as usize;
        let fraction = position - entry as f64;
        self.values[entry] * (1.0 - fraction) + self.values[entry + 1] * fraction
    }
}
