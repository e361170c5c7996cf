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
//! A dropped arrival is an error: a user would have got no answer. An objective on no
//! sample is not met, and says so.

mod clause;
mod gauge;
mod limit;
mod parse;
mod quantity;
mod selector;
mod series;
mod series_clause;

use std::fmt;

use gake_core::clock::{Nanos, nanos};
use gake_core::metric::{Registry, Tags};
use gake_core::plan::Plan;
use gake_core::record::{Run, ScenarioRun, Tally, WatchRecord};
use gake_text::units;

pub use clause::Clause;
pub use limit::{Limit, Subject};
pub use parse::ObjectiveError;
pub use quantity::{Bad, Bound};

use quantity::{Measure, Part, Quantity};
use series::SeriesClaim;

pub(crate) use selector::split as split_selector;

/// A bound that a run must meet.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    claim: Claim,
    operator: Operator,
}

/// What is compared, with its bound.
#[derive(Debug, Clone, PartialEq)]
enum Claim {
    /// What every run measures, of all requests, of one label or of the scenarios with some tags.
    Builtin { scope: Scope, quantity: Quantity },
    /// A metric of the run's own.
    Series(SeriesClaim),
}

/// The part of a run that an objective is about; the whole by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Scope {
    label: Option<Label>,
    /// The scenarios that carry these tags; `scenario` is a scenario's name.
    tags: Tags,
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
    Equal,
    NotEqual,
}

/// The data that an objective is evaluated on: a whole run, or a run so far.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// What was recorded.
    pub tally: &'a Tally,
    /// The time over which requests were sent.
    pub sending: Nanos,
    /// The time over which they were answered or failed.
    pub span: Nanos,
    /// The plan.
    pub plan: &'a Plan,
    /// What was sampled of the target.
    pub watched: &'a WatchRecord,
    /// Each scenario by itself, in the plan's order, when the run has several.
    pub scenarios: Vec<ScenarioView<'a>>,
}

/// One scenario of a [`View`].
#[derive(Debug, Clone, Copy)]
pub struct ScenarioView<'a> {
    /// What it recorded.
    pub tally: &'a Tally,
    /// From the start of the run to the end of its warm-up, after which it records.
    pub begun: Nanos,
    /// The time over which its requests were sent.
    pub sending: Nanos,
    /// The time over which they were answered or failed.
    pub span: Nanos,
}

impl<'a> View<'a> {
    /// The view of a whole run.
    #[must_use]
    pub fn of(run: &'a Run) -> Self {
        Self {
            tally: &run.tally,
            sending: run.sending,
            span: run.completing,
            plan: &run.plan,
            watched: &run.watched,
            scenarios: run.scenarios.iter().map(ScenarioView::of).collect(),
        }
    }

    /// Whether a scenario of it carries these tags.
    fn has(&self, tags: &Tags) -> bool {
        self.plan.scenarios().iter().any(|plan| plan.carries(tags))
    }

    /// Calls `of` with only the scenarios that carry `tags`, which some do ([`View::has`]).
    fn within<T>(&self, tags: &Tags, of: impl FnOnce(&View<'_>) -> T) -> T {
        let parts: Vec<_> = self.parts(tags).collect();
        let (sending, span) = self.times(tags).unwrap_or_default();
        let narrowed = |tally| View { tally, sending, span, scenarios: Vec::new(), ..*self };
        match parts.as_slice() {
            // A single scenario is not told apart: it is the whole.
            all if all.len() == self.scenarios.len() => of(self),
            [] => of(&narrowed(&Tally::default())),
            [one] => of(&narrowed(one.tally)),
            [first, rest @ ..] => {
                let mut all = first.tally.clone();
                rest.iter().for_each(|part| all.merge(part.tally));
                of(&narrowed(&all))
            }
        }
    }

    /// The time over which the scenarios that carry `tags` sent, and over which they were answered
    /// or failed, from the end of the first one's warm-up; `None` when they are not told apart.
    pub(crate) fn times(&self, tags: &Tags) -> Option<(Nanos, Nanos)> {
        let first = self.parts(tags).map(|part| part.begun).min()?;
        let until = |end: fn(&ScenarioView<'_>) -> Nanos| {
            let ends = self.parts(tags).map(|part| part.begun.saturating_add(end(part)));
            ends.max().map(|last| last.saturating_sub(first))
        };
        Some((until(|part| part.sending)?, until(|part| part.span)?))
    }

    fn parts(&self, tags: &Tags) -> impl Iterator<Item = &ScenarioView<'a>> {
        let scenarios = self.plan.scenarios().iter().zip(&self.scenarios);
        scenarios.filter(|(plan, _)| plan.carries(tags)).map(|(_, part)| part)
    }

