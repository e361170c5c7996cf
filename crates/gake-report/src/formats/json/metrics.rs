//! Checks and custom metrics in JSON.

use std::collections::BTreeMap;

use gake_core::metric::{SeriesKey, SeriesTable, SeriesValue};
use gake_core::record::Run;
use gake_judge::stats::{per_second, share};
use serde::Serialize;

/// All series of custom metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MetricsJson {
    /// The series, by metric and tags.
    series: Vec<SeriesJson>,
    /// Samples beyond the bound on series; they are counted in the series with the tag `series`
    /// of `other`.
    over_bound: u64,
    /// Samples left out because they are not finite.
    not_numbers: u64,
}

/// One metric under one set of tags.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SeriesJson {
    metric: String,
    /// The unit of its values: `time` (nanoseconds), `bytes` or `number`.
    unit: &'static str,
    tags: BTreeMap<String, String>,
    /// Number of samples.
    samples: u64,
    /// The aggregate, by the metric's kind.
    #[serde(flatten)]
    value: ValueJson,
}

/// The aggregate of the samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ValueJson {
    /// A sum.
    Counter {
        sum: f64,
        /// The sum per second; null when no time was measured.
        per_second: Option<f64>,
    },
    /// The last value.
    Gauge {
        last: f64,
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// The share of values other than zero.
    Rate {
        /// The number of values other than zero.
        passed: u64,
        /// Their share, 0 to 1.
        share: f64,
    },
    /// A distribution.
    Trend {
        /// The smallest.
        min: f64,
        /// The mean.
        mean: f64,
        /// The median.
        p50: f64,
        p90: f64,
        p95: f64,
        p99: f64,
        #[serde(rename = "p99.9")]
        p99_9: f64,
        /// The largest.
        max: f64,
    },
}

/// The custom metrics of a run; `None` when it has none.
pub(super) fn metrics(run: &Run) -> Option<MetricsJson> {
    let table: &SeriesTable = &run.tally.series;
    let form = |(key, value): (&SeriesKey, &SeriesValue)| SeriesJson {
        metric: key.metric.name.clone(),
        unit: key.metric.unit.name(),
        tags: key.tags.pairs().iter().cloned().collect(),
        samples: value.samples(),
        value: ValueJson::new(value, run.completing),
    };
    (!table.is_empty()).then(|| MetricsJson {
        series: table.sorted().into_iter().map(form).collect(),
        over_bound: table.over(),
        not_numbers: table.not_numbers(),
    })
}

impl ValueJson {
    fn new(value: &SeriesValue, span: gake_core::clock::Nanos) -> Self {
        match value {
            SeriesValue::Counter { sum, .. } => Self::Counter {
                sum: sum.value(),
                per_second: (span > 0).then(|| per_second(sum.value(), span)),
            },
            SeriesValue::Gauge { last, min, max, .. } => {
                Self::Gauge { last: *last, min: *min, max: *max }
            }
            SeriesValue::Rate { passed, samples } => {
                Self::Rate { passed: *passed, share: share(*passed, *samples) }
            }
            SeriesValue::Trend(trend) => Self::Trend {
                min: trend.min_number(),
                mean: trend.mean(),
                p50: trend.quantile_number(0.5),
                p90: trend.quantile_number(0.9),
                p95: trend.quantile_number(0.95),
                p99: trend.quantile_number(0.99),
                p99_9: trend.quantile_number(0.999),
                max: trend.max_number(),
            },
        }
    }
}
