//! Objectives: `p99<50ms`, `errors<0.1%`, `rate>=990/s`, `checkout:service.p95<=20ms`.
//!
//! An objective is `[LABEL:][METRIC.]QUANTITY OPERATOR BOUND`.
//!
//! | quantity | is | bound |
//! | --- | --- | --- |
//! | `p50`, `p99.9` ..., `mean`, `min`, `max` | of response time, or of the metric named before it | a duration with its unit |
//! | `errors` | arrivals that were due and did not end ok: failed, unfinished and dropped | `0.1%` of those due, or a whole number of them |
//! | `rate`, `goodput` | arrivals that ended, arrivals that ended ok, a second | `990/s` |
//! | `sent` | arrivals sent | `990/s`, or a whole number |
//! | `cpu`, `rss`, `descriptors`, `pool` ... | what the watched target says of itself | `80%`, `1GB`, `100/s`, a number |
//!
//! A dropped arrival is an error: a user would have come and got nothing. An objective on no
//! sample is not met, and says so.

mod clause;
mod gauge;
mod parse;

use std::fmt;

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Histogram, Metric, Run, Tally, Watched};

pub use clause::{Bad, Bound, Clause};
pub use parse::ObjectiveError;

use gauge::{Gauge, Of};

use crate::stats::{per_second, share};
use crate::units;

/// What a run must keep to.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    label: Option<String>,
    quantity: Quantity,
    operator: Operator,
}

/// What is compared, with the bound in the quantity's own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Quantity {
    Latency { measure: Measure, statistic: Statistic, bound: Nanos },
    ErrorPercent(f64),
    ErrorCount(u64),
    Rate { of: Flow, bound: f64 },
    SentCount(u64),
    Gauge { gauge: Gauge, of: Of, bound: f64 },
}

/// Which latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The headline: every answered arrival and the censored waits.
    Response,
    Of(Metric),
}

/// What of it. A percentile is kept as its percent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Percentile(f64),
    Mean,
    Min,
    Max,
}

/// Which arrivals a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Completed,
    Goodput,
    Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What an objective looks at: a whole run, or a run so far.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What was recorded.
    pub tally: &'a Tally,
    /// The time over which requests were sent.
    pub sending: Nanos,
    /// The time over which they were answered or failed.
    pub span: Nanos,
    /// The names of the labels, by number.
    pub labels: &'a [String],
    /// What the target said.
    pub watched: &'a Watched,
    /// From when on it counts.
    pub warmup: Nanos,
}

impl<'a> View<'a> {
    /// The view of a whole run.
    #[must_use]
    pub fn of(run: &'a Run) -> Self {
        Self {
            tally: &run.tally,
            sending: run.sending,
            span: run.completing,
            labels: &run.plan.labels,
            watched: &run.watched,
            warmup: u64::try_from(run.plan.warmup.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Per cent.
    Percent,
    /// A plain number.
    Count,
    /// A number a second.
    PerSecond,
    /// Of a whole, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Percent => "percent",
            Self::Count => "count",
            Self::PerSecond => "per_second",
            Self::Share => "share",
            Self::Bytes => "bytes",
        }
    }
}

/// An objective with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The objective.
    pub text: String,
    /// What was measured; `None` when there was nothing to measure.
    pub value: Option<f64>,
    /// The unit of `value`.
    pub unit: Unit,
    /// Whether the objective was met.
    pub met: bool,
    /// Why there is no value.
    pub problem: Option<String>,
}

impl Evaluation {
    /// The value as people read it, or why there is none.
    #[must_use]
    pub fn shown(&self) -> String {
        let Some(value) = self.value else {
            return self.problem.clone().unwrap_or_else(|| "no value".to_owned());
        };
        match self.unit {
            Unit::Nanoseconds => units::duration(value),
            Unit::Percent => units::percent(value / 100.0),
            Unit::Count if value.fract() == 0.0 => units::count(value as u64),
            Unit::Count => units::number(value),
            Unit::PerSecond => units::rate(value),
            Unit::Share => units::percent(value),
            Unit::Bytes => units::bytes(value),
        }
    }
}

/// The part of a view that one objective is about.
struct Part<'a> {
    counts: &'a Counts,
    tally: &'a Tally,
    /// The label's own histograms: response, service.
    label: Option<(&'a Histogram, &'a Histogram)>,
}

impl Objective {
    /// The label it is about, when it is not about all.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Whether it bounds what the target says of itself, which must be watched for that.
    #[must_use]
    pub fn is_about_target(&self) -> bool {
        matches!(self.quantity, Quantity::Gauge { .. })
    }

    /// Compares with what was measured.
    #[must_use]
    pub fn evaluate(&self, view: &View<'_>) -> Evaluation {
        let unit = self.quantity.unit();
        let text = self.to_string();
        match self.part(view).and_then(|part| self.quantity.measure(&part, view)) {
            Ok(value) => {
                let met = self.operator.holds(value, self.quantity.bound());
                Evaluation { text, value: Some(value), unit, met, problem: None }
            }
            Err(problem) => {
                Evaluation { text, value: None, unit, met: false, problem: Some(problem) }
            }
        }
    }

