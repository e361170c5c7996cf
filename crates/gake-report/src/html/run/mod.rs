//! The report of a run.

mod asked;
mod figures;
mod labels;
mod metrics;
mod series;
mod target;

use gake_core::record::{AgentRecord, Run, RunEnd};
use gake_judge::{Summary, Validity, advice};
use serde::Serialize;

use self::asked::{ObjectiveForm, OriginForm, StageForm, objectives, stages};
use self::figures::{Figures, LatencyForm, latencies};
use self::labels::{LabelForm, LabelSeries, labels};
use self::metrics::{MetricForm, metrics};
use self::series::{CurveForm, HistogramForm, SeriesForm, curves, histogram};
use self::target::TargetForm;
use super::{NoUi, SCHEMA, bounded, cut, cut_to, instant};
use crate::formats::headline::{self, Tone};

/// Points of the series shown at most: wide screens have about as many columns for a chart.
pub(super) const POINTS_MAX: usize = 900;

/// Characters of a name that are shown.
const NAME_MAX: usize = 120;

/// Labels that are shown.
const LABELS_MAX: usize = 200;

/// Agents that are shown.
const AGENTS_MAX: usize = 200;

/// Series of the run's own metrics that are shown.
const METRICS_MAX: usize = 100;

/// Rows of any other list that are shown.
const ROWS_MAX: usize = 30;

/// The data of a run, which every page that shows one has.
#[derive(Serialize)]
pub(super) struct RunForm {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    target: String,
    /// The plan in a sentence, without the target.
    plan: String,
    origin: OriginForm,
    stages: Vec<StageForm>,
    /// RFC 3339 in UTC.
    started: String,
    elapsed_ns: u64,
    warmup_s: f64,
    /// What ended it when it was not the plan.
    ended: Option<String>,
    validity: &'static str,
    reasons: Vec<String>,
    objectives: Vec<ObjectiveForm>,
    /// How the target did, where that is no good news.
    target_news: Vec<TargetNews>,
    findings: Vec<FindingForm>,
    figures: Figures,
    latencies: Vec<LatencyForm>,
    statuses: Vec<StatusForm>,
    faults: Vec<FaultForm>,
    /// The most frequent bodies of failed answers.
    failed_bodies: Vec<FailedBodyForm>,
    labels: Vec<LabelForm>,
    /// Labels that are not in `labels`.
    more_labels: usize,
    /// The labels over time, on their own points.
    label_series: Option<LabelSeries>,
    /// Metrics of the run's own.
    metrics: Vec<MetricForm>,
    /// Series that are not in `metrics`.
    more_metrics: usize,
    /// What each agent of a fleet did.
    agents: Vec<AgentForm>,
    /// Agents that are not in `agents`.
    more_agents: usize,
    events: Vec<EventForm>,
    series: SeriesForm,
    histogram: HistogramForm,
    curves: Vec<CurveForm>,
    /// What the target said; null when it was not watched.
    target_levels: Option<TargetForm>,
    /// The run that this one is laid over, and what it is called.
    over: Option<Box<OverForm>>,
    /// How far a run in progress is; of one that is over nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<ProgressForm>,
}

/// A statement of the headline about the target.
#[derive(Serialize)]
struct TargetNews {
    text: String,
    state: &'static str,
    meaning: String,
}

fn target_news(summary: &Summary) -> Vec<TargetNews> {
    let news = headline::target(summary).into_iter().map(|one| TargetNews {
        text: one.text,
        state: if one.tone == Tone::Bad { "invalid" } else { "suspect" },
        meaning: one.meaning,
    });
    news.collect()
}

/// A run in progress.
#[derive(Serialize)]
pub(super) struct ProgressForm {
    /// How long requests are sent, when a time ends them.
    length_s: Option<f64>,
    /// Whether the page may stop the run.
    control: bool,
    /// The rate in force in percent of the plan's, when the page may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_percent: Option<f64>,
}

/// What a page may do with a run in progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageControl {
    /// It may stop the run.
    pub stop: bool,
    /// The rate in force in percent of the plan's, when it may change it.
    pub rate_percent: Option<f64>,
}

/// A run behind another one.
#[derive(Serialize)]
struct OverForm {
    name: String,
    run: RunForm,
}

#[derive(Serialize)]
struct FindingForm {
    id: &'static str,
    evidence: String,
    advice: String,
    check: String,
}

#[derive(Serialize)]
struct StatusForm {
    code: u16,
    count: u64,
    ok: bool,
}

#[derive(Serialize)]
struct FaultForm {
    text: String,
    count: u64,
    advice: &'static str,
}

#[derive(Serialize)]
struct FailedBodyForm {
    status: u16,
    text: String,
    count: u64,
}

#[derive(Serialize)]
struct AgentForm {
    name: String,
    validity: String,
    /// Why its figures cannot be believed, the worst first.
    reasons: Vec<String>,
    sent: u64,
    lateness_p99_ns: u64,
    /// When it was lost, if it was.
    lost_s: Option<f64>,
}

#[derive(Serialize)]
struct EventForm {
    s: f64,
    text: String,
}

/// The report of a run as one file. A page that would be too large shows longer pieces of time.
///
/// # Errors
/// When this gake was built without the page.
pub fn run(summary: &Summary) -> Result<String, NoUi> {
    bounded(POINTS_MAX, |points| RunForm::new(summary, points))
}

