//! Thresholds: a script's bounds on its metrics.

mod expression;
mod selector;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, SeriesTable, SeriesValue};

pub use expression::{ExpressionError, ThresholdExpression, ThresholdOperator};
pub use selector::{MetricSelector, SelectorError};

use crate::aggregation::Aggregation;
use crate::options::ThresholdOptions;
use crate::values::figure;

/// How often thresholds are judged during a run.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// The thresholds of a run, by their keys in the script.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds(BTreeMap<String, MetricThresholds>, IsOff);

/// Whether thresholds only name sub-metrics.
type IsOff = bool;

/// The thresholds on one metric, or on its samples with some tags.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricThresholds {
    /// The metric and tags that they apply to.
    pub selector: MetricSelector,
    /// The metric.
    pub metric: Arc<Definition>,
    thresholds: Vec<Threshold>,
}

#[derive(Debug, Clone, PartialEq)]
struct Threshold {
    source: String,
    expression: ThresholdExpression,
    /// The time after which its failure aborts the run, if ever.
    aborts_after: Option<Duration>,
}

/// An error in thresholds, in k6's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// An expression is invalid.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// A key names no metric.
    #[error("unable to validate threshold expressions; reason: parsing metric name failed, {0}")]
    Selector(#[from] SelectorError),
    /// The metric does not exist.
    #[error("invalid threshold defined on {0}; reason: no metric name {0:?} found")]
    Unknown(String),
    /// Metrics of this kind do not have the requested statistic.
    #[error(
        "invalid threshold {source_text:?} applied on metric {metric}; reason: unsupported \
         aggregation method {aggregation} on metric of type {}. supported aggregation methods \
         for this metric are: {}",
        .kind.name(),
        Aggregation::of_kind(*.kind)
    )]
    Method {
        /// The expression.
        source_text: String,
        /// The metric, with the tags of a sub-metric.
        metric: String,
        /// The statistic.
        aggregation: String,
        /// The metric's kind.
        kind: MetricKind,
    },
}

/// The results of thresholds at an instant.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThresholdResults {
    /// Expressions and whether they hold, by key.
    pub metrics: BTreeMap<String, Vec<ThresholdResult>>,
    /// Whether a failed threshold aborts the run.
    pub aborts: bool,
}

/// The result of one threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdResult {
    /// The expression, as it was written.
    pub source: String,
    /// The statistic it compares.
    pub aggregation: String,
    /// The value of the statistic.
    pub figure: f64,
    /// Whether it holds.
    pub ok: bool,
}

impl Thresholds {
    /// The thresholds of the options, on the defined metrics.
    ///
    /// # Errors
    /// When one is not a valid threshold, or its metric does not exist.
    pub fn new(
        options: &BTreeMap<String, Vec<ThresholdOptions>>,
        metrics: &Registry,
    ) -> Result<Self, ThresholdError> {
        let one = |(key, list): (&String, &Vec<ThresholdOptions>)| {
            let thresholds = list.iter().map(Threshold::new).collect::<Result<Vec<_>, _>>()?;
            let selector = MetricSelector::parse(key)?;
            let metric = metrics.get(&selector.metric).cloned();
            let metric = metric.ok_or_else(|| ThresholdError::Unknown(key.clone()))?;
            for threshold in &thresholds {
                threshold.check(key, metric.kind)?;
            }
            Ok((key.clone(), MetricThresholds { selector, metric, thresholds }))
        };
        options.iter().map(one).collect::<Result<_, _>>().map(|all| Self(all, false))
    }

    /// The same without bounds: sub-metrics are shown if they have samples.
    #[must_use]
    pub fn off(mut self) -> Self {
        self.0.values_mut().for_each(|metric| metric.thresholds.clear());
        self.1 = true;
        self
    }

