//! Reproducible randomness without contention between threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// A numbered sequence of generators: the k-th depends on the seed and k only, so the first n
/// requests draw the same multiset of values whichever threads serve them.
#[derive(Debug)]
pub(crate) struct Draws {
    seed: u64,
    next: AtomicU64,
}

impl Draws {
    /// `purpose` separates sequences with the same seed, so that the draws of one route do not
    /// shift another's.
    pub(crate) fn new(seed: u64, purpose: u64) -> Draws {
        // One SplitMix step spreads neighbouring seeds.
        let seed = SplitMix64::seed_from_u64(seed ^ purpose.rotate_left(32)).next_u64();
        Draws { seed, next: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> Draw {
        let k = self.next.fetch_add(1, Relaxed);
        // Weyl increments: distinct seeds for distinct k; seed_from_u64 hashes them.
        let seed = self.seed.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Draw(Xoshiro256PlusPlus::seed_from_u64(seed))
    }
}

/// One generator, for one request.
#[derive(Debug)]
pub(crate) struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -(1.0 - self.unit()).ln()
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence() {
        let take = |seed| {
            let draws = Draws::new(seed, 1);
            (0..8).map(|_| draws.next().unit()).collect::<Vec<_>>()
        };
        assert_eq!(take(7), take(7));
        assert_ne!(take(7), take(8));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let draws = Draws::new(42, 1);
        let n = 200_000;
        let (mut unit, mut exponential, mut normal, mut square) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            unit += draws.next().unit();
            exponential += draws.next().exponential();
            let z = draws.next().normal();
            normal += z;
            square += z * z;
        }
        let n = f64::from(n);
        assert!((unit / n - 0.5).abs() < 0.005);
        assert!((exponential / n - 1.0).abs() < 0.015);
        assert!((normal / n).abs() < 0.015);
        assert!((square / n - 1.0).abs() < 0.02);
    }
}