/// The report of a run with another one, called `name`, behind it on every chart.
///
/// # Errors
/// When this gake was built without the page.
pub fn run_over(summary: &Summary, name: &str, over: &Summary) -> Result<String, NoUi> {
    bounded(POINTS_MAX, |points| RunForm::over(summary, points, name, over))
}

impl RunForm {
    /// The data of a run in progress, of which `summary` is what is there so far.
    pub(super) fn running(summary: &Summary, points: usize, control: PageControl) -> Self {
        let length_s = summary.run.plan.length().map(|length| length.as_secs_f64());
        let PageControl { stop, rate_percent } = control;
        let live = ProgressForm { length_s, control: stop, rate_percent };
        Self { live: Some(live), ..Self::new(summary, points) }
    }

    /// The data of a run with another one, called `name`, behind it.
    pub(super) fn over(summary: &Summary, points: usize, name: &str, behind: &Summary) -> Self {
        let mut run = Self::new(behind, points);
        // No chart shows these of a run behind, and they take most of the room.
        run.series.clear_heat();
        run.label_series = None;
        let over = OverForm { name: cut_to(name, NAME_MAX), run };
        Self { over: Some(Box::new(over)), ..Self::new(summary, points) }
    }

    pub(super) fn new(summary: &Summary, points: usize) -> Self {
        let (run, verdict) = (&summary.run, &summary.verdict);
        let (metrics, more_metrics) = metrics(run);
        let plan = run.plan.to_string();
        let rest = plan.strip_prefix(&run.plan.target).and_then(|rest| rest.strip_prefix(": "));
        let findings = verdict.findings.iter().map(|finding| FindingForm {
            id: finding.id,
            evidence: cut(&finding.evidence),
            advice: cut(&finding.advice),
            check: cut(&finding.check),
        });
        Self {
            schema: SCHEMA,
            kind: "run",
            gake: env!("CARGO_PKG_VERSION"),
            target: cut(&run.plan.target),
            plan: cut(rest.unwrap_or(&plan)),
            origin: (&run.origin).into(),
            stages: stages(&run.plan),
            started: instant(run.started_unix_ns),
            elapsed_ns: run.elapsed,
            warmup_s: run.plan.warmup.as_secs_f64(),
            ended: ended(&run.ending),
            validity: match verdict.validity {
                Validity::Valid => "valid",
                Validity::Suspect => "suspect",
                Validity::Invalid => "invalid",
            },
            reasons: verdict.reasons.iter().map(|reason| cut(&reason.text)).collect(),
            objectives: objectives(&verdict.objectives),
            target_news: target_news(summary),
            findings: findings.collect(),
            figures: Figures::new(run),
            latencies: latencies(run),
            statuses: statuses(run),
            faults: faults(run),
            failed_bodies: failed_bodies(run),
            labels: labels(run),
            more_labels: run.tally.labels().len().saturating_sub(LABELS_MAX),
            label_series: LabelSeries::new(run, points),
            metrics,
            more_metrics,
            agents: agents(run),
            more_agents: run.agents.len().saturating_sub(AGENTS_MAX),
            events: events(run),
            series: SeriesForm::new(run, points),
            histogram: histogram(run),
            curves: curves(run),
            target_levels: TargetForm::new(run, points),
            over: None,
            live: None,
        }
    }
}

/// What the agents did, as the run has them.
fn agents(run: &Run) -> Vec<AgentForm> {
    let form = |agent: &AgentRecord| AgentForm {
        name: cut_to(&agent.name, NAME_MAX),
        validity: cut(&agent.validity),
        reasons: agent.reasons.iter().map(|reason| cut(reason)).collect(),
        sent: agent.sent,
        lateness_p99_ns: agent.lateness_p99_ns,
        lost_s: agent.lost_ns.map(|at| at as f64 / 1e9),
    };
    run.agents.iter().take(AGENTS_MAX).map(form).collect()
}

fn ended(ending: &RunEnd) -> Option<String> {
    match ending {
        RunEnd::Done => None,
        RunEnd::Interrupted => Some("interrupted".to_owned()),
        RunEnd::Aborted(objective) => Some(format!("stopped at {}", cut(objective))),
        RunEnd::OutOfTargets => Some("the targets ran out".to_owned()),
    }
}

fn statuses(run: &Run) -> Vec<StatusForm> {
    let form = |&(code, count): &(u16, u64)| {
        let ok = run.plan.expect.accepts(code);
        StatusForm { code, count, ok }
    };
    run.tally.statuses().iter().map(form).collect()
}

/// Faults, the most frequent first.
fn faults(run: &Run) -> Vec<FaultForm> {
    let mut faults = run.tally.faults().to_vec();
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
    let form = |(fault, count): (gake_core::record::Fault, u64)| FaultForm {
        text: cut(&fault.to_string()),
        count,
        advice: advice(fault),
    };
    faults.into_iter().take(ROWS_MAX).map(form).collect()
}

/// Bodies of failed answers, the most frequent first.
fn failed_bodies(run: &Run) -> Vec<FailedBodyForm> {
    let told = run.bodies.by_count().into_iter().take(ROWS_MAX);
    told.map(|body| FailedBodyForm {
        status: body.status,
        text: cut(&body.text),
        count: body.count,
    })
    .collect()
}

fn events(run: &Run) -> Vec<EventForm> {
    let events = run.events.iter().take(ROWS_MAX);
    events.map(|event| EventForm { s: event.at as f64 / 1e9, text: cut(&event.text) }).collect()
}

#[cfg(test)]
mod tests;
