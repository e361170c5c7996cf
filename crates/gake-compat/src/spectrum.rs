//! The percentiles of HdrHistogram's own tools: five steps each time the distance to 100 % halves.

use gake_core::record::Histogram;

/// Steps each time the distance to 100 % halves.
const TICKS: f64 = 5.0;

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// The share of values, 0 to 1, that are at most `value`.
    pub(super) quantile: f64,
    /// The number of values that are at most `value`.
    pub(super) count: u64,
    /// The upper limit of the value's bucket.
    pub(super) value: u64,
}

/// The levels of a histogram, from the first bucket to the last. An empty one has one level.
pub(super) fn levels(histogram: &Histogram) -> Vec<Level> {
    let total = histogram.count();
    let (mut levels, mut percent) = (Vec::new(), 0.0);
    let (mut count, mut value) = (0, 0);
    for bucket in histogram.buckets() {
        count += bucket.count;
        value = bucket.high;
        let covered = 100.0 * count as f64 / total as f64;
        while percent <= covered {
            levels.push(Level { quantile: percent / 100.0, count, value });
            if count == total {
                break;
            }
            let halvings = (100.0 / (100.0 - percent)).log2().floor() + 1.0;
            percent += 100.0 / (TICKS * halvings.exp2());
        }
    }
    levels.push(Level { quantile: 1.0, count, value });
    levels
}

/// The values in microseconds, the unit of the C library's histograms.
pub(super) fn in_microseconds(histogram: &Histogram) -> Histogram {
    let mut whole = Histogram::new();
    for bucket in histogram.buckets() {
        let nanos = bucket.middle().clamp(histogram.min(), histogram.max());
        whole.record_n(nanos / 1_000, bucket.count);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_steps_a_halving() {
        let mut histogram = Histogram::new();
        (1..=1_000).for_each(|value| histogram.record(value));
        let levels = levels(&histogram);
        let percents: Vec<_> = levels.iter().take(13).map(|l| l.quantile * 100.0).collect();
        let expected =
            [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 55.0, 60.0, 65.0, 70.0, 75.0, 77.5, 80.0];
        for (percent, expected) in percents.iter().zip(expected) {
            assert!((percent - expected).abs() < 1e-9, "{percents:?}");
        }
        assert_eq!(levels[5], Level { quantile: 0.5, count: 500, value: 500 });
        let last = levels.last().unwrap();
        assert_eq!(*last, Level { quantile: 1.0, count: 1_000, value: 1_000 });
        assert!(levels.iter().all(|level| level.count as f64 >= level.quantile * 1_000.0));
    }

    #[test]
    fn nothing_and_one_thing() {
        let mut histogram = Histogram::new();
        assert_eq!(levels(&histogram), [Level { quantile: 1.0, count: 0, value: 0 }]);
        histogram.record(7);
        let seven = |quantile| Level { quantile, count: 1, value: 7 };
        assert_eq!(levels(&histogram), [seven(0.0), seven(1.0)]);
    }

    #[test]
    fn microseconds_stay_within_the_precision() {
        let mut nanos = Histogram::new();
        for value in [900, 1_500, 1_234_567, 86_400_000_000_000] {
            nanos.record(value);
        }
        let micros = in_microseconds(&nanos);
        assert_eq!(micros.count(), 4);
        assert_eq!(micros.quantile(1.0), 86_400_000_000);
        assert_eq!(micros.count_between(1_234, 1_234), 1);
    }
}