    fn part<'a>(&self, view: &View<'a>) -> Result<Part<'a>, String> {
        let tally = view.tally;
        let whole = Part { counts: &tally.counts, tally, label: None };
        let Some(name) = &self.label else { return Ok(whole) };
        let missing = || format!("there is no label {name:?}");
        let number = view.labels.iter().position(|label| label == name).ok_or_else(missing)?;
        // One label is not told apart: it is the whole.
        let Some(label) = tally.labels().get(number) else { return Ok(whole) };
        Ok(Part { counts: &label.counts, label: Some((&label.response, &label.service)), ..whole })
    }
}

impl Quantity {
    fn unit(self) -> Unit {
        match self {
            Self::Latency { .. } => Unit::Nanoseconds,
            Self::ErrorPercent(_) => Unit::Percent,
            Self::ErrorCount(_) | Self::SentCount(_) => Unit::Count,
            Self::Rate { .. } => Unit::PerSecond,
            Self::Gauge { gauge, .. } => gauge.unit(),
        }
    }

    fn bound(self) -> f64 {
        match self {
            Self::Latency { bound, .. } => bound as f64,
            Self::ErrorPercent(bound) | Self::Rate { bound, .. } | Self::Gauge { bound, .. } => {
                bound
            }
            Self::ErrorCount(bound) | Self::SentCount(bound) => bound as f64,
        }
    }

    fn measure(self, part: &Part<'_>, view: &View<'_>) -> Result<f64, String> {
        let counts = part.counts;
        let errors = counts.due().saturating_sub(counts.ok);
        match self {
            Self::Latency { measure, statistic, .. } => measure.value(statistic, part),
            Self::ErrorPercent(_) | Self::ErrorCount(_) if counts.due() == 0 => {
                Err("nothing was due".to_owned())
            }
            Self::ErrorPercent(_) => Ok(share(errors, counts.due()) * 100.0),
            Self::ErrorCount(_) => Ok(errors as f64),
            Self::SentCount(_) => Ok(counts.sent as f64),
            Self::Gauge { gauge, of, .. } => gauge.value(of, view.watched, view.warmup),
            Self::Rate { of, .. } => {
                let (count, time) = match of {
                    Flow::Completed => (counts.completed(), view.span),
                    Flow::Goodput => (counts.ok, view.span),
                    Flow::Sent => (counts.sent, view.sending),
                };
                if time == 0 {
                    return Err("no time was measured".to_owned());
                }
                Ok(per_second(count as f64, time))
            }
        }
    }
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            // The short names that objectives use.
            Self::Of(Metric::OkResponse) => "ok",
            Self::Of(Metric::FaultResponse) => "fault",
            Self::Of(metric) => metric.name(),
        }
    }

    fn value(self, statistic: Statistic, part: &Part<'_>) -> Result<f64, String> {
        match (self, part.label) {
            (Self::Response, Some((response, _))) => statistic.of(response),
            (Self::Of(_), Some((_, service))) => statistic.of(service),
            (Self::Response, None) => statistic.of(&part.tally.latency.response()),
            (Self::Of(metric), None) => statistic.of(part.tally.latency.of(metric)),
        }
    }
}

impl Statistic {
    fn of(self, histogram: &Histogram) -> Result<f64, String> {
        if histogram.is_empty() {
            return Err("no sample".to_owned());
        }
        Ok(match self {
            Self::Percentile(percent) => histogram.quantile(percent / 100.0) as f64,
            Self::Mean => histogram.mean(),
            Self::Min => histogram.min() as f64,
            Self::Max => histogram.max() as f64,
        })
    }
}

impl Operator {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::LessOrEqual => value <= bound,
            Self::Greater => value > bound,
            Self::GreaterOrEqual => value >= bound,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl fmt::Display for Objective {
    /// The objective the way it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label}:")?;
        }
        let sign = self.operator.sign();
        match self.quantity {
            Quantity::Latency { measure, statistic, bound } => {
                if measure != Measure::Response {
                    write!(f, "{}.", measure.name())?;
                }
                match statistic {
                    Statistic::Percentile(percent) => write!(f, "p{percent}")?,
                    Statistic::Mean => f.write_str("mean")?,
                    Statistic::Min => f.write_str("min")?,
                    Statistic::Max => f.write_str("max")?,
                }
                write!(f, "{sign}{}", exact(bound))
            }
            Quantity::ErrorPercent(bound) => write!(f, "errors{sign}{bound}%"),
            Quantity::ErrorCount(bound) => write!(f, "errors{sign}{bound}"),
            Quantity::SentCount(bound) => write!(f, "sent{sign}{bound}"),
            Quantity::Gauge { gauge, of, bound } => {
                write!(f, "{}{}{sign}{}", gauge.name, gauge.suffix(of), gauge.shown(bound))
            }
            Quantity::Rate { of, bound } => {
                let name = match of {
                    Flow::Completed => "rate",
                    Flow::Goodput => "goodput",
                    Flow::Sent => "sent",
                };
                write!(f, "{name}{sign}{bound}/s")
            }
        }
    }
}

/// A duration in the largest unit in which it is a whole number: no digit is lost.
fn exact(bound: Nanos) -> String {
    for (size, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if bound.is_multiple_of(size) {
            return format!("{}{unit}", bound / size);
        }
    }
    format!("{bound}ns")
}

#[cfg(test)]
mod tests;
