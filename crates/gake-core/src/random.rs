//! Random numbers: SplitMix64 (Steele, Lea, Flood 2014), by index or as a sequence.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Number `index` of the sequence of `seed`, so that every worker can draw it independently.
#[inline]
#[must_use]
pub const fn random_number(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(GAMMA));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// As [`random_number`], uniform in [0, 1).
#[inline]
#[must_use]
pub fn random_unit(seed: u64, index: u64) -> f64 {
    unit(random_number(seed, index))
}

/// The upper 53 bits of a number, as many as a double holds, in [0, 1).
#[inline]
fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1u64 << 53) as f64
}

/// The sequence of a seed.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The sequence from its first number on.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let number = random_number(self.0, 0);
        self.0 = self.0.wrapping_add(GAMMA);
        number
    }

    /// The next number, uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.next_u64())
    }

    /// The next number, uniform below `bound`; 0 if that is 0.
    pub const fn below(&mut self, bound: usize) -> usize {
        ((self.next_u64() as u128 * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference_implementation() {
        // Of https://prng.di.unimi.it/splitmix64.c with the seed 1234567.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        let mut sequence = SplitMix64::new(1_234_567);
        for (index, expected) in (0..).zip(expected) {
            assert_eq!(random_number(1_234_567, index), expected);
            assert_eq!(sequence.next_u64(), expected);
        }
    }
}
