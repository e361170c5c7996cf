//! The page of a run.

mod figures;
mod labels;
mod metrics;
mod series;
mod setup;
mod target;

use gake_core::record::{AgentRecord, Run, RunEnd};
use gake_judge::{Summary, Validity, advice};
use serde::Serialize;

use self::figures::{FiguresJson, PageLatencyJson, latencies};
use self::labels::{LabelSeries, PageLabelJson, labels};
use self::metrics::{MetricJson, metrics};
use self::series::{CurveJson, PageHistogramJson, PageSeriesJson, curves, histogram};
use self::setup::{PageObjectiveJson, PageOriginJson, StageJson, objectives, stages};
use self::target::TargetJson;
use super::{SCHEMA, bounded, cut, cut_to, instant};
use crate::formats::headline::{self, Tone};

/// Most points of the series: about as many as a chart on a wide screen has columns.
pub(super) const POINTS_MAX: usize = 900;

/// Most characters shown of a name.
const NAME_MAX: usize = 120;

const LABELS_MAX: usize = 200;

const AGENTS_MAX: usize = 200;

const METRICS_MAX: usize = 100;

/// Most rows shown of any other list.
const ROWS_MAX: usize = 30;

/// The data of a run on any page that shows one.
#[derive(Serialize)]
pub(super) struct RunJson {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    target: String,
    /// The plan in a sentence, without the target.
    plan: String,
    origin: PageOriginJson,
    stages: Vec<StageJson>,
    /// RFC 3339 in UTC.
    started: String,
    elapsed_ns: u64,
    warmup_s: f64,
    /// What ended the run, unless its plan was completed.
    ended: Option<String>,
    validity: &'static str,
    reasons: Vec<String>,
    objectives: Vec<PageObjectiveJson>,
    /// Statements about the target.
    target_news: Vec<TargetStatementJson>,
    findings: Vec<PageFindingJson>,
    figures: FiguresJson,
    latencies: Vec<PageLatencyJson>,
    statuses: Vec<StatusJson>,
    faults: Vec<FaultJson>,
    /// The most frequent bodies of failed responses.
    failed_bodies: Vec<PageFailedBodyJson>,
    labels: Vec<PageLabelJson>,
    /// Labels omitted from `labels`.
    more_labels: usize,
    /// The time series by label, with points of their own.
    label_series: Option<LabelSeries>,
    /// Checks and custom metrics.
    metrics: Vec<MetricJson>,
    /// Series omitted from `metrics`.
    more_metrics: usize,
    agents: Vec<PageAgentJson>,
    /// Agents omitted from `agents`.
    more_agents: usize,
    events: Vec<PageEventJson>,
    series: PageSeriesJson,
    histogram: PageHistogramJson,
    curves: Vec<CurveJson>,
    /// The watched target; null when it was not watched.
    target_levels: Option<TargetJson>,
    /// The run drawn behind this one, and its name.
    over: Option<Box<BaselineJson>>,
    /// The progress of a live run; absent in a finished one.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<ProgressJson>,
}

/// A statement of the headline about the target.
#[derive(Serialize)]
struct TargetStatementJson {
    text: String,
    state: &'static str,
    meaning: String,
}

fn target_news(summary: &Summary) -> Vec<TargetStatementJson> {
    let news = headline::target(summary).into_iter().map(|one| TargetStatementJson {
        text: one.text,
        state: match one.tone {
            Tone::Good => "valid",
            Tone::Doubtful => "suspect",
            Tone::Bad => "invalid",
        },
        meaning: one.meaning,
    });
    news.collect()
}

/// The progress of a live run.
#[derive(Serialize)]
pub(super) struct ProgressJson {
    /// How long requests are sent, when the duration is limited.
    length_s: Option<f64>,
    /// Whether the page may stop the run.
    control: bool,
    /// The current rate in percent of the plan's, when the page may change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_percent: Option<f64>,
}

/// The controls of the live page.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageControl {
    /// Whether it may stop the run.
    pub stop: bool,
    /// The current rate in percent of the plan's, when it may change it.
    pub rate_percent: Option<f64>,
}

/// A run drawn behind another one.
#[derive(Serialize)]
struct BaselineJson {
    name: String,
    run: RunJson,
}

#[derive(Serialize)]
struct PageFindingJson {
    id: &'static str,
    evidence: String,
    advice: String,
    check: String,
}

