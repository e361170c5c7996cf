//! Exact division of a run among agents and workers, without communication.

/// `index` of `of`: all items whose number modulo `of` is `index`. Slices are disjoint and sum to
/// the whole; a slice of a slice is a slice.
///
/// A whole may first be divided by weights ([`Slice::weighted`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Below `of`.
    pub index: usize,
    /// The number of slices; at least 1.
    pub of: usize,
    /// The weighted division that it is a slice of.
    base: WeightedSlice,
}

/// A weighted slice: all items whose number modulo `of` is in `first..first + width`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct WeightedSlice {
    first: usize,
    width: usize,
    of: usize,
}

impl WeightedSlice {
    const WHOLE: Self = Self { first: 0, width: 1, of: 1 };

    const fn count_u64(self, total: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        let rest = (total % of).saturating_sub(first);
        total / of * width + if rest < width { rest } else { width }
    }

    const fn number(self, own: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        if of == 1 {
            return own;
        }
        (own / width).saturating_mul(of).saturating_add(first + own % width)
    }

    /// The inverse of `number`.
    const fn own(self, number: u64) -> u64 {
        let (first, width, of) = (self.first as u64, self.width as u64, self.of as u64);
        number / of * width + (number % of).saturating_sub(first)
    }

    /// The same with at most `total` units.
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
    /// The whole.
    pub const WHOLE: Self = Self { index: 0, of: 1, base: WeightedSlice::WHOLE };

    /// Slice `index` of `of`.
    ///
    /// # Panics
    /// When `index` is not below `of`.
    #[must_use]
    pub const fn new(index: usize, of: usize) -> Self {
        assert!(index < of, "a slice's index is below the number of slices");
        Self { index, of, base: WeightedSlice::WHOLE }
    }

    /// `width` of `of` units, from `first` on: all items whose number modulo `of` is one of them.
    /// Slices of disjoint units that are all `of` sum to the whole, in proportion to their units.
    ///
    /// # Panics
    /// When `width` is 0, or the units exceed `of`.
    #[must_use]
    pub const fn weighted(first: usize, width: usize, of: usize) -> Self {
        assert!(
            width > 0 && first < of && width <= of - first,
            "the units of a slice are within the whole"
        );
        match width {
            1 => Self::new(first, of),
            width => Self { index: 0, of: 1, base: WeightedSlice { first, width, of } },
        }
    }

    /// The arguments of [`Slice::weighted`]; `(0, 1, 1)` without weights.
    #[must_use]
    pub const fn units(self) -> (usize, usize, usize) {
        (self.base.first, self.base.width, self.base.of)
    }

    /// Divides this slice into `count` slices, at least one.
    pub fn split(self, count: usize) -> impl Iterator<Item = Self> {
        let count = count.max(1);
        (0..count).map(move |index| self.inner(Self::new(index, count)))
    }

    /// Slice `inner` of this slice.
    ///
    /// # Panics
    /// When `inner` is weighted and this is not the whole.
    #[must_use]
    pub const fn inner(self, inner: Self) -> Self {
        let is_whole = self.index == 0 && self.of == 1 && self.base.of == 1;
        if is_whole {
            return inner;
        }
        assert!(inner.base.of == 1, "only the whole is divided by weights");
        let (index, of) = (self.index + self.of * inner.index, self.of * inner.of);
        Self { index, of, base: self.base }
    }

    /// The slice when there are at most `total` slices. `None` for those beyond.
    #[must_use]
    pub const fn among(self, total: usize) -> Option<Self> {
        let Some(base) = self.base.among(total) else { return None };
        let items = base.count_u64(total as u64) as usize;
        let of = if self.of < items { self.of } else { items };
        if self.index < of { Some(Self { index: self.index, of, base }) } else { None }
    }

    /// Its number of `total` items. Slices of the same units differ by at most one.
    #[must_use]
    pub const fn count(self, total: usize) -> usize {
        self.count_u64(total as u64) as usize
    }

    /// Its proportion of `total`, rounded up: for resources that slices may share.
    #[must_use]
    pub const fn count_up(self, total: usize) -> usize {
        let of = self.base.of.saturating_mul(self.of);
        (total as u128 * self.base.width as u128).div_ceil(of as u128) as usize
    }

    /// Its share of the whole, 0 to 1.
    #[must_use]
    pub const fn fraction(self) -> f64 {
        self.base.width as f64 / (self.base.of as f64 * self.of as f64)
    }

    /// As [`Slice::count`], in 64 bits.
    #[must_use]
    pub const fn count_u64(self, total: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        let total = self.base.count_u64(total);
        total / of + (index < total % of) as u64
    }

    /// The number in the whole of its item `own`, from 0.
    #[must_use]
    pub const fn number(self, own: usize) -> usize {
        self.number_u64(own as u64) as usize
    }

    /// The inverse of [`Slice::number`], for an item of this slice.
    #[must_use]
    pub const fn own(self, number: usize) -> usize {
        (self.base.own(number as u64) / self.of as u64) as usize
    }

    /// As [`Slice::number`], in 64 bits. Saturates.
    #[must_use]
    pub const fn number_u64(self, own: u64) -> u64 {
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
                .flat_map(|slice| (0..slice.count(total)).map(move |own| slice.number(own)))
                .collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
            for slice in Slice::WHOLE.split(parts) {
                prop_assert!((0..total).all(|own| slice.own(slice.number(own)) == own));
                prop_assert_eq!(slice.count_u64(total as u64), slice.count(total) as u64);
                prop_assert!(slice.count(total).abs_diff(total / parts) <= 1);
            }
        }

        #[test]
        fn slices_of_a_slice_are_the_slice(
            total in 0usize..500, agents in 1usize..9, agent in 0usize..9, workers in 1usize..9
        ) {
            let slice = Slice::new(agent % agents, agents);
            let mut numbers: Vec<_> = slice
                .split(workers)
                .flat_map(|inner| (0..inner.count(total)).map(move |own| inner.number(own)))
                .collect();
            numbers.sort_unstable();
            let own: Vec<_> = (0..slice.count(total)).map(|own| slice.number(own)).collect();
            prop_assert_eq!(numbers, own);
        }

        #[test]
        fn weighted_slices_are_the_whole(
            total in 0usize..500,
            weights in proptest::collection::vec(1usize..6, 1..6),
            workers in 1usize..5,
        ) {
            let of = weights.iter().sum::<usize>();
            let (mut first, mut numbers) = (0, Vec::new());
            for weight in weights {
                let part = Slice::weighted(first, weight, of);
                let share = total * weight;
                prop_assert!((part.count(total) * of).abs_diff(share) <= of * weight);
                prop_assert_eq!(part.count(total * of), total * weight, "exact in whole rounds");
                for own in 0..part.count(total) {
                    prop_assert_eq!(part.own(part.number(own)), own);
                }
                let own = part.split(workers).flat_map(|inner| {
                    (0..inner.count(total)).map(move |own| inner.number(own))
                });
                numbers.extend(own);
                // With fewer items than units, the last slices are empty.
                let few = part.among(total).map_or(0, |few| few.count(total));
                prop_assert_eq!(few, part.count(total));
                first += weight;
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
        }

        #[test]
        fn great_totals_lose_nothing(total: u64, parts in 1usize..70) {
            let sum: u64 = Slice::WHOLE.split(parts).map(|slice| slice.count_u64(total)).sum();
            prop_assert_eq!(sum, total);
        }
    }
}
