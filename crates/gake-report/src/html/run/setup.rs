//! The origin, stages and objectives of a run.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::Plan;
use gake_core::record::Provenance;
use gake_judge::objective::{LimitSubject, ObjectiveLimit};
use gake_judge::{Evaluation, Objective, ValueUnit};
use serde::Serialize;

use super::series::digits;
use super::{NAME_MAX, ROWS_MAX};
use crate::html::{cut, cut_to};

const STAGES_MAX: usize = 60;

/// Most characters shown of a command.
const COMMAND_MAX: usize = 4_000;

/// [`Provenance`] as the page has it.
#[derive(Serialize)]
pub(super) struct PageOriginJson {
    commands: Vec<String>,
    hosts: Vec<String>,
    versions: Vec<String>,
}

impl From<&Provenance> for PageOriginJson {
    fn from(origin: &Provenance) -> Self {
        let few = |texts: &[String], length: usize| {
            texts.iter().take(5).map(|text| cut_to(text, length)).collect()
        };
        let commands = origin.commands.iter().take(5);
        Self {
            commands: commands.map(|text| cut_to(text, COMMAND_MAX)).collect(),
            hosts: few(&origin.hosts, NAME_MAX),
            versions: few(&origin.versions, NAME_MAX),
        }
    }
}

/// A stage of an open loop, in seconds of the run.
#[derive(Serialize)]
pub(super) struct StageJson {
    start: f64,
    end: f64,
    /// Arrivals per second at its start and at its end.
    from: f64,
    to: f64,
}

/// The stages, unless there is only one.
pub(super) fn stages(plan: &Plan) -> Vec<StageJson> {
    let Some(Load::Open { stages, .. }) = plan.load.one() else { return Vec::new() };
    if stages.len() < 2 {
        return Vec::new();
    }
    let mut start = plan.warmup;
    let mut forms = Vec::with_capacity(stages.len().min(STAGES_MAX));
    for stage in stages.iter().take(STAGES_MAX) {
        let end = start.checked_add(stage.duration).unwrap_or(Duration::MAX);
        let [from, to] = [start, end].map(|at| at.as_secs_f64());
        forms.push(StageJson { start: from, end: to, from: stage.from, to: stage.to });
        start = end;
    }
    forms
}

/// An objective, the measured value, and its bound.
#[derive(Serialize)]
pub(super) struct PageObjectiveJson {
    text: String,
    shown: String,
    met: bool,
    /// The measured value as a share of the bound; null if there was nothing to measure.
    used: Option<f64>,
    /// The bound; null if this version does not know the objective.
    limit: Option<LimitJson>,
}

/// A bound that a chart can show.
#[derive(Serialize)]
struct LimitJson {
    /// A latency (`response`, `service` ...), `errors` (a share), `rate`, `goodput`, `sent`,
    /// `count`, or a level of the target after `target:`.
    metric: String,
    /// `p99`, `mean`, `min` or `max` of a latency.
    statistic: Option<String>,
    /// In nanoseconds for a latency.
    bound: f64,
    upper: bool,
    label: Option<String>,
}

impl From<ObjectiveLimit> for LimitJson {
    fn from(limit: ObjectiveLimit) -> Self {
        let ObjectiveLimit { label, subject, bound, upper } = limit;
        let (metric, statistic) = match subject {
            LimitSubject::Latency { metric, statistic } => (metric.to_owned(), Some(statistic)),
            LimitSubject::ErrorShare => ("errors".to_owned(), None),
            LimitSubject::Count => ("count".to_owned(), None),
            LimitSubject::Rate(name) => (name.to_owned(), None),
            LimitSubject::Gauge(name) => (format!("target:{name}"), None),
        };
        let label = label.map(|label| cut_to(&label, NAME_MAX));
        Self { metric, statistic, bound, upper, label }
    }
}

/// The objectives, in the given order.
pub(super) fn objectives(evaluations: &[Evaluation]) -> Vec<PageObjectiveJson> {
    let form = |evaluation: &Evaluation| {
        let limit = evaluation.text.parse::<Objective>().ok().and_then(|it| it.limit());
        let used = limit.as_ref().zip(evaluation.value).map(|(limit, value)| {
            let scale = if evaluation.unit == ValueUnit::Percent { 100.0 } else { 1.0 };
            value / (limit.bound * scale)
        });
        PageObjectiveJson {
            text: cut_to(&evaluation.text, NAME_MAX),
            shown: cut(&evaluation.shown()),
            met: evaluation.met,
            used: used.filter(|used| used.is_finite()).map(|used| digits(used, 4)),
            limit: limit.map(Into::into),
        }
    };
    evaluations.iter().take(ROWS_MAX).map(form).collect()
}
