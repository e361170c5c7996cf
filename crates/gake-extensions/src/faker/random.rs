//! Random numbers with a seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// SplitMix64: fast, and good enough for made-up data.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// One by a seed; 0 is a random one.
    pub(super) fn new(seed: i64) -> Self {
        Self(match seed {
            0 => RandomState::new().build_hasher().finish(),
            seed => seed as u64,
        })
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `count`; 0 if that is 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        // The bias is one in 2^64 / count.
        ((u128::from(self.bits()) * count as u128) >> 64) as usize
    }

    /// An integer of a range, both ends included.
    pub(super) fn integer(&mut self, min: i64, max: i64) -> i64 {
        let (min, max) = (min.min(max), min.max(max));
        let count = (i128::from(max) - i128::from(min) + 1) as u128;
        let step = (u128::from(self.bits()) * count) >> 64;
        (i128::from(min) + step as i128) as i64
    }

    /// A number from 0 to 1, without 1.
    pub(super) fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number of a range.
    pub(super) fn float(&mut self, min: f64, max: f64) -> f64 {
        min + self.share() * (max - min)
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_both_ends() {
        let mut random = Random::new(1);
        let drawn: Vec<_> = (0..1000).map(|_| random.integer(-1, 1)).collect();
        assert!((-1..=1).all(|number| drawn.contains(&number)));
        random.integer(i64::MIN, i64::MAX);
        assert_eq!(random.below(0), 0);
    }
}
