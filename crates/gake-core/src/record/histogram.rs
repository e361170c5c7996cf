//! A latency histogram of bounded size and error that merges without loss.

use crate::clock::Nanos;

/// Longest latency told apart: a day. Longer ones count as a day.
const CEILING: Nanos = 86_400 * 1_000_000_000;

/// Three significant digits: a value read back is within 0.1 % of the one recorded.
const DIGITS: u8 = 3;

/// Nanosecond values: an HDR histogram, with minimum, maximum and sum kept exactly.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    min: Nanos,
    max: Nanos,
    sum: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        #[allow(clippy::expect_used, reason = "constant arguments within the documented range")]
        let buckets = hdrhistogram::Histogram::new(DIGITS).expect("3 digits are allowed");
        Self { buckets, min: Nanos::MAX, max: 0, sum: 0 }
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one value. Allocates only when it is larger than any before it has room for.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// Adds one value `count` times.
    #[inline]
    pub fn record_n(&mut self, value: Nanos, count: u64) {
        if count == 0 {
            return;
        }
        let value = value.min(CEILING);
        // Resizing up to the ceiling cannot fail, so the error has no case.
        let _ = self.buckets.record_n(value, count);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value) * u128::from(count);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        let _ = self.buckets.add(&other.buckets);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }

    /// Forgets every value and keeps the room.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        self.buckets.reset();
        (self.min, self.max, self.sum) = (Nanos::MAX, 0, 0);
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The smallest value, exactly; 0 when there is none.
    #[must_use]
    pub fn min(&self) -> Nanos {
        if self.is_empty() { 0 } else { self.min }
    }

    /// The largest value, exactly; 0 when there is none.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// The mean, from the exact sum; 0 when there is no value.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum as f64 / self.count() as f64 }
    }

    /// The sum of all values, exactly.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The standard deviation of the values, to the precision of the buckets.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.buckets.stdev() }
    }

    /// The smallest value that at least `quantile` of all values do not exceed (the nearest-rank
    /// definition), to the precision of the buckets, within the exact minimum and maximum.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Nanos {
        if self.is_empty() {
            return 0;
        }
        self.buckets.value_at_quantile(quantile.clamp(0.0, 1.0)).clamp(self.min, self.max)
    }

    /// Number of values up to and with `value`, to the precision of the buckets.
    #[must_use]
    pub fn count_up_to(&self, value: Nanos) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.buckets.count_between(0, value.min(CEILING))
    }

    /// Number of values within `low..=high`, to the precision of the buckets.
    #[must_use]
    pub fn count_between(&self, low: Nanos, high: Nanos) -> u64 {
        if self.is_empty() { 0 } else { self.buckets.count_between(low, high.min(CEILING)) }
    }

    /// The buckets, for formats that write them.
    #[must_use]
    pub fn buckets(&self) -> &hdrhistogram::Histogram<u64> {
        &self.buckets
    }

    /// A histogram from buckets read from a file, with the exact parts when the file has them.
    #[must_use]
    pub fn from_buckets(
        buckets: hdrhistogram::Histogram<u64>,
        exact: Option<(Nanos, Nanos, u128)>,
    ) -> Self {
        let estimate = || {
            let sum = buckets.iter_recorded().map(|v| {
                u128::from(buckets.median_equivalent(v.value_iterated_to()))
                    * u128::from(v.count_at_value())
            });
            (buckets.min(), buckets.max(), sum.sum())
        };
        let (min, max, sum) = exact.unwrap_or_else(estimate);
        let mut whole = Self { min, max, sum, ..Self::default() };
        // A foreign file may have other precision; adding converts to ours.
        let _ = whole.buckets.add(&buckets);
        if whole.is_empty() {
            whole.clear();
        }
        whole
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Histogram({} values, {}..={})", self.count(), self.min(), self.max)
    }
}
