//! What a seed decides.

use gake_core::clock::Nanos;
use gake_core::random::SplitMix64;

/// Random numbers of a seed.
pub(super) struct Dice(SplitMix64);

impl Dice {
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

/// Random numbers of an agent beside those of the seed, so that faults may be added without making
/// other runs of the seeds that once failed.
pub(super) fn own_dice(seed: u64, index: usize) -> Dice {
    Dice::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ index as u64)
}

/// A time in which something does not work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

impl Outage {
    pub(super) const NEVER: Self = Self { from: Nanos::MAX, to: Nanos::MAX };

    pub(super) fn some(dice: &mut Dice, length: Nanos, longest: Nanos) -> Self {
        let from = dice.below(length);
        Self { from, to: from + dice.below(longest) }
    }

    pub(super) fn holds(&self, at: Nanos) -> bool {
        (self.from..self.to).contains(&at)
    }
}
