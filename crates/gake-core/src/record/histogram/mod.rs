//! A histogram of bounded size and error that merges without loss.
//!
//! Log-linear, with 1,024 buckets an octave: an error of 0.1 %. Integers from 2,048 up have the
//! buckets of an HDR histogram with three digits, smaller ones a bucket each. An octave takes 4 KB
//! from its first value on; a histogram of few values takes less.

mod bucket;
mod bucket_counts;
mod exact;
mod pages;
mod sum;

use crate::clock::Nanos;
use bucket_counts::BucketCounts;
pub use exact::HistogramError;
pub use sum::Sum;

/// Longest latency: a day. Longer ones are clamped.
const CEILING: Nanos = 86_400 * 1_000_000_000;

/// A distribution of values, with exact count, minimum, maximum and sum.
///
/// Latencies are integers, in nanoseconds ([`Histogram::record`]); other metrics may be fractional
/// ([`Histogram::record_number`]).
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: BucketCounts,
    count: u64,
    min: f64,
    max: f64,
    sum: Sum,
    /// Whether a value is not an integer.
    is_fractional: bool,
}

/// A bucket: values that the histogram does not distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The smallest value.
    pub low: Nanos,
    /// The largest value.
    pub high: Nanos,
    /// The number of values recorded.
    pub count: u64,
}

impl Bucket {
    /// The middle of the bucket, rounded up.
    #[must_use]
    pub fn middle(self) -> Nanos {
        self.low + (self.high - self.low).div_ceil(2)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: BucketCounts::default(),
            count: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: Sum::default(),
            is_fractional: false,
        }
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps memory for values from 2^`bits.start` to 2^`bits.end`. Requires an empty histogram.
    pub(super) fn make_room(&mut self, bits: std::ops::Range<u32>) {
        self.counts.make_room(bits.map(|bits| bucket::number((1_u64 << bits) as f64)));
    }