    fn labels(&self) -> &'a [String] {
        &self.plan.labels
    }

    /// From when on what the target said counts.
    fn warmup(&self) -> Nanos {
        nanos(self.plan.warmup)
    }
}

impl<'a> ScenarioView<'a> {
    fn of(run: &'a ScenarioRun) -> Self {
        let begun = nanos(run.plan.start).saturating_add(nanos(run.plan.warmup));
        Self { tally: &run.tally, begun, sending: run.sending, span: run.completing }
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
    /// A share of a whole, 0 to 1.
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
    /// Why the value is missing.
    pub problem: Option<String>,
}

impl Evaluation {
    /// The value as people read it, or why it is missing.
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
    /// Whether it bounds a level of the target, which must be watched for that.
    #[must_use]
    pub fn is_about_target(&self) -> bool {
        matches!(self.claim, Claim::Builtin { quantity: Quantity::Gauge { .. }, .. })
    }

    /// Checks that a run of this plan with these metrics can decide it.
    ///
    /// # Errors
    /// What it names that does not exist, and what does.
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

    /// Compares with what was measured.
    #[must_use]
    pub fn evaluate(&self, view: &View<'_>) -> Evaluation {
        let (unit, measured) = match &self.claim {
            Claim::Series(series) => (series.bound.unit(), series.measure(view)),
            Claim::Builtin { scope, quantity } => builtin(scope, *quantity, view),
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

/// Measures a built-in quantity. What no label or scenario has may be a metric of a script.
fn builtin(scope: &Scope, quantity: Quantity, view: &View<'_>) -> (Unit, Result<Measured, String>) {
    let unit = quantity.unit();
    let has_label =
        scope.label.as_ref().is_none_or(|label| Part::of_label(&label.name, view).is_some());
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

/// Measures it in a view that holds only the scope's scenarios.
fn of_label(
    scope: &Scope,
    quantity: Quantity,
    view: &View<'_>,
) -> (Unit, Result<Measured, String>) {
    let unit = quantity.unit();
    let part = match &scope.label {
        None => Ok(Part::whole(view)),
        Some(label) => Part::of_label(&label.name, view).ok_or_else(|| {
            let metrics = listed(series::names(view.tally).into_iter());
            missing_label(label, view.labels(), &metrics)
        }),
    };
    let value = part.and_then(|part| quantity.measure(&part, view));
    (unit, value.map(|value| Measured { value, bound: quantity.bound(), unit }))
}

/// Maximum number of names listed in a sentence.
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

/// That none of the scenarios carries `tags`, and what they carry.
pub(crate) fn missing_scenario<'a>(
    tags: &Tags,
    scenarios: impl Iterator<Item = &'a Plan>,
) -> String {
    let mut scenarios: Vec<_> = scenarios.collect();
    // Two runs of one plan have the same.
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
            selector::Written(&Tags::new(own.chain([name]))).to_string()
        })
        .collect();
    let there = listed(there.iter().map(String::as_str));
    format!("no scenario has the tags {}; there are {there}", selector::Written(tags))
}

/// Some names in a sentence.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<_> = names.collect();
    let shown = all[..all.len().min(NAMES_MAX)].join(", ");
    match all.len() - all.len().min(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Scope {
    /// What of it is written in braces.
    fn tags(&self) -> Tags {
        let name = self.label.as_ref().filter(|label| label.is_tag).map(|label| &label.name);
        let name = name.map(|name| ("name", name));
        let own = self.tags.pairs().iter().map(|(key, value)| (key.as_str(), value));
        Tags::new(own.chain(name))
    }
}

impl Operator {
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

    /// Whether it bounds a value from above or below.
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
    /// The objective the way it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = self.operator.sign();
        let (scope, quantity) = match &self.claim {
            Claim::Series(series) => return write!(f, "{series}{sign}{}", series.bound),
            Claim::Builtin { scope, quantity } => (scope, quantity),
        };
        let (metric, statistic) = quantity.subject();
        let tags = scope.tags();
        if !tags.is_empty() {
            write!(f, "{metric}{}", selector::Written(&tags))?;
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
            Some(statistic) => write!(f, "{metric}.{statistic}")?,
            None => f.write_str(metric)?,
        }
        write!(f, "{sign}{}", quantity.shown_bound())
    }
}

#[cfg(test)]
mod tests;
