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
//! | `cpu`, `rss`, `descriptors`, `pool` ... | levels of the watched target | `80%`, `1GB`, `100/s`, a number |
//!
//! A dropped arrival is an error: its user got no response. An objective without samples is not
//! met.

mod clause;
mod level;
mod limit;
mod parse;
mod quantity;
mod selector;
mod series;
mod series_clause;
mod view;

use std::fmt;

use gake_core::metric::{Registry, Tags};
use gake_core::plan::Plan;
use gake_text::units;

pub use clause::Clause;
pub use limit::{LimitSubject, ObjectiveLimit};
pub use parse::ObjectiveError;
pub use quantity::{BadCount, ClauseBound};
pub use view::{RunView, ScenarioView};

use quantity::{Measure, Quantity, ScopeView};
use series::SeriesClaim;

pub(crate) use selector::split as split_selector;

/// A bound that a run must meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    claim: Claim,
    operator: BoundOperator,
}

#[derive(Debug, Clone, PartialEq)]
enum Claim {
    /// A built-in quantity of all requests, of one label, or of the scenarios with some tags.
    Builtin { scope: ObjectiveScope, quantity: Quantity },
    /// A metric of the run's own.
    Series(SeriesClaim),
}

/// The scope of an objective; the whole run by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ObjectiveScope {
    label: Option<ObjectiveLabel>,
    /// The scenarios with these tags; the tag `scenario` is the name.
    tags: Tags,
    /// Whether it is written as k6's `http_req_duration`: in a run with scripts, their metric.
    is_k6: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ObjectiveLabel {
    name: String,
    /// Whether it is written as the tag `name` instead of before a colon.
    is_tag: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundOperator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Per cent.
    Percent,
    /// A unitless number.
    Count,
    /// Per second.
    PerSecond,
    /// A share of a whole, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
}

impl ValueUnit {
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
    /// The objective as text.
    pub text: String,
    /// The measured value; `None` without samples.
    pub value: Option<f64>,
    /// The unit of `value`.
    pub unit: ValueUnit,
    /// Whether the objective was met.
    pub met: bool,
    /// Why `value` is missing.
    pub problem: Option<String>,
}

impl Evaluation {
    /// The value as text, or why it is missing.
    #[must_use]
    pub fn shown(&self) -> String {
        let Some(value) = self.value else {
            return self.problem.clone().unwrap_or_else(|| "no value".to_owned());
        };
        match self.unit {
            ValueUnit::Nanoseconds => units::duration(value),
            ValueUnit::Percent => units::percent(value / 100.0),
            ValueUnit::Count if value.fract() == 0.0 && value >= 0.0 => units::count(value as u64),
            ValueUnit::Count => units::number(value),
            ValueUnit::PerSecond => units::rate(value),
            ValueUnit::Share => units::percent(value),
            ValueUnit::Bytes => units::bytes(value),
        }
    }
}

impl Objective {
    /// Whether it bounds a level of the target, which must then be watched.
    #[must_use]
    pub fn is_about_target(&self) -> bool {
        matches!(self.claim, Claim::Builtin { quantity: Quantity::Gauge { .. }, .. })
    }

    /// Checks that a run of this plan with these metrics can evaluate it.
    ///
    /// The unknown name, and the known ones.
    pub fn check(&self, plan: &Plan, metrics: &Registry) -> Result<(), String> {
        let labels = &plan.labels;
        let (scope, quantity) = match &self.claim {
            Claim::Series(series) => return series.check(labels, metrics),
            Claim::Builtin { scope, quantity } => (scope, *quantity),
        };
        let has_label = scope.label.as_ref().is_none_or(|label| labels.contains(&label.name));
        let has_tags = plan.scenarios().iter().any(|plan| plan.carries(&scope.tags));
        if has_label && has_tags {
            return Ok(());
        }
        match SeriesClaim::fallback(scope, quantity) {
            Some(series) if metrics.get(&series.metric).is_some() => series.check(labels, metrics),
            _ if !has_tags => Err(missing_scenario(&scope.tags, plan.scenarios().iter())),
            _ => {
                let metrics = metrics.metrics().map(|metric| metric.name.as_str());
                let label = scope.label.as_ref();
                Err(label
                    .map_or_else(String::new, |it| missing_label(it, labels, &listed(metrics))))
            }
        }
    }

    /// Compares the measured value with the bound.
    #[must_use]
    pub fn evaluate(&self, view: &RunView<'_>) -> Evaluation {
        let (unit, measured) = match &self.claim {
            Claim::Series(series) => (series.bound.unit(), series.measure(view)),
            Claim::Builtin { scope, quantity } => builtin(scope, *quantity, view),
        };
        let text = self.to_string();
        match measured {
            Ok(MeasuredValue { value, bound, unit }) => {
                let met = self.operator.holds(value, bound);
                Evaluation { text, value: Some(value), unit, met, problem: None }
            }
            Err(problem) => {
                Evaluation { text, value: None, unit, met: false, problem: Some(problem) }
            }
        }
    }
}

struct MeasuredValue {
    value: f64,
    bound: f64,
    unit: ValueUnit,
}

