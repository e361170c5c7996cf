//! k6's figures of a metric: `avg`, `p(95)`, `count`, `rate` and so on, with times in milliseconds
//! instead of core's nanoseconds.

use std::time::Duration;

use gake_core::metric::{MetricUnit, SeriesValue};
use gake_core::record::Histogram;

use crate::aggregation::Aggregation;

/// A number of core in k6's unit.
#[must_use]
pub fn scaled(unit: MetricUnit, number: f64) -> f64 {
    match unit {
        MetricUnit::Time => number / 1e6,
        MetricUnit::Bytes | MetricUnit::Number => number,
    }
}

/// k6's name of a unit.
pub(crate) const fn contains(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::Time => "time",
        MetricUnit::Bytes => "data",
        MetricUnit::Number => "default",
    }
}

/// A figure of a metric in k6's unit, or `None` if its kind has no such figure. `elapsed` is the
/// period of counter rates.
#[must_use]
pub fn figure(
    aggregation: Aggregation,
    value: &SeriesValue,
    unit: MetricUnit,
    elapsed: Duration,
) -> Option<f64> {
    Some(match (aggregation, value) {
        (Aggregation::Count, SeriesValue::Counter { sum, .. }) => scaled(unit, sum.value()),
        (Aggregation::Rate, SeriesValue::Counter { sum, .. }) => {
            per_second(scaled(unit, sum.value()), elapsed)
        }
        (Aggregation::Rate, SeriesValue::Rate { passed, samples }) => share(*passed, *samples),
        (Aggregation::Value, SeriesValue::Gauge { last, .. }) => scaled(unit, *last),
        (aggregation, SeriesValue::Trend(histogram)) => {
            scaled(unit, of_trend(aggregation, histogram)?)
        }
        _ => return None,
    })
}

/// A sum over a period as a rate a second; 0 for an empty period.
pub(crate) fn per_second(sum: f64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { sum / elapsed.as_secs_f64() }
}

/// `count / total`, or 0 when `total` is 0.
pub(crate) fn share(count: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { count as f64 / total as f64 }
}

fn of_trend(aggregation: Aggregation, histogram: &Histogram) -> Option<f64> {
    Some(match aggregation {
        Aggregation::Avg => histogram.mean(),
        Aggregation::Min => histogram.min_number(),
        Aggregation::Max => histogram.max_number(),
        Aggregation::Med => histogram.interpolated(0.5),
        Aggregation::Percentile(p) => histogram.interpolated(p / 100.0),
        Aggregation::Count | Aggregation::Rate | Aggregation::Value => return None,
    })
}
