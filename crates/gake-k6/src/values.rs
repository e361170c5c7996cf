//! What of a metric k6 shows and compares: `avg`, `p(95)`, `count`, `rate` and the like.
//!
//! Core counts times in nanoseconds; k6 in milliseconds.

use std::time::Duration;

use gake_core::metric::{MetricUnit, SeriesValue};
use gake_core::record::Histogram;

use crate::aggregation::Aggregation;

/// What core's number is in k6's unit.
#[must_use]
pub fn scaled(unit: MetricUnit, number: f64) -> f64 {
    match unit {
        MetricUnit::Time => number / 1e6,
        MetricUnit::Bytes | MetricUnit::Number => number,
    }
}

/// A figure of a metric in k6's unit, where its kind has it. `elapsed` is the time that rates of
/// counters are over.
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

/// A sum over a time as a rate a second.
pub(crate) fn per_second(sum: f64, elapsed: Duration) -> f64 {
    if elapsed.is_zero() { 0.0 } else { sum / elapsed.as_secs_f64() }
}

/// A share of a whole; of nothing it is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
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
