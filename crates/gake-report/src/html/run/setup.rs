//! What was asked of the run: who asked, the stages, the objectives with their bounds.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::Plan;
use gake_core::record::Provenance;
use gake_judge::objective::{Limit, Subject};
use gake_judge::{Evaluation, Objective, Unit};
use serde::Serialize;

use super::series::digits;
use super::{NAME_MAX, ROWS_MAX};
use crate::html::{cut, cut_to};

/// Stages that are shown.
const STAGES_MAX: usize = 60;

/// Characters of a command that are shown.
const COMMAND_MAX: usize = 4_000;

/// [`Provenance`] as the page has it.
#[derive(Serialize)]
pub(super) struct OriginForm {
    commands: Vec<String>,
    hosts: Vec<String>,
    versions: Vec<String>,
}

impl From<&Provenance> for OriginForm {
    fn from(origin: &Provenance) -> Self {
        let few = |texts: &[String], length: usize| {
            texts.iter().take(5).map(|text| cut_to(text, length)).collect()
        };
        Self {
            commands: few(&origin.commands, COMMAND_MAX),
            hosts: few(&origin.hosts, NAME_MAX),
            versions: few(&origin.versions, NAME_MAX),
        }
    }
}

/// A stage of an open loop, in seconds of the run.
#[derive(Serialize)]
pub(super) struct StageForm {
    start: f64,
    end: f64,
    /// Arrivals a second at its start and at its end.
    from: f64,
    to: f64,
}

/// The stages, when there are several: one alone is the whole run.
pub(super) fn stages(plan: &Plan) -> Vec<StageForm> {
    let Some(Load::Open { stages, .. }) = plan.load.one() else { return Vec::new() };
    if stages.len() < 2 {
        return Vec::new();
    }
    let mut start = plan.warmup;
    let mut forms = Vec::with_capacity(stages.len().min(STAGES_MAX));
    for stage in stages.iter().take(STAGES_MAX) {
        let end = start.checked_add(stage.duration).unwrap_or(Duration::MAX);
        let [from, to] = [start, end].map(|at| at.as_secs_f64());
        forms.push(StageForm { start: from, end: to, from: stage.from, to: stage.to });
        start = end;
    }
    forms
}

/// An objective, what was measured, and where its bound is.
#[derive(Serialize)]
pub(super) struct ObjectiveForm {
    text: String,
    shown: String,
    met: bool,
    /// What was measured as a part of the bound; null when there was nothing to measure.
    used: Option<f64>,
    /// The bound; null when the text is not an objective of this version.
    limit: Option<LimitForm>,
}

/// A bound that a chart can show.
#[derive(Serialize)]
struct LimitForm {
    /// A latency (`response`, `service` ...), `errors` (a share), `rate`, `goodput`, `sent`,
    /// `count`, or a level of the target after `target:`.
    metric: String,
    /// `p99`, `mean`, `min` or `max` of a latency.
    statistic: Option<String>,
    /// Of a latency in nanoseconds.
    bound: f64,
    upper: bool,
    label: Option<String>,
}

impl From<Limit> for LimitForm {
    fn from(limit: Limit) -> Self {
        let Limit { label, subject, bound, upper } = limit;
        let (metric, statistic) = match subject {
            Subject::Latency { metric, statistic } => (metric.to_owned(), Some(statistic)),
            Subject::ErrorShare => ("errors".to_owned(), None),
            Subject::Count => ("count".to_owned(), None),
            Subject::Rate(name) => (name.to_owned(), None),
            Subject::Gauge(name) => (format!("target:{name}"), None),
        };
        let label = label.map(|label| cut_to(&label, NAME_MAX));
        Self { metric, statistic, bound, upper, label }
    }
}

/// The objectives, in the order in which they were given.
pub(super) fn objectives(evaluations: &[Evaluation]) -> Vec<ObjectiveForm> {
    let form = |evaluation: &Evaluation| {
        let limit = evaluation.text.parse::<Objective>().ok().and_then(|it| it.limit());
        let used = limit.as_ref().zip(evaluation.value).map(|(limit, value)| {
            let scale = if evaluation.unit == Unit::Percent { 100.0 } else { 1.0 };
            value / (limit.bound * scale)
        });
        ObjectiveForm {
            text: cut_to(&evaluation.text, NAME_MAX),
            shown: cut(&evaluation.shown()),
            met: evaluation.met,
            used: used.filter(|used| used.is_finite()).map(|used| digits(used, 4)),
            limit: limit.map(Into::into),
        }
    };
    evaluations.iter().take(ROWS_MAX).map(form).collect()
}
