//! Latencies without percentiles, and the histogram of hey and oha.

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

/// A latency for which a tool shows no percentile: exact count, sum, minimum and maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spread {
    count: u64,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl Spread {
    pub fn zeros(count: u64) -> Self {
        Self { count, ..Self::default() }
    }

    /// Adds one value.
    pub fn record(&mut self, value: Nanos) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.count += 1;
    }

    /// The mean in seconds; NaN without samples.
    pub fn mean_s(&self) -> f64 {
        self.sum as f64 / self.count as f64 / 1e9
    }

    /// The smallest value; 0 without samples.
    pub fn min(&self) -> Nanos {
        self.min
    }

    /// The largest value; 0 without samples.
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Eleven rows from the fastest to the slowest response at equal steps, each with the number of
/// responses above the previous row's mark and up to its own, as hey and oha draw them.
pub fn rows(latency: &Histogram) -> Vec<(Nanos, u64)> {
    let (low, high) = (latency.min(), latency.max());
    let mut below = 0;
    (0..=10)
        .map(|row| {
            let mark = low + (u128::from(high - low) * row / 10) as Nanos;
            // The histogram's precision must not move a response past the last row.
            let up_to = if row == 10 { latency.count() } else { latency.count_up_to(mark) };
            let count = up_to - below;
            below = up_to;
            (mark, count)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_exact() {
        let mut spread = Spread::default();
        assert!(spread.mean_s().is_nan());
        for value in [3_000_000_001, 1, 2_000_000_000] {
            spread.record(value);
        }
        assert_eq!((spread.count(), spread.min(), spread.max()), (3, 1, 3_000_000_001));
        assert!((spread.mean_s() - 5.000_000_002 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn rows_hold_every_response_once() {
        let mut latency = Histogram::new();
        for ms in 1..=1_000_u64 {
            latency.record(ms * 1_000_000);
        }
        let rows = rows(&latency);
        assert_eq!(rows.len(), 11);
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), 1_000);
        assert_eq!((rows[0].0, rows[10].0), (1_000_000, 1_000_000_000));
        // Equal steps of an even distribution have equal counts, within the histogram's 0.1 %.
        assert!(rows[1..].iter().all(|(_, count)| (98..=102).contains(count)), "{rows:?}");
        latency.clear();
        latency.record(7);
        assert_eq!(super::rows(&latency)[0], (7, 1));
    }
}