/// Measures a built-in quantity. A name that is no label or scenario may be a metric of a script.
fn builtin(
    scope: &ObjectiveScope,
    quantity: Quantity,
    view: &RunView<'_>,
) -> (ValueUnit, Result<MeasuredValue, String>) {
    let unit = quantity.unit();
    let has_label =
        scope.label.as_ref().is_none_or(|label| ScopeView::of_label(&label.name, view).is_some());
    if !has_label || !view.has(&scope.tags) {
        let series = SeriesClaim::fallback(scope, quantity);
        if let Some(series) = series.filter(|series| series.is_known(view)) {
            return (unit, series.measure(view));
        }
    }
    if !view.has(&scope.tags) {
        return (unit, Err(missing_scenario(&scope.tags, view.plan.scenarios().iter())));
    }
    view.within(&scope.tags, |view| of_label(scope, quantity, view))
}

/// Measures a quantity in a view of only the scope's scenarios.
fn of_label(
    scope: &ObjectiveScope,
    quantity: Quantity,
    view: &RunView<'_>,
) -> (ValueUnit, Result<MeasuredValue, String>) {
    let unit = quantity.unit();
    let part = match &scope.label {
        None => Ok(ScopeView::whole(view)),
        Some(label) => ScopeView::of_label(&label.name, view).ok_or_else(|| {
            let metrics = listed(series::names(view.tally).into_iter());
            missing_label(label, view.labels(), &metrics)
        }),
    };
    let value = part.and_then(|part| quantity.measure(&part, view));
    (unit, value.map(|value| MeasuredValue { value, bound: quantity.bound(), unit }))
}

/// Maximum number of names listed in a sentence.
const NAMES_MAX: usize = 10;

fn missing_label(label: &ObjectiveLabel, labels: &[String], metrics: &str) -> String {
    let (name, labels) = (&label.name, listed(labels.iter().map(String::as_str)));
    // A tag of a built-in metric cannot be the name of another metric.
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

/// The error that no scenario has `tags`, with those they have.
pub(crate) fn missing_scenario<'a>(
    tags: &Tags,
    scenarios: impl Iterator<Item = &'a Plan>,
) -> String {
    let mut scenarios: Vec<_> = scenarios.collect();
    // Two runs of one plan have the same scenarios.
    scenarios.dedup_by(|a, b| a.name == b.name && a.tags == b.tags);
    if let ([_], Some(name)) = (tags.pairs(), tags.get(Plan::NAME_TAG)) {
        let there = listed(scenarios.iter().map(|plan| plan.name.as_str()));
        return format!("there is no scenario {name:?}; there are {there}");
    }
    let there: Vec<_> = scenarios
        .iter()
        .map(|plan| {
            let name = (Plan::NAME_TAG, plan.name.as_str());
            let own = plan.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
            selector::TagsDisplay(&Tags::new(own.chain([name]))).to_string()
        })
        .collect();
    let there = listed(there.iter().map(String::as_str));
    format!("no scenario has the tags {}; there are {there}", selector::TagsDisplay(tags))
}

/// Names joined for a sentence, at most [`NAMES_MAX`].
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = names.collect();
    let shown = all[..all.len().min(NAMES_MAX)].join(", ");
    match all.len() - all.len().min(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl ObjectiveScope {
    /// The tags written in braces.
    fn tags(&self) -> Tags {
        let name = self.label.as_ref().filter(|label| label.is_tag).map(|label| &label.name);
        let name = name.map(|name| ("name", name));
        let own = self.tags.pairs().iter().map(|(key, value)| (key.as_str(), value));
        Tags::new(own.chain(name))
    }
}

impl BoundOperator {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::LessOrEqual => value <= bound,
            Self::Greater => value > bound,
            Self::GreaterOrEqual => value >= bound,
            Self::Equal => value == bound,
            Self::NotEqual => value != bound,
        }
    }

    fn is_bound(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}

impl fmt::Display for Objective {
    /// The objective, as it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = self.operator.sign();
        let (scope, quantity) = match &self.claim {
            Claim::Series(series) => return write!(f, "{series}{sign}{}", series.bound),
            Claim::Builtin { scope, quantity } => (scope, quantity),
        };
        let (metric, statistic) = quantity.subject();
        let metric = if scope.is_k6 { quantity::K6_SERVICE } else { metric };
        let tags = scope.tags();
        if !tags.is_empty() {
            write!(f, "{metric}{}", selector::TagsDisplay(&tags))?;
            if let Some(statistic) = &statistic {
                write!(f, ":{statistic}")?;
            }
            return write!(f, "{sign}{}", quantity.shown_bound());
        }
        if let Some(label) = &scope.label {
            write!(f, "{}:", label.name)?;
        }
        match statistic {
            Some(statistic) if metric == Measure::Response.name() => f.write_str(&statistic)?,
            Some(statistic) if scope.is_k6 => write!(f, "{metric}:{statistic}")?,
            Some(statistic) => write!(f, "{metric}.{statistic}")?,
            None => f.write_str(metric)?,
        }
        write!(f, "{sign}{}", quantity.shown_bound())
    }
}

#[cfg(test)]
mod tests;