    /// Adds a latency. Allocates only for the first few values, and the first value of an octave.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.record_n(value, 1);
    }

    /// Adds a latency `count` times.
    #[inline]
    pub fn record_n(&mut self, value: Nanos, count: u64) {
        if count == 0 {
            return;
        }
        let value = value.min(CEILING);
        self.sum.add_whole(value, count);
        // A day of nanoseconds is exact in a double.
        self.place(value as i64 as f64, count);
    }

    /// Adds a number. Magnitudes below 2^-64 count as zero, those above 2^64 are clamped; NaN and
    /// infinities are ignored.
    #[inline]
    pub fn record_number(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        // Adding 0 turns -0 into 0.
        let value = value.clamp(-bucket::LIMIT, bucket::LIMIT) + 0.0;
        self.is_fractional |= value.fract() != 0.0;
        self.sum.add(value);
        self.place(value, 1);
    }

    #[inline]
    fn place(&mut self, value: f64, count: u64) {
        self.count = self.count.saturating_add(count);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.counts.add(bucket::number(value), count);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.counts.merge(&other.counts);
        self.count = self.count.saturating_add(other.count);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum.merge(other.sum);
        self.is_fractional |= other.is_fractional;
    }

    /// Removes all values; keeps the memory that they took.
    pub fn clear(&mut self) {
        if self.is_empty() {
            return;
        }
        let mut counts = std::mem::take(&mut self.counts);
        counts.clear(self.count);
        *self = Self { counts, ..Self::default() };
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The exact minimum of latencies; 0 if empty.
    #[must_use]
    pub fn min(&self) -> Nanos {
        self.min_number() as Nanos
    }

    /// The exact maximum of latencies; 0 if empty.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max_number() as Nanos
    }

    /// The exact minimum; 0 if empty.
    #[must_use]
    pub fn min_number(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.min }
    }

    /// The exact maximum; 0 if empty.
    #[must_use]
    pub fn max_number(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.max }
    }

    /// The mean, from the exact sum; 0 if empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum.value() / self.count as f64 }
    }

    /// The exact sum of latencies.
    #[must_use]
    pub fn sum(&self) -> u128 {
        u128::try_from(self.sum.whole).unwrap_or(0)
    }

    /// The sum, exact to 2^-64 a value.
    #[must_use]
    pub fn sum_number(&self) -> f64 {
        self.sum.value()
    }

    /// The standard deviation, to the precision of the buckets; 0 if empty.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let count = self.count as f64;
        let middle = if self.is_fractional { bucket::middle } else { bucket::whole_middle };
        let buckets = || self.counts.buckets().map(|(number, n)| (middle(number), n as f64));
        let mean = buckets().fold(0.0, |sum, (value, n)| sum + value * n / count);
        let squares = buckets().fold(0.0, |sum, (value, n)| sum + (value - mean).powi(2) * n);
        (squares / count).sqrt()
    }

    /// The nearest-rank quantile of latencies, to the precision of the buckets, clamped to the
    /// exact minimum and maximum; 0 if empty.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let Some(number) = self.bucket_at(quantile) else { return 0 };
        let (low, high) = bucket::whole_magnitudes(number.max(0));
        let value = if quantile <= 0.0 { low } else { high };
        value.clamp(self.min, self.max) as Nanos
    }

    /// As [`Histogram::quantile`], for numbers: the largest integer of the bucket, or its middle if
    /// values are fractional.
    #[must_use]
    pub fn quantile_number(&self, quantile: f64) -> f64 {
        let Some(number) = self.bucket_at(quantile) else { return 0.0 };
        let value = if self.is_fractional { bucket::middle } else { bucket::whole_top };
        value(number).clamp(self.min, self.max)
    }

    /// The quantile interpolated linearly between neighbours (as in spreadsheets and k6), to the
    /// precision of the buckets; exact at the minimum and maximum.
    #[must_use]
    pub fn interpolated(&self, quantile: f64) -> f64 {
        let Some(last) = self.count.checked_sub(1) else { return 0.0 };
        let index = quantile.clamp(0.0, 1.0) * last as f64;
        let below = index.floor();
        let low = self.at_index(below as u64);
        let share = index - below;
        if share == 0.0 {
            return low;
        }
        low + (self.at_index(below as u64 + 1) - low) * share
    }

    /// The value at `index` in sorted order.
    fn at_index(&self, index: u64) -> f64 {
        if index == 0 {
            return self.min;
        }
        if index + 1 >= self.count {
            return self.max;
        }
        let middle = if self.is_fractional { bucket::middle } else { bucket::whole_middle };
        let number = self.counts.at_rank(index + 1).map_or(self.max, middle);
        number.clamp(self.min, self.max)
    }

    fn bucket_at(&self, quantile: f64) -> Option<i32> {
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        self.counts.at_rank(rank.clamp(1, self.count.max(1)))
    }

    /// Number of values up to `value` inclusive, to the precision of the buckets.
    #[must_use]
    pub fn count_up_to(&self, value: Nanos) -> u64 {
        self.counts.count_within(i32::MIN, bucket::number(value.min(CEILING) as f64))
    }

    /// Number of values in `low..=high`, to the precision of the buckets.
    #[must_use]
    pub fn count_between(&self, low: Nanos, high: Nanos) -> u64 {
        let number = |value: Nanos| bucket::number(value.min(CEILING) as f64);
        self.counts.count_within(number(low), number(high))
    }

    /// The non-empty buckets of latencies, in order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.buckets().map(|(number, count)| {
            let (low, high) = bucket::whole_magnitudes(number.max(0));
            Bucket { low: low as Nanos, high: high as Nanos, count }
        })
    }

    /// The non-empty buckets of numbers, in order: lower bound, upper bound, count.
    pub fn number_buckets(&self) -> impl Iterator<Item = (f64, f64, u64)> + '_ {
        let edges = if self.is_fractional { bucket::magnitudes } else { bucket::whole_magnitudes };
        self.counts.buckets().map(move |(number, count)| {
            let (low, high) = edges(number);
            if number < 0 { (-high, -low, count) } else { (low, high, count) }
        })
    }

    /// The largest latency in the bucket of `value`.
    #[cfg(test)]
    fn top_of_bucket(value: Nanos) -> Nanos {
        bucket::whole_top(bucket::number(value.min(CEILING) as f64)) as Nanos
    }

    /// A histogram of latencies from its buckets (any value in each, and its count) and exact
    /// figures.
    #[must_use]
    pub fn from_buckets(
        buckets: impl IntoIterator<Item = (Nanos, u64)>,
        min: Nanos,
        max: Nanos,
        sum: u128,
    ) -> Self {
        let mut whole = Self::default();
        for (value, count) in buckets.into_iter().filter(|bucket| bucket.1 > 0) {
            whole.place(value.min(CEILING) as f64, count);
        }
        if whole.is_empty() {
            return whole;
        }
        let min = min.min(CEILING) as f64;
        let sum = Sum { whole: i128::try_from(sum).unwrap_or(i128::MAX), fraction: 0 };
        Self { min, max: (max.min(CEILING) as f64).max(min), sum, ..whole }
    }

    /// Heap memory in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.counts.heap_bytes()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (min, max) = (self.min_number(), self.max_number());
        write!(f, "Histogram({} values, {min}..={max})", self.count())
    }
}

#[cfg(test)]
mod tests;