#[derive(Serialize)]
struct StatusJson {
    code: u16,
    count: u64,
    ok: bool,
}

#[derive(Serialize)]
struct FaultJson {
    text: String,
    count: u64,
    advice: &'static str,
}

#[derive(Serialize)]
struct PageFailedBodyJson {
    status: u16,
    text: String,
    count: u64,
}

#[derive(Serialize)]
struct PageAgentJson {
    name: String,
    validity: String,
    /// Why its figures are doubtful, the worst first.
    reasons: Vec<String>,
    sent: u64,
    lateness_p99_ns: u64,
    /// When it was lost, if it was.
    lost_s: Option<f64>,
}

#[derive(Serialize)]
struct PageEventJson {
    s: f64,
    text: String,
}

/// The page of a run as one file. A page over its limit shows longer intervals.
#[must_use]
pub fn run(summary: &Summary) -> String {
    bounded(POINTS_MAX, |points| RunJson::new(summary, points))
}

/// The page of a run with another one, called `name`, behind it on every chart.
#[must_use]
pub fn run_over(summary: &Summary, name: &str, over: &Summary) -> String {
    bounded(POINTS_MAX, |points| RunJson::over(summary, points, name, over))
}

impl RunJson {
    /// The data of a live run; `summary` covers the seconds so far.
    pub(super) fn running(summary: &Summary, points: usize, control: PageControl) -> Self {
        let length_s = summary.run.plan.length().map(|length| length.as_secs_f64());
        let PageControl { stop, rate_percent } = control;
        let live = ProgressJson { length_s, control: stop, rate_percent };
        Self { live: Some(live), ..Self::new(summary, points) }
    }

    /// The data of a run with another one, called `name`, behind it.
    pub(super) fn over(summary: &Summary, points: usize, name: &str, behind: &Summary) -> Self {
        let mut run = Self::new(behind, points);
        // No chart shows the heat of the run behind, and it takes the most space.
        run.series.clear_heat();
        run.label_series = None;
        let over = BaselineJson { name: cut_to(name, NAME_MAX), run };
        Self { over: Some(Box::new(over)), ..Self::new(summary, points) }
    }

    pub(super) fn new(summary: &Summary, points: usize) -> Self {
        let (run, verdict) = (&summary.run, &summary.verdict);
        let (metrics, more_metrics) = metrics(run);
        let plan = run.plan.to_string();
        let rest = plan.strip_prefix(&run.plan.target).and_then(|rest| rest.strip_prefix(": "));
        let findings = verdict.findings.iter().map(|finding| PageFindingJson {
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
            figures: FiguresJson::new(run),
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
            series: PageSeriesJson::new(run, points),
            histogram: histogram(run),
            curves: curves(run),
            target_levels: TargetJson::new(run, points),
            over: None,
            live: None,
        }
    }
}

fn agents(run: &Run) -> Vec<PageAgentJson> {
    let form = |agent: &AgentRecord| PageAgentJson {
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

fn statuses(run: &Run) -> Vec<StatusJson> {
    let form = |&(code, count): &(u16, u64)| {
        let ok = run.plan.expect.accepts(code);
        StatusJson { code, count, ok }
    };
    run.tally.statuses().iter().map(form).collect()
}

fn faults(run: &Run) -> Vec<FaultJson> {
    let mut faults = run.tally.faults().to_vec();
    faults.sort_by_key(|fault| std::cmp::Reverse(fault.1));
    let form = |(fault, count): (gake_core::record::Fault, u64)| FaultJson {
        text: cut(&fault.in_words()),
        count,
        advice: advice(fault),
    };
    faults.into_iter().take(ROWS_MAX).map(form).collect()
}

/// Bodies of failed responses, the most frequent first.
fn failed_bodies(run: &Run) -> Vec<PageFailedBodyJson> {
    let bodies = run.bodies.by_count().into_iter().take(ROWS_MAX);
    bodies
        .map(|body| PageFailedBodyJson {
            status: body.status,
            text: cut(&body.text),
            count: body.count,
        })
        .collect()
}

fn events(run: &Run) -> Vec<PageEventJson> {
    let events = run.events.iter().take(ROWS_MAX);
    events.map(|event| PageEventJson { s: event.at as f64 / 1e9, text: cut(&event.text) }).collect()
}

#[cfg(test)]
mod tests;
