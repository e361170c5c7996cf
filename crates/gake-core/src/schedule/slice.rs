//! The part of a whole that one worker, or one agent of a fleet, does on its own.

/// `index` of `of`: everything whose number modulo `of` is `index`. The slices of a whole are
/// disjoint and sum to it exactly, and a slice of a slice is a slice, so that each process, worker
/// or thread knows its part without communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Its index, from 0; below `of`.
    pub index: usize,
    /// The number of slices; at least 1.
    pub of: usize,
}

impl Slice {
    /// Everything.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Slice `index` of `of`.
    ///
    /// # Panics
    /// When `index` is not below `of`.
    #[must_use]
    pub const fn new(index: usize, of: usize) -> Self {
        assert!(index < of, "a slice's index is below the number of slices");
        Self { index, of }
    }

    /// The `parts` slices of this one, at least one.
    pub fn split(self, parts: usize) -> impl Iterator<Item = Self> {
        let parts = parts.max(1);
        (0..parts).map(move |index| self.inner(Self { index, of: parts }))
    }

    /// Slice `inner` of this slice.
    #[must_use]
    pub const fn inner(self, inner: Self) -> Self {
        Self { index: self.index + self.of * inner.index, of: self.of * inner.of }
    }

    /// The same slice of as many parts as there are items, `total` at most: the last slices have no
    /// part then.
    #[must_use]
    pub const fn among(self, total: usize) -> Option<Self> {
        let of = if self.of < total { self.of } else { total };
        if self.index < of { Some(Self { index: self.index, of }) } else { None }
    }

    /// Its part of `total` items. The parts of two slices differ by at most one.
    #[must_use]
    pub const fn part(self, total: usize) -> usize {
        total / self.of + (self.index < total % self.of) as usize
    }

    /// How many of the numbers 0..`total` belong to it.
    #[must_use]
    pub const fn numbers(self, total: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        total / of + (index < total % of) as u64
    }

    /// The number, in the whole, of its own item `own` (from 0).
    #[must_use]
    pub const fn number(self, own: usize) -> usize {
        own * self.of + self.index
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_are_the_whole(total in 0usize..500, parts in 1usize..20) {
            let mut numbers: Vec<_> = Slice::WHOLE
                .split(parts)
                .flat_map(|slice| (0..slice.part(total)).map(move |own| slice.number(own)))
                .collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
            for slice in Slice::WHOLE.split(parts) {
                prop_assert_eq!(slice.numbers(total as u64), slice.part(total) as u64);
                prop_assert!(slice.part(total).abs_diff(total / parts) <= 1);
            }
        }

        #[test]
        fn slices_of_a_slice_are_the_slice(
            total in 0usize..500, agents in 1usize..9, agent in 0usize..9, workers in 1usize..9
        ) {
            let slice = Slice::new(agent % agents, agents);
            let mut numbers: Vec<_> = slice
                .split(workers)
                .flat_map(|inner| (0..inner.part(total)).map(move |own| inner.number(own)))
                .collect();
            numbers.sort_unstable();
            let own: Vec<_> = (0..slice.part(total)).map(|own| slice.number(own)).collect();
            prop_assert_eq!(numbers, own);
        }

        #[test]
        fn great_totals_lose_nothing(total: u64, parts in 1usize..70) {
            let sum: u64 = Slice::WHOLE.split(parts).map(|slice| slice.numbers(total)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}
