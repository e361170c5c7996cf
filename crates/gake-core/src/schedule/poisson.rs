//! The positions of Poisson arrivals on the scale of counts, by number.
//!
//! The n-th arrival of a unit-rate Poisson process lies at the sum of n + 1 unit exponentials.
//! Adding them up would cost each slice as much as the whole, so they are drawn top down: 1,024
//! gaps sum to a Gamma(1,024) variate; of 2a gaps with a known sum, the first a take the share
//! Beta(a, a), down to single gaps. Each draw depends only on the seed and its index, so every
//! slice computes the same process independently; a walk with stride s makes at most 1 + log2(s)
//! draws for an arrival.

use std::f64::consts::TAU;

use crate::random::{SplitMix64, random_number, random_unit};

/// Halvings of a block.
const DEPTH: usize = 10;

/// Arrivals of a block.
const BLOCK: u64 = 1 << DEPTH;

/// Separates the draws of blocks and halves.
const BLOCK_STREAM: u64 = 0x6a09_e667_f3bc_c909;

/// Consecutive gaps.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct GapSpan {
    /// The sum of the block's gaps before it.
    offset: f64,
    /// The sum of its gaps.
    sum: f64,
}

/// Computes positions of arrivals; cheap in ascending order.
#[derive(Debug, Clone)]
pub(super) struct PoissonWalk {
    seed: u64,
    /// The current block, and the sum of all gaps before it.
    block: u64,
    base: f64,
    /// The spans around the last gap, from the block down.
    path: [GapSpan; DEPTH + 1],
    /// The sum of the first half of each span.
    halves: [f64; DEPTH],
    /// The last gap's index in the block, and the depth to which the path is valid.
    last: u64,
    known: usize,
    #[cfg(test)]
    draws: u64,
}

impl PoissonWalk {
    pub(super) fn new(seed: u64) -> Self {
        let mut walk = Self {
            seed,
            block: 0,
            base: 0.0,
            path: [GapSpan::default(); DEPTH + 1],
            halves: [0.0; DEPTH],
            last: 0,
            known: 0,
            #[cfg(test)]
            draws: 0,
        };
        walk.enter(0);
        walk
    }

    /// The position of arrival `number`.
    #[inline]
    pub(super) fn position(&mut self, number: u64) -> f64 {
        let block = number / BLOCK;
        if block < self.block {
            *self = Self::new(self.seed);
        }
        while self.block < block {
            self.base += self.path[0].sum;
            self.enter(self.block + 1);
        }
        self.base + self.within(number % BLOCK)
    }

    fn enter(&mut self, block: u64) {
        self.block = block;
        self.path[0] = GapSpan { offset: 0.0, sum: gamma(self.seed ^ BLOCK_STREAM, block) };
        (self.last, self.known) = (0, 0);
    }

    /// The sum of the block's gaps up to and including `gap`.
    fn within(&mut self, gap: u64) -> f64 {
        // Spans above the highest differing bit contain both gaps.
        let differs = 64 - (gap ^ self.last).leading_zeros() as usize;
        let mut level = self.known.min(DEPTH - differs.min(DEPTH));
        let mut is_drawn = level < self.known;
        while level < DEPTH {
            let span = self.path[level];
            let half = BLOCK >> (level + 1);
            if !is_drawn {
                let node = (1 << level) | (gap >> (DEPTH - level));
                self.halves[level] = span.sum * symmetric_beta(self.seed, self.block, node, half);
                #[cfg(test)]
                {
                    self.draws += 1;
                }
            }
            is_drawn = false;
            let first = self.halves[level];
            self.path[level + 1] = if gap & half == 0 {
                GapSpan { offset: span.offset, sum: first }
            } else {
                GapSpan { offset: span.offset + first, sum: span.sum - first }
            };
            level += 1;
        }
        (self.last, self.known) = (gap, DEPTH);
        let single = self.path[DEPTH];
        single.offset + single.sum
    }
}

/// A Beta(a, a) variate for a node of a block's tree (Ulrich 1984).
#[inline]
fn symmetric_beta(seed: u64, block: u64, node: u64, a: u64) -> f64 {
    let index = (block * BLOCK + node) * 2;
    let (radius, angle) = (random_unit(seed, index), random_unit(seed, index + 1));
    let radius = (1.0 - radius.powf(2.0 / (2 * a - 1) as f64)).max(0.0).sqrt();
    0.5 + 0.5 * radius * (TAU * angle).cos()
}

