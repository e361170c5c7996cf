//! Random numbers and faults of a seed.

use gake_core::clock::Nanos;
use gake_core::random::SplitMix64;

/// Random numbers of a seed.
pub(super) struct SimRandom(SplitMix64);

impl SimRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next_u64()
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
    SimRandom::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index as u64)
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
