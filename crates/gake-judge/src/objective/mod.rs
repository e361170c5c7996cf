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
mod limit;
mod parse;
mod quantity;
mod selector;
mod series;

use std::fmt;

use gake_core::clock::Nanos;
use gake_core::metric::{Registry, Tags};
use gake_core::record::{Run, Tally, Watched};

pub use clause::{Bad, Bound, Clause};
pub use limit::{Limit, Subject};
pub use parse::ObjectiveError;

use quantity::{Measure, Part, Quantity};
use series::SeriesClaim;

use crate::units;

/// What a run must keep to.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    claim: Claim,
    operator: Operator,
}

/// What is compared, with its bound.
#[derive(Debug, Clone, PartialEq)]
enum Claim {
    /// What every run measures, of all requests or of one label.
    Builtin { label: Option<Label>, quantity: Quantity },
    /// A metric of the run's own.
    Series(SeriesClaim),
}

/// The label that an objective is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Label {
    name: String,
    /// Whether it is written as the tag `name`, and not before a colon.
    is_tag: bool,
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
            Unit::Count if value.fract() == 0.0 && value >= 0.0 => units::count(value as u64),
            Unit::Count => units::number(value),
            Unit::PerSecond => units::rate(value),
            Unit::Share => units::percent(value),
            Unit::Bytes => units::bytes(value),
        }
    }
}

impl Objective {
    /// Whether it bounds what the target says of itself, which must be watched for that.
    #[must_use]
    pub fn is_about_target(&self) -> bool {
        matches!(self.claim, Claim::Builtin { quantity: Quantity::Gauge { .. }, .. })
    }

    /// Whether a run of these labels and metrics can say anything about it.
    ///
    /// # Errors
    /// What it names that is not there, and what there is.
    pub fn check(&self, labels: &[String], metrics: &Registry) -> Result<(), String> {
        match &self.claim {
            Claim::Series(series) => series.check(labels, metrics),
            Claim::Builtin { label: Some(label), quantity } if !labels.contains(&label.name) => {
                match SeriesClaim::fallback(label, *quantity) {
                    Some(series) if metrics.get(&series.metric).is_some() => {
                        series.check(labels, metrics)
                    }
                    _ => {
                        let metrics = metrics.metrics().map(|metric| metric.name.as_str());
                        Err(missing_label(label, labels, &listed(metrics)))
                    }
                }
            }
            Claim::Builtin { .. } => Ok(()),
        }
    }

    /// Compares with what was measured.
    #[must_use]
    pub fn evaluate(&self, view: &View<'_>) -> Evaluation {
        let (unit, measured) = match &self.claim {
            Claim::Series(series) => (series.bound.unit(), series.measure(view)),
            Claim::Builtin { label, quantity } => builtin(label.as_ref(), *quantity, view),
        };
        let text = self.to_string();
        match measured {
            Ok(Measured { value, bound, unit }) => {
                let met = self.operator.holds(value, bound);
                Evaluation { text, value: Some(value), unit, met, problem: None }
            }
            Err(problem) => {
                Evaluation { text, value: None, unit, met: false, problem: Some(problem) }
            }
        }
    }
}

/// A value beside the bound on it.
struct Measured {
    value: f64,
    bound: f64,
    unit: Unit,
}

/// Measures what every run has. A label that there is not may be a metric of that name.
fn builtin(
    label: Option<&Label>,
    quantity: Quantity,
    view: &View<'_>,
) -> (Unit, Result<Measured, String>) {
    let unit = quantity.unit();
    let part = match label {
        None => Ok(Part::whole(view)),
        Some(label) => match Part::of_label(&label.name, view) {
            Some(part) => Ok(part),
            None => match SeriesClaim::fallback(label, quantity) {
                Some(series) if series.is_known(view) => return (unit, series.measure(view)),
                _ => {
                    let metrics = listed(series::names(view.tally).into_iter());
                    Err(missing_label(label, view.labels, &metrics))
                }
            },
        },
    };
    let value = part.and_then(|part| quantity.measure(&part, view));
    (unit, value.map(|value| Measured { value, bound: quantity.bound(), unit }))
}

/// Names that a sentence lists at most.
const NAMES_MAX: usize = 10;

fn missing_label(label: &Label, labels: &[String], metrics: &str) -> String {
    let (name, labels) = (&label.name, listed(labels.iter().map(String::as_str)));
    // What is written as a tag of a built-in metric names no other metric.
    match (labels.as_str(), if label.is_tag { "" } else { metrics }) {
        ("", "") => format!("there is no label {name:?}"),
        (labels, "") => format!("there is no label {name:?}; there are {labels}"),
        ("", metrics) => {
            format!("there is no label or metric {name:?}; there are the metrics {metrics}")
        }
        (labels, metrics) => format!(
            "there is no label or metric {name:?}; there are the labels {labels}, the metrics \
             {metrics}"
        ),
    }
}

/// Some names in a sentence.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = names.collect();
    let shown = all[..all.len().min(NAMES_MAX)].join(", ");
    match all.len() - all.len().min(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
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
        let sign = self.operator.sign();
        let (label, quantity) = match &self.claim {
            Claim::Series(series) => return write!(f, "{series}{sign}{}", series.bound),
            Claim::Builtin { label, quantity } => (label, quantity),
        };
        let (metric, statistic) = quantity.subject();
        match (label, &statistic) {
            (Some(Label { name, is_tag: true }), _) => {
                let tags = Tags::new([("name", name.as_str())]);
                write!(f, "{metric}{}", selector::Written(&tags))?;
                if let Some(statistic) = &statistic {
                    write!(f, ":{statistic}")?;
                }
                return write!(f, "{sign}{}", quantity.shown_bound());
            }
            (Some(label), _) => write!(f, "{}:", label.name)?,
            (None, _) => {}
        }
        match statistic {
            Some(statistic) if metric == Measure::Response.name() => f.write_str(&statistic)?,
            Some(statistic) => write!(f, "{metric}.{statistic}")?,
            None => f.write_str(metric)?,
        }
        write!(f, "{sign}{}", quantity.shown_bound())
    }
}

#[cfg(test)]
mod tests;