    /// Whether they only name sub-metrics.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The thresholds of each metric or sub-metric, by key.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &MetricThresholds)> {
        self.0.iter().map(|(key, thresholds)| (key.as_str(), thresholds))
    }

    /// Judges the samples in all of these tables, recorded in `elapsed`. Until the run `is_over`,
    /// thresholds without samples hold.
    #[must_use]
    pub fn judge(
        &self,
        series: &[&SeriesTable],
        elapsed: Duration,
        is_over: bool,
    ) -> ThresholdResults {
        let mut results = ThresholdResults::default();
        for (key, on) in &self.0 {
            let value = on.value(series);
            let judged = value.samples() > 0 || is_over;
            let one = |threshold: &Threshold| {
                let figure = threshold.figure(&value, on, elapsed);
                let ok = !judged || threshold.holds(figure, &value);
                // A run that is over cannot be aborted.
                results.aborts |=
                    !is_over && !ok && threshold.aborts_after.is_some_and(|after| elapsed >= after);
                ThresholdResult {
                    source: threshold.source.clone(),
                    aggregation: threshold.expression.aggregation.to_string(),
                    figure,
                    ok,
                }
            };
            results.metrics.insert(key.clone(), on.thresholds.iter().map(one).collect());
        }
        results
    }
}

impl MetricThresholds {
    /// Their expressions, as they were written.
    pub fn expressions(&self) -> impl Iterator<Item = &str> {
        self.thresholds.iter().map(|threshold| threshold.source.as_str())
    }

    /// Whether the metric is a time, whose bounds are in milliseconds.
    #[must_use]
    pub fn is_time(&self) -> bool {
        self.metric.unit == MetricUnit::Time
    }

    /// The aggregated samples that they apply to.
    #[must_use]
    pub fn value(&self, series: &[&SeriesTable]) -> SeriesValue {
        let mut sum = SeriesValue::new(self.metric.kind);
        for table in series {
            for (_, value) in table.select(&self.selector.metric, &self.selector.tags) {
                sum.merge(value);
            }
        }
        sum
    }
}

impl Threshold {
    fn new(options: &ThresholdOptions) -> Result<Self, ExpressionError> {
        let source = options.expression.as_str();
        let delay = options.delay_abort_eval.unwrap_or_default().to_std();
        Ok(Self {
            source: source.to_owned(),
            expression: source.trim().parse()?,
            aborts_after: options.abort_on_fail.then_some(delay),
        })
    }

    /// Whether its statistic exists for the metric, whose name with its tags is `key`.
    fn check(&self, key: &str, kind: MetricKind) -> Result<(), ThresholdError> {
        let aggregation = self.expression.aggregation;
        if aggregation.fits(kind) {
            return Ok(());
        }
        Err(ThresholdError::Method {
            source_text: self.source.clone(),
            metric: key.to_owned(),
            aggregation: match aggregation {
                Aggregation::Percentile(_) => "p".to_owned(),
                other => other.to_string(),
            },
            kind,
        })
    }

    fn figure(&self, value: &SeriesValue, on: &MetricThresholds, elapsed: Duration) -> f64 {
        // `check` has verified that it exists.
        figure(self.expression.aggregation, value, on.metric.unit, elapsed).unwrap_or(0.0)
    }

    /// Whether it holds. As in k6, a rate without samples holds any bound; other figures without
    /// samples are 0.
    fn holds(&self, figure: f64, value: &SeriesValue) -> bool {
        let is_empty_rate = value.kind() == MetricKind::Rate && value.samples() == 0;
        is_empty_rate || self.expression.operator.holds(figure, self.expression.bound)
    }
}

impl ThresholdResults {
    /// The keys of failed thresholds, in order.
    pub fn crossed(&self) -> impl Iterator<Item = &str> {
        let failed = self.metrics.iter().filter(|(_, results)| results.iter().any(|one| !one.ok));
        failed.map(|(key, _)| key.as_str())
    }

    /// k6's message about failed thresholds; `None` if none failed.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let crossed: Vec<_> = self.crossed().collect();
        if crossed.is_empty() {
            return None;
        }
        let metrics = crossed.join(", ");
        Some(if self.aborts {
            format!(
                "thresholds on metrics '{metrics}' were crossed; at least one has abortOnFail \
                 enabled, stopping test prematurely"
            )
        } else {
            format!("thresholds on metrics '{metrics}' have been crossed")
        })
    }
}
