//! A sum that is the same in whatever order its parts were added.

use super::bucket::LIMIT;

/// One, in the unit of fractions.
const ONE: f64 = LIMIT.next_up();

/// A sum of numbers, whole parts and fractions apart. Whole numbers are summed exactly, others to
/// `2^-64`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// The sum of whole parts.
    pub(crate) whole: i128,
    /// The sum of fractions, in units of `2^-64`.
    pub(crate) fraction: i128,
}

impl Sum {
    /// Adds a whole number `count` times.
    #[inline]
    pub(super) fn add_whole(&mut self, value: u64, count: u64) {
        // Less than 2^127 for any two factors but the largest.
        let product = u128::from(value) * u128::from(count);
        self.whole = self.whole.saturating_add_unsigned(product);
    }

    /// Adds a number. Magnitudes count as at most `2^64`; NaN counts as 0.
    #[inline]
    pub fn add(&mut self, value: f64) {
        // Nearly all are whole, times in nanoseconds and counts, and need not be taken apart.
        let whole = value as i64;
        if whole as f64 == value && whole != i64::MAX {
            self.whole = self.whole.saturating_add(whole.into());
            return;
        }
        let value = value.clamp(-LIMIT, LIMIT);
        self.whole = self.whole.saturating_add(value.trunc() as i128);
        self.fraction = self.fraction.saturating_add((value.fract() * ONE) as i128);
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: Self) {
        self.whole = self.whole.saturating_add(other.whole);
        self.fraction = self.fraction.saturating_add(other.fraction);
    }

    /// The sum as a double.
    #[must_use]
    pub fn value(self) -> f64 {
        self.whole as f64 + self.fraction as f64 / ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_makes_no_difference() {
        let parts = [0.1, -0.3, 1e15, 0.7, -1e15, 1e-15];
        let sum = |parts: &mut dyn Iterator<Item = &f64>| {
            let mut sum = Sum::default();
            parts.for_each(|part| sum.add(*part));
            sum
        };
        assert_eq!(sum(&mut parts.iter()), sum(&mut parts.iter().rev()));
        assert!((sum(&mut parts.iter()).value() - (0.5 + 1e-15)).abs() < 1e-18);
        assert_eq!(ONE, 64.0_f64.exp2());
    }

    #[test]
    fn whole_numbers_are_summed_as_their_parts_would_be() {
        let large = 63.0_f64.exp2();
        for (value, whole) in [
            (3.0, 3),
            (-0.0, 0),
            (-7.0, -7),
            (large, 1 << 63),
            (-large, -(1 << 63)),
            (1e300, LIMIT as i128),
            (f64::NAN, 0),
        ] {
            let mut sum = Sum::default();
            sum.add(value);
            assert_eq!(sum, Sum { whole, fraction: 0 }, "{value}");
        }
    }
}
