//! A summary in JSON.

use std::collections::BTreeMap;

use gake_core::clock::nanos;
use gake_core::plan::Plan;
use gake_core::record::{AgentRecord, Fault, Run};
use gake_judge::saturation::Saturation;
use gake_judge::{Evaluation, Finding, NothingOk, Summary, Validity, Verdict, advice};
use serde::Serialize;

use super::bodies::FailedBodiesForm;
use super::figures::{
    BytesForm, ConnectionsForm, GeneratorForm, LabelForm, PointForm, RateForm, RequestsForm,
    labels, seconds,
};
use super::latency::LatencyForm;
use super::metrics::{MetricsForm, metrics};
use super::scenarios::{IterationsForm, ScenarioForm, iterations};
use crate::json_types::plan::finished;
use crate::json_types::run::{EndingForm, EventForm};
use crate::json_types::watched::{GaugeForm, WatchedForm};

/// A run of gake: what was asked, what came, and how it is judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "gake.run/1"))]
pub(super) struct SummaryForm {
    /// Always `gake.run/1`.
    schema: &'static str,
    /// The version of gake that wrote this.
    gake: &'static str,
    /// What was asked.
    plan: Plan,
    /// When the run started, RFC 3339 in UTC.
    started: String,
    /// From the start to the last outcome, in seconds.
    elapsed_s: f64,
    /// From the end of the warm-up to the end of arrivals, in seconds.
    measured_s: f64,
    /// What ended the run.
    ended: EndingForm,
    /// Its judgement.
    verdict: VerdictForm,
    /// How many arrivals, after the warm-up.
    requests: RequestsForm,
    /// How many iterations, after the warm-up; absent where each is one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<IterationsForm>,
    /// Each scenario by itself; absent when there is one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scenarios: Vec<ScenarioForm>,
    /// Arrivals a second.
    rate: RateForm,
    /// Latencies in nanoseconds.
    latency_ns: LatencyForm,
    /// Responses by status code.
    status: BTreeMap<String, u64>,
    /// Ends without a response by fault.
    faults: BTreeMap<&'static str, u64>,
    /// The same with the details, and what to do.
    fault_details: Vec<FaultDetailForm>,
    /// The most frequent bodies of failed answers; absent when none came, or they were not asked
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_bodies: Option<FailedBodiesForm>,
    /// Bytes, heads included, before TLS.
    bytes: BytesForm,
    /// Connections.
    connections: ConnectionsForm,
    /// The objectives, in the order given.
    objectives: Vec<ObjectiveForm>,
    /// What the generator itself used.
    generator: GeneratorForm,
    /// By label; empty when there is one.
    labels: Vec<LabelForm>,
    /// Checks, and metrics that the run counted itself; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<MetricsForm>,
    /// The counts of the warm-up, which are in no other figure.
    warmup: RequestsForm,
    /// Over the seconds; of a long run each point stands for several.
    series: Vec<PointForm>,
    /// What happened beside requests.
    events: Vec<EventForm>,
    /// What each agent of a fleet did; absent without a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<AgentForm>>,
    /// What the target said of itself; absent when it was not watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<WatchedForm>,
    /// What was read of the generator's own machine, and of the target when it is on it: findings
    /// rest on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Vec<GaugeForm>>,
}

impl From<&Summary> for SummaryForm {
    fn from(summary: &Summary) -> Self {
        let run = &summary.run;
        let counts = &run.tally.counts;
        let mut faults = BTreeMap::new();
        for (fault, count) in run.tally.faults() {
            *faults.entry(fault.name()).or_default() += count;
        }
        Self {
            schema: "gake.run/1",
            gake: env!("CARGO_PKG_VERSION"),
            plan: finished(&run.plan),
            started: started(run),
            elapsed_s: seconds(run.elapsed),
            measured_s: seconds(run.measured),
            ended: (&run.ending).into(),
            verdict: (&summary.verdict).into(),
            requests: counts.into(),
            rate: run.into(),
            iterations: iterations(run),
            scenarios: run.scenarios.iter().map(ScenarioForm::from).collect(),
            latency_ns: (&run.tally).into(),
            status: run.tally.statuses().iter().map(|(s, n)| (s.to_string(), *n)).collect(),
            faults,
            fault_details: run.tally.faults().iter().map(Into::into).collect(),
            failed_bodies: FailedBodiesForm::new(&run.bodies),
            bytes: counts.into(),
            connections: run.into(),
            objectives: summary.verdict.objectives.iter().map(Into::into).collect(),
            generator: GeneratorForm::new(run),
            labels: labels(run),
            metrics: metrics(run),
            warmup: (&run.warmup).into(),
            series: run.series.points().iter().map(Into::into).collect(),
            events: run.events.iter().map(Into::into).collect(),
            agents: (!run.agents.is_empty()).then(|| run.agents.iter().map(Into::into).collect()),
            target: WatchedForm::new(&run.watched, nanos(run.plan.warmup)),
            machine: GaugeForm::of_machine(&run.watched, nanos(run.plan.warmup)),
        }
    }
}

