//! Random numbers by place: pure functions of a seed and a counter, so that every worker draws the
//! same ones alone.

/// A random number in [0, 1) for a place. SplitMix64 as a counter-based generator (Steele, Lea,
/// Flood 2014).
#[inline]
pub(super) fn unit(seed: u64, place: u64) -> f64 {
    (random_number(seed, place) >> 11) as f64 / (1u64 << 53) as f64
}

/// A random number for a place.
#[inline]
#[must_use]
pub fn random_number(seed: u64, place: u64) -> u64 {
    let mut z = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Any number of random numbers for a place.
#[derive(Debug)]
pub(super) struct Counter {
    seed: u64,
    next: u64,
}

impl Counter {
    pub(super) fn new(seed: u64, place: u64) -> Self {
        Self { seed: random_number(seed, place), next: 0 }
    }

    /// A random number in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.next += 1;
        unit(self.seed, self.next)
    }

    /// A random number in (0, 1].
    pub(super) fn above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }
}
