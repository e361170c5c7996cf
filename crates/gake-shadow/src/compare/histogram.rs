//! Sparse histograms with bins of equal ratio: bounded and mergeable.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::bounded;

/// Counts by bin: values with the same rounded `value / width` share a bin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogBins(#[serde(deserialize_with = "bins")] BTreeMap<i32, u64>);

/// Bins on each side of zero; values farther out are in the last.
const BINS_MAX: i32 = 5_000;

fn bins<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<i32, u64>, D::Error> {
    let read = bounded::map::<{ 2 * BINS_MAX as usize + 1 }, _, i32, bounded::Count>(input)?;
    let within = |bin: i32| bin.clamp(-BINS_MAX, BINS_MAX);
    Ok(read.into_iter().map(|(bin, count)| (within(bin), count.0)).collect())
}

impl LogBins {
    fn add(&mut self, value: f64, width: f64) {
        let bin = (value / width).round().clamp(f64::from(-BINS_MAX), f64::from(BINS_MAX)) as i32;
        *self.0.entry(bin).or_default() += 1;
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The bin of the value with this rank, counted from 0.
    fn at_rank(&self, rank: u64) -> Option<i32> {
        let mut before = 0;
        for (bin, count) in &self.0 {
            before += count;
            if before > rank {
                return Some(*bin);
            }
        }
        None
    }

    fn merge(&mut self, other: &Self) {
        for (bin, count) in &other.0 {
            *self.0.entry(*bin).or_default() += count;
        }
    }
}

/// The width of a bin in ln: 1 %.
const TIME_WIDTH: f64 = 0.01;

/// A histogram of times, accurate to half a percent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeHistogram(LogBins);

impl TimeHistogram {
    /// Adds a time in nanoseconds.
    pub fn add(&mut self, ns: u64) {
        self.0.add((ns.max(1) as f64).ln(), TIME_WIDTH);
    }

    /// A quantile in nanoseconds; 0 without samples.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> f64 {
        let count = self.0.count();
        let rank = (quantile * count as f64).ceil().max(1.0) as u64 - 1;
        self.0.at_rank(rank).map_or(0.0, |bin| (f64::from(bin) * TIME_WIDTH).exp())
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

/// The width of a bin in ln: 0.2 %.
const RATIO_WIDTH: f64 = 0.002;

/// A histogram of ratios of times, accurate to a thousandth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RatioHistogram(LogBins);

impl RatioHistogram {
    /// Adds `a / b`.
    pub fn add(&mut self, a: u64, b: u64) {
        self.0.add((a.max(1) as f64 / b.max(1) as f64).ln(), RATIO_WIDTH);
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.count()
    }

    /// The median with its distribution-free 95 % confidence interval, between the order statistics
    /// of rank n/2 ± 0.98·√n (normal approximation of the binomial; Conover 1999, section 3.2).
    /// `None` below 10 values.
    #[must_use]
    pub fn median(&self) -> Option<Median> {
        let count = self.0.count();
        if count < 10 {
            return None;
        }
        let half = 0.98 * (count as f64).sqrt();
        let middle = count as f64 / 2.0;
        let at = |rank: f64| {
            let rank = rank.clamp(0.0, (count - 1) as f64) as u64;
            self.0.at_rank(rank).map(|bin| (f64::from(bin) * RATIO_WIDTH).exp())
        };
        Some(Median {
            low: at((middle - half).floor())?,
            middle: at(middle)?,
            high: at((middle + half).ceil())?,
        })
    }

    /// The numbers of ratios above and below `ratio`, excluding its own bin.
    #[must_use]
    pub fn sides(&self, ratio: f64) -> (u64, u64) {
        let edge = (ratio.ln() / RATIO_WIDTH).round() as i32;
        let above = self.0.0.range(edge + 1..).map(|(_, count)| count).sum();
        let below = self.0.0.range(..edge).map(|(_, count)| count).sum();
        (above, below)
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

/// A median with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Median {
    /// The lower end.
    pub low: f64,
    /// The median.
    pub middle: f64,
    /// The upper end.
    pub high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_half_a_percent() {
        let mut times = TimeHistogram::default();
        (1..=10_000u64).for_each(|n| times.add(n * 1_000));
        for quantile in [0.01, 0.5, 0.99, 1.0] {
            let exact = quantile * 10_000_000.0;
            assert!((times.quantile(quantile) / exact - 1.0).abs() < 0.006, "{quantile}");
        }
        assert_eq!(TimeHistogram::default().quantile(0.5), 0.0);
        times.add(0);
        times.add(u64::MAX);
    }

    #[test]
    fn a_median_has_its_interval_and_sides() {
        let mut ratios = RatioHistogram::default();
        (0..1_000u64).for_each(|n| ratios.add(1_150 + n / 10, 1_000));
        let median = ratios.median().unwrap();
        assert!((median.middle - 1.2).abs() < 0.003, "{median:?}");
        assert!(median.low < 1.2 && median.high > 1.2 && median.high - median.low < 0.02);
        assert_eq!(ratios.sides(1.0), (1_000, 0));
        assert_eq!(ratios.sides(2.0), (0, 1_000));
    }
}