fn started(run: &Run) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| run.started_unix_ns.to_string(), |at| at.to_string())
}

/// The judgement of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerdictForm {
    /// Why no request succeeded; absent when one did, or none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    nothing_ok: Option<NothingOkForm>,
    /// Whether the figures can be believed.
    validity: ValidityForm,
    /// That an open loop asked for more than the target completes; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    overload: Option<OverloadForm>,
    /// Why not, the worst first.
    reasons: Vec<String>,
    /// What limited the run.
    findings: Vec<FindingForm>,
}

impl From<&Verdict> for VerdictForm {
    fn from(verdict: &Verdict) -> Self {
        Self {
            nothing_ok: verdict.nothing_ok.as_ref().map(Into::into),
            validity: match verdict.validity {
                Validity::Valid => ValidityForm::Valid,
                Validity::Suspect => ValidityForm::Suspect,
                Validity::Invalid => ValidityForm::Invalid,
            },
            overload: verdict.saturation.as_ref().map(Into::into),
            reasons: verdict.reasons.iter().map(|reason| reason.text.clone()).collect(),
            findings: verdict.findings.iter().map(Into::into).collect(),
        }
    }
}

/// A target that was asked for more than it completes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OverloadForm {
    /// Arrivals a second that the plan asked for, in the second half of the load.
    asked_per_s: f64,
    /// Of them the target completed, a second.
    completed_per_s: f64,
}

impl From<&Saturation> for OverloadForm {
    fn from(saturation: &Saturation) -> Self {
        Self { asked_per_s: saturation.asked, completed_per_s: saturation.completed }
    }
}

/// Why no request of a run succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NothingOkForm {
    /// What ended most of the requests.
    cause: String,
    /// What to try.
    advice: &'static str,
}

impl From<&NothingOk> for NothingOkForm {
    fn from(nothing: &NothingOk) -> Self {
        Self { cause: nothing.cause.clone(), advice: nothing.advice }
    }
}

/// Whether the figures can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ValidityForm {
    /// They can.
    Valid,
    /// Look at the reasons first.
    Suspect,
    /// They cannot.
    Invalid,
}

/// One statement about what limited the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingForm {
    /// Its stable name.
    id: &'static str,
    /// What was seen.
    evidence: String,
    /// What to try.
    advice: String,
    /// Where the same number can be read with another tool.
    check: String,
    /// What it is to the run: `cause`, `symptom`, or `context` that explains nothing.
    rank: &'static str,
}

impl From<&Finding> for FindingForm {
    fn from(finding: &Finding) -> Self {
        let Finding { id, evidence, advice, check, rank } = finding.clone();
        Self { id, evidence, advice, check, rank: rank.name() }
    }
}

/// A fault with its detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FaultDetailForm {
    /// The fault.
    fault: &'static str,
    /// What is known beyond its name; may be empty.
    detail: String,
    /// How often.
    count: u64,
    /// What to do about it.
    advice: &'static str,
}

impl From<&(Fault, u64)> for FaultDetailForm {
    fn from(&(fault, count): &(Fault, u64)) -> Self {
        Self { fault: fault.name(), detail: fault.detail(), count, advice: advice(fault) }
    }
}

/// What one agent of a fleet did.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentForm {
    /// Its name.
    name: String,
    /// When it was lost, in seconds since the start; absent when it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_s: Option<f64>,
    /// Whether its figures can be believed, judged by themselves: `valid`, `suspect`, `invalid`.
    validity: String,
    /// Why not, the worst first.
    reasons: Vec<String>,
    /// Requests that it sent after the warm-up, as far as it told.
    sent: u64,
    /// The 99th percentile of its lateness, in nanoseconds.
    lateness_p99_ns: u64,
}

impl From<&AgentRecord> for AgentForm {
    fn from(agent: &AgentRecord) -> Self {
        let AgentRecord { name, lost_ns, validity, reasons, sent, lateness_p99_ns } = agent.clone();
        let lost_s = lost_ns.map(seconds);
        Self { name, lost_s, validity, reasons, sent, lateness_p99_ns }
    }
}

/// An objective with its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ObjectiveForm {
    /// The objective.
    text: String,
    /// What was measured; null when there was nothing to measure.
    value: Option<f64>,
    /// The unit of `value`: `ns`, `percent`, `count` or `per_second`.
    unit: &'static str,
    /// Whether it was met.
    met: bool,
    /// Why there is no value.
    problem: Option<String>,
}

impl From<&Evaluation> for ObjectiveForm {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { text, value, unit, met, problem } = evaluation.clone();
        Self { text, value, unit: unit.name(), met, problem }
    }
}