/// The sum of a block's unit exponentials: Gamma(1,024) by the method of Marsaglia and Tsang
/// (2000).
fn gamma(seed: u64, block: u64) -> f64 {
    let d = BLOCK as f64 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let mut draws = SplitMix64::new(random_number(seed, block));
    // Keeps the sequence of older versions.
    draws.next_u64();
    let above_zero = |draws: &mut SplitMix64| 1.0 - draws.unit();
    loop {
        let normal = (-2.0 * above_zero(&mut draws).ln()).sqrt() * (TAU * draws.unit()).cos();
        let cube = (1.0 + c * normal).powi(3);
        let accepted = 0.5 * normal * normal + d - d * cube + d * cube.ln();
        if cube > 0.0 && above_zero(&mut draws).ln() < accepted {
            return d * cube;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(seed: u64, count: u64) -> Vec<f64> {
        let mut walk = PoissonWalk::new(seed);
        (0..count).map(|number| walk.position(number)).collect()
    }

    #[test]
    fn positions_do_not_depend_on_stride_or_order() {
        let whole = positions(5, 5_000);
        for stride in [1, 2, 3, 7, 64, 1_000] {
            for first in [0, 1, stride - 1] {
                let mut walk = PoissonWalk::new(5);
                for number in (first..5_000).step_by(stride) {
                    assert_eq!(walk.position(number as u64), whole[number], "{first} + {stride} n");
                }
            }
        }
        let mut walk = PoissonWalk::new(5);
        for number in [4_999, 3, 2_048, 2_047, 1_023, 1_024, 0] {
            assert_eq!(walk.position(number), whole[number as usize]);
        }
    }

    #[test]
    fn a_slice_draws_only_for_its_own_arrivals() {
        for (stride, each) in [(1, 1), (2, 2), (16, 5), (1_024, 10), (5_000, 10)] {
            let mut walk = PoissonWalk::new(9);
            let own = 4_096;
            (0..own).for_each(|number| {
                walk.position(number * stride);
            });
            // A walk begins with a whole path.
            assert!(walk.draws <= own * each + 10, "stride {stride}: {} for {own}", walk.draws);
        }
    }

    #[test]
    fn gaps_are_exponential_and_independent() {
        const COUNT: u64 = 100_000;
        let positions = positions(11, COUNT);
        let before = std::iter::once(0.0).chain(positions.iter().copied());
        let mut gaps: Vec<f64> =
            positions.iter().zip(before).map(|(now, then)| now - then).collect();
        assert!(gaps.iter().all(|gap| *gap >= 0.0));
        let mean = gaps.iter().sum::<f64>() / COUNT as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / COUNT as f64;
        // Five standard deviations: that of the mean is 1 / sqrt(n), of the mean square
        // sqrt(20 / n), of the lag products sqrt(3 / n).
        let n = (COUNT as f64).sqrt();
        assert!((mean - 1.0).abs() < 5.0 / n, "{mean}");
        assert!((square - 2.0).abs() < 5.0 * 20_f64.sqrt() / n, "{square}");
        for lag in [1, 2, 3, 512, 1_024] {
            let pairs = gaps.iter().zip(&gaps[lag..]);
            let product = pairs.map(|(a, b)| a * b).sum::<f64>() / (gaps.len() - lag) as f64;
            assert!((product - 1.0).abs() < 5.0 * 3_f64.sqrt() / n, "lag {lag}: {product}");
        }
        // Kolmogorov-Smirnov: 1.95 / sqrt(n) is exceeded once in a thousand seeds.
        gaps.sort_by(f64::total_cmp);
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(rank, gap)| (1.0 - (-gap).exp() - rank as f64 / COUNT as f64).abs());
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / n, "{distance}");
    }

    #[test]
    fn counts_of_equal_times_vary_as_poisson_counts_do() {
        let positions = positions(23, 200_000);
        for width in [10.0, 100.0, 3_000.0] {
            let windows = (positions[199_999] / width) as usize;
            let mut counts = vec![0_f64; windows + 1];
            for position in &positions {
                counts[(position / width) as usize] += 1.0;
            }
            counts.truncate(windows);
            let mean = counts.iter().sum::<f64>() / windows as f64;
            let variance =
                counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / windows as f64;
            // The ratio is 1, give or take sqrt(2 / windows).
            let bound = 5.0 * (2.0 / windows as f64).sqrt();
            assert!((variance / mean - 1.0).abs() < bound, "{width}: {}", variance / mean);
        }
    }
}
