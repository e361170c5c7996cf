//! Random numbers and faults of a seed.

use gake_core::clock::Nanos;

/// A random number generator (SplitMix64).
pub(super) struct SimRandom(pub(super) u64);

impl SimRandom {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// A generator for an agent, independent of the seed's, so that new faults do not change the runs
/// of seeds that once failed.
pub(super) fn own_random(seed: u64, index: usize) -> SimRandom {
    SimRandom(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index as u64)
}

/// A period in which something does not work.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultWindow {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

impl FaultWindow {
    pub(super) const NEVER: Self = Self { from: Nanos::MAX, to: Nanos::MAX };

    pub(super) fn some(random: &mut SimRandom, length: Nanos, longest: Nanos) -> Self {
        let from = random.below(length);
        Self { from, to: from + random.below(longest) }
    }

    pub(super) fn holds(&self, at: Nanos) -> bool {
        (self.from..self.to).contains(&at)
    }
}
