//! A sum that does not depend on the order of additions.

use super::bucket::LIMIT;

/// 1 in the unit of fractions.
const ONE: f64 = LIMIT.next_up();

/// A sum of numbers: exact for integers, to `2^-64` for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// The sum of integer parts.
    pub(crate) whole: i128,
    /// The sum of fractions, in units of `2^-64`.
    pub(crate) fraction: i128,
}

impl Sum {
    /// Adds an integer `count` times.
    #[inline]
    pub(super) fn add_whole(&mut self, value: u64, count: u64) {
        // Less than 2^127 for any two factors but the largest.
        let product = u128::from(value) * u128::from(count);
        self.whole = self.whole.saturating_add_unsigned(product);
    }

    /// Adds a number, clamped to ±`2^64`; NaN counts as 0.
    #[inline]
    pub fn add(&mut self, value: f64) {
        // Fast path: most values are integers.
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
    fn the_order_does_not_matter() {
        let values = [0.1, -0.3, 1e15, 0.7, -1e15, 1e-15];
        let sum = |values: &mut dyn Iterator<Item = &f64>| {
            let mut sum = Sum::default();
            values.for_each(|value| sum.add(*value));
            sum
        };
        assert_eq!(sum(&mut values.iter()), sum(&mut values.iter().rev()));
        assert!((sum(&mut values.iter()).value() - (0.5 + 1e-15)).abs() < 1e-18);
        assert_eq!(ONE, 64.0_f64.exp2());
    }

    #[test]
    fn integers_take_the_fast_path_with_the_same_sum() {
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
