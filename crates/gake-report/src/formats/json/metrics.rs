//! Checks, and metrics of the run's own, in JSON.

use std::collections::BTreeMap;

use gake_core::metric::{SeriesKey, SeriesTable, SeriesValue};
use gake_core::record::Run;
use gake_judge::stats::{per_second, share};
use serde::Serialize;

/// Every series of the run's own metrics.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct MetricsForm {
    /// The series, by metric and tags.
    series: Vec<SeriesForm>,
    /// Samples of more series than are told apart: they are in those with the tag `series` of
    /// `other`.
    over_bound: u64,
    /// Samples left out because they were no finite numbers.
    not_numbers: u64,
}

/// One metric under one set of tags.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SeriesForm {
    /// The metric.
    metric: String,
    /// What its values are: `time` (nanoseconds), `bytes` or `number`.
    unit: &'static str,
    /// Its tags.
    tags: BTreeMap<String, String>,
    /// How many samples there were.
    samples: u64,
    /// What they add up to, by the metric's kind.
    #[serde(flatten)]
    value: ValueForm,
}

/// What samples add up to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ValueForm {
    /// To their sum.
    Counter {
        /// The sum.
        sum: f64,
        /// The sum a second; null when no time was measured.
        per_second: Option<f64>,
    },
    /// To the last of them.
    Gauge {
        /// The last.
        last: f64,
        /// The smallest.
        min: f64,
        /// The largest.
        max: f64,
    },
    /// To the share of those that are not zero.
    Rate {
        /// How many are not zero.
        passed: u64,
        /// The share of them, 0 to 1.
        share: f64,
    },
    /// To a distribution.
    Trend {
        /// The smallest.
        min: f64,
        /// The mean.
        mean: f64,
        /// The median.
        p50: f64,
        /// 90 % are not above it.
        p90: f64,
        /// 95 % are not above it.
        p95: f64,
        /// 99 % are not above it.
        p99: f64,
        /// 99.9 % are not above it.
        #[serde(rename = "p99.9")]
        p99_9: f64,
        /// The largest.
        max: f64,
    },
}

/// The metrics of a run; `None` when it has none of its own.
pub(super) fn metrics(run: &Run) -> Option<MetricsForm> {
    let table: &SeriesTable = &run.tally.series;
    let form = |(key, value): (&SeriesKey, &SeriesValue)| SeriesForm {
        metric: key.metric.name.clone(),
        unit: key.metric.unit.name(),
        tags: key.tags.pairs().iter().cloned().collect(),
        samples: value.samples(),
        value: ValueForm::new(value, run.completing),
    };
    (!table.is_empty()).then(|| MetricsForm {
        series: table.sorted().into_iter().map(form).collect(),
        over_bound: table.over(),
        not_numbers: table.not_numbers(),
    })
}

impl ValueForm {
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
