//! The part of a whole that one worker, or one agent of a fleet, does on its own.

/// `index` of `of`: everything whose number modulo `of` is `index`. The slices of a whole are
/// disjoint and sum to it exactly, and a slice of a slice is a slice, so that each process, worker
/// or thread knows its part without communication.
///
/// A whole may also be divided by weights ([`Slice::weighted`]): the slice is then one of the items
/// that such a part has, numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Its index, from 0; below `of`.
    pub index: usize,
    /// The number of slices; at least 1.
    pub of: usize,
    /// What it is a slice of.
    base: Base,
}

/// A part by weight: everything whose number modulo `of` is one of `width` numbers from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Base {
    first: usize,
    width: usize,
    of: usize,
}

impl Base {
    const WHOLE: Self = Self { first: 0, width: 1, of: 1 };

    /// How many of the numbers 0..`total` belong to it.
    const fn numbers(self, total: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        let rest = (total % of).saturating_sub(first);
        total / of * width + if rest < width { rest } else { width }
    }

    /// The number, in the whole, of its own item `own`.
    const fn number(self, own: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        if of == 1 {
            return own;
        }
        (own / width).saturating_mul(of).saturating_add(first + own % width)
    }

    /// The place, among its own, of its item with this number in the whole.
    const fn own(self, number: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        number / of * width + (number % of).saturating_sub(first)
    }

    /// The same part among as many units as there are items, `total` at most.
    const fn among(self, total: usize) -> Option<Self> {
        let of = if self.of < total { self.of } else { total };
        if self.first >= of {
            return None;
        }
        let rest = of - self.first;
        let width = if self.width < rest { self.width } else { rest };
        Some(Self { first: self.first, width, of })
    }
}

impl Slice {
    /// Everything.
    pub const WHOLE: Self = Self { index: 0, of: 1, base: Base::WHOLE };

    /// Slice `index` of `of`.
    ///
    /// # Panics
    /// When `index` is not below `of`.
    #[must_use]
    pub const fn new(index: usize, of: usize) -> Self {
        assert!(index < of, "a slice's index is below the number of slices");
        Self { index, of, base: Base::WHOLE }
    }

    /// The `width` units from `first` on of a whole of `of` units: everything whose number modulo
    /// `of` is one of them. Parts whose units are disjoint and are all `of` sum to the whole exactly,
    /// each with as much of it as it has units.
    ///
    /// # Panics
    /// When `width` is 0, or there are fewer units.
    #[must_use]
    pub const fn weighted(first: usize, width: usize, of: usize) -> Self {
        assert!(width > 0 && first < of && width <= of - first, "a part's units are there");
        match width {
            1 => Self::new(first, of),
            width => Self { index: 0, of: 1, base: Base { first, width, of } },
        }
    }

    /// The units that it is a slice of, as [`Slice::weighted`] takes them: the first, their number,
    /// and how many there are. One of one where the whole is not divided by weights.
    #[must_use]
    pub const fn units(self) -> (usize, usize, usize) {
        (self.base.first, self.base.width, self.base.of)
    }

    /// The `parts` slices of this one, at least one.
    pub fn split(self, parts: usize) -> impl Iterator<Item = Self> {
        let parts = parts.max(1);
        (0..parts).map(move |index| self.inner(Self::new(index, parts)))
    }

    /// Slice `inner` of this slice. Only a whole has parts by weight.
    ///
    /// # Panics
    /// When `inner` is a part by weight, and this is not the whole.
    #[must_use]
    pub const fn inner(self, inner: Self) -> Self {
        let is_whole = self.index == 0 && self.of == 1 && self.base.of == 1;
        if is_whole {
            return inner;
        }
        assert!(inner.base.of == 1, "only a whole has parts by weight");
        let (index, of) = (self.index + self.of * inner.index, self.of * inner.of);
        Self { index, of, base: self.base }
    }

    /// The same slice of as many parts as there are items, `total` at most: the last slices have no
    /// part then.
    #[must_use]
    pub const fn among(self, total: usize) -> Option<Self> {
        let Some(base) = self.base.among(total) else { return None };
        let items = base.numbers(total as u64) as usize;
        let of = if self.of < items { self.of } else { items };
        if self.index < of { Some(Self { index: self.index, of, base }) } else { None }
    }

    /// Its part of `total` items. The parts of two slices of the same units differ by at most one.
    #[must_use]
    pub const fn part(self, total: usize) -> usize {
        self.numbers(total as u64) as usize
    }

    /// Its part of `total` items that can be shared, rounded up.
    #[must_use]
    pub const fn part_up(self, total: usize) -> usize {
        let parts = self.base.of.saturating_mul(self.of);
        (total as u128 * self.base.width as u128).div_ceil(parts as u128) as usize
    }

    /// Its part of the whole, 0 to 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.base.width as f64 / (self.base.of as f64 * self.of as f64)
    }

    /// How many of the numbers 0..`total` belong to it.
    #[must_use]
    pub const fn numbers(self, total: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        let total = self.base.numbers(total);
        total / of + (index < total % of) as u64
    }

    /// The number, in the whole, of its own item `own` (from 0).
    #[must_use]
    pub const fn number(self, own: usize) -> usize {
        self.number_of(own as u64) as usize
    }

    /// The place, from 0, among its own items of one that belongs to it: what [`Slice::number`] gives
    /// the number of.
    #[must_use]
    pub const fn own(self, number: usize) -> usize {
        (self.base.own(number as u64) / self.of as u64) as usize
    }

    /// The same of an item beyond what a machine has addresses for; the greatest number if it is
    /// greater than all.
    #[must_use]
    pub const fn number_of(self, own: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        self.base.number(own.saturating_mul(of).saturating_add(index))
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
                prop_assert!((0..total).all(|own| slice.own(slice.number(own)) == own));
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
        fn parts_by_weight_are_the_whole(
            total in 0usize..500,
            weights in proptest::collection::vec(1usize..6, 1..6),
            workers in 1usize..5,
        ) {
            let of = weights.iter().sum::<usize>();
            let (mut first, mut numbers) = (0, Vec::new());
            for weight in weights {
                let part = Slice::weighted(first, weight, of);
                let share = total * weight;
                prop_assert!((part.part(total) * of).abs_diff(share) <= of * weight);
                prop_assert_eq!(part.part(total * of), total * weight, "exact in whole rounds");
                for own in 0..part.part(total) {
                    prop_assert_eq!(part.own(part.number(own)), own);
                }
                let own = part.split(workers).flat_map(|inner| {
                    (0..inner.part(total)).map(move |own| inner.number(own))
                });
                numbers.extend(own);
                // Of fewer items than units the last parts have none.
                let few = part.among(total).map_or(0, |few| few.part(total));
                prop_assert_eq!(few, part.part(total));
                first += weight;
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn great_totals_lose_nothing(total: u64, parts in 1usize..70) {
            let sum: u64 = Slice::WHOLE.split(parts).map(|slice| slice.numbers(total)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}
