//! The run summary in JSON.

use std::collections::BTreeMap;

use gake_core::clock::nanos;
use gake_core::plan::Plan;
use gake_core::record::{AgentRecord, Fault, Run};
use gake_judge::saturation::Saturation;
use gake_judge::{Evaluation, Finding, NothingOk, Summary, Validity, Verdict, advice};
use serde::Serialize;

use super::bodies::FailedBodiesJson;
use super::figures::{
    BytesJson, ConnectionsJson, GeneratorUsageJson, LabelJson, PointJson, RateJson, RequestsJson,
    labels, seconds,
};
use super::latency::LatencyJson;
use super::metrics::{MetricsJson, metrics};
use super::scenarios::{IterationsJson, ScenarioJson, iterations};
use crate::json_types::plan::finished;
use crate::json_types::run::{EndingJson, EventJson};
use crate::json_types::watched::{GaugeJson, WatchedTargetJson};

/// A run of gake: its plan, what was measured, and the verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "gake.run/1"))]
pub(super) struct SummaryJson {
    /// Always `gake.run/1`.
    schema: &'static str,
    /// The version of gake that wrote this.
    gake: &'static str,
    /// The plan of the run.
    plan: Plan,
    /// The start of the run, RFC 3339 in UTC.
    started: String,
    /// From the start to the last outcome, in seconds.
    elapsed_s: f64,
    /// From the end of the warm-up to the end of arrivals, in seconds.
    measured_s: f64,
    /// What ended the run.
    ended: EndingJson,
    /// The judgement of the run.
    verdict: VerdictJson,
    /// Request counts, after the warm-up.
    requests: RequestsJson,
    /// Iteration counts, after the warm-up; absent when every iteration is one request.
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<IterationsJson>,
    /// The scenarios; absent when there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scenarios: Vec<ScenarioJson>,
    /// Arrivals per second.
    rate: RateJson,
    /// Latencies in nanoseconds.
    latency_ns: LatencyJson,
    /// Responses by status code.
    status: BTreeMap<String, u64>,
    /// Requests without a response, by fault.
    faults: BTreeMap<&'static str, u64>,
    /// Faults with details and advice.
    fault_details: Vec<FaultDetailJson>,
    /// The most frequent bodies of failed responses; absent when there are none or they were not
    /// recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_bodies: Option<FailedBodiesJson>,
    /// Bytes including heads, before TLS.
    bytes: BytesJson,
    /// Connection counts.
    connections: ConnectionsJson,
    /// The objectives, in the given order.
    objectives: Vec<ObjectiveJson>,
    /// The generator's own resource usage.
    generator: GeneratorUsageJson,
    /// Figures by label; empty when there is only one.
    labels: Vec<LabelJson>,
    /// Checks and custom metrics; absent when there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<MetricsJson>,
    /// The counts of the warm-up, which no other figure includes.
    warmup: RequestsJson,
    /// The time series; each point of a long run covers several seconds.
    series: Vec<PointJson>,
    /// Events other than requests.
    events: Vec<EventJson>,
    /// The agents of a fleet; absent without a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<Vec<AgentJson>>,
    /// Samples of the target; absent when it was not watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<WatchedTargetJson>,
    /// Samples of the generator's machine, and of a target on it, on which findings are based.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<Vec<GaugeJson>>,
}

impl From<&Summary> for SummaryJson {
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
            scenarios: run.scenarios.iter().map(ScenarioJson::from).collect(),
            latency_ns: (&run.tally).into(),
            status: run.tally.statuses().iter().map(|(s, n)| (s.to_string(), *n)).collect(),
            faults,
            fault_details: run.tally.faults().iter().map(Into::into).collect(),
            failed_bodies: FailedBodiesJson::new(&run.bodies),
            bytes: counts.into(),
            connections: run.into(),
            objectives: summary.verdict.objectives.iter().map(Into::into).collect(),
            generator: GeneratorUsageJson::new(run),
            labels: labels(run),
            metrics: metrics(run),
            warmup: (&run.warmup).into(),
            series: run.series.points().iter().map(Into::into).collect(),
            events: run.events.iter().map(Into::into).collect(),
            agents: (!run.agents.is_empty()).then(|| run.agents.iter().map(Into::into).collect()),
            target: WatchedTargetJson::new(&run.watched, nanos(run.plan.warmup)),
            machine: GaugeJson::of_machine(&run.watched, nanos(run.plan.warmup)),
        }
    }
}

fn started(run: &Run) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| run.started_unix_ns.to_string(), |at| at.to_string())
}

/// The judgement of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerdictJson {
    /// Why no request succeeded; absent when one did, or none was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    nothing_ok: Option<NothingOkJson>,
    /// Whether the figures are believable.
    validity: ValidityJson,
    /// Set when an open loop demanded more than the target completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    overload: Option<OverloadJson>,
    /// Why the figures are doubtful, the worst first.
    reasons: Vec<String>,
    /// What limited the run.
    findings: Vec<FindingJson>,
}

impl From<&Verdict> for VerdictJson {
    fn from(verdict: &Verdict) -> Self {
        Self {
            nothing_ok: verdict.nothing_ok.as_ref().map(Into::into),
            validity: match verdict.validity {
                Validity::Valid => ValidityJson::Valid,
                Validity::Suspect => ValidityJson::Suspect,
                Validity::Invalid => ValidityJson::Invalid,
            },
            overload: verdict.saturation.as_ref().map(Into::into),
            reasons: verdict.reasons.iter().map(|reason| reason.text.clone()).collect(),
            findings: verdict.findings.iter().map(Into::into).collect(),
        }
    }
}

/// An overloaded target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct OverloadJson {
    /// Arrivals per second by the plan, in the second half of the load.
    asked_per_s: f64,
    /// Arrivals per second that the target completed.
    completed_per_s: f64,
}

impl From<&Saturation> for OverloadJson {
    fn from(saturation: &Saturation) -> Self {
        Self { asked_per_s: saturation.asked, completed_per_s: saturation.completed }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct NothingOkJson {
    /// What ended most requests.
    cause: String,
    /// The recommended action.
    advice: &'static str,
}

impl From<&NothingOk> for NothingOkJson {
    fn from(nothing: &NothingOk) -> Self {
        Self { cause: nothing.cause.clone(), advice: nothing.advice }
    }
}

/// Whether the figures are believable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ValidityJson {
    /// Believable.
    Valid,
    /// Doubtful: see the reasons.
    Suspect,
    /// Not believable.
    Invalid,
}

/// One finding about the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FindingJson {
    /// Its stable id.
    id: &'static str,
    /// The measured facts.
    evidence: String,
    /// The recommended action.
    advice: String,
    /// Where another tool shows the same number.
    check: String,
    /// Its role: `cause`, `symptom`, or `context` that explains nothing.
    rank: &'static str,
}

impl From<&Finding> for FindingJson {
    fn from(finding: &Finding) -> Self {
        let Finding { id, evidence, advice, check, rank, .. } = finding.clone();
        Self { id, evidence, advice, check, rank: rank.name() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FaultDetailJson {
    /// The fault's name.
    fault: &'static str,
    /// Details beyond the name; may be empty.
    detail: String,
    /// Number of occurrences.
    count: u64,
    /// The recommended action.
    advice: &'static str,
}

impl From<&(Fault, u64)> for FaultDetailJson {
    fn from(&(fault, count): &(Fault, u64)) -> Self {
        Self { fault: fault.name(), detail: fault.detail(), count, advice: advice(fault) }
    }
}

/// One agent of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AgentJson {
    /// The agent's name.
    name: String,
    /// When it was lost, in seconds since the start; absent if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_s: Option<f64>,
    /// Whether its own figures are believable: `valid`, `suspect`, `invalid`.
    validity: String,
    /// Why they are doubtful, the worst first.
    reasons: Vec<String>,
    /// Requests sent after the warm-up, as far as it reported.
    sent: u64,
    /// The 99th percentile of its lateness, in nanoseconds.
    lateness_p99_ns: u64,
}

impl From<&AgentRecord> for AgentJson {
    fn from(agent: &AgentRecord) -> Self {
        let AgentRecord { name, lost_ns, validity, reasons, sent, lateness_p99_ns } = agent.clone();
        let lost_s = lost_ns.map(seconds);
        Self { name, lost_s, validity, reasons, sent, lateness_p99_ns }
    }
}

/// An objective and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ObjectiveJson {
    /// The objective as given.
    text: String,
    /// The measured value; null if there was nothing to measure.
    value: Option<f64>,
    /// The unit of `value`: `ns`, `percent`, `count` or `per_second`.
    unit: &'static str,
    /// Whether it was met.
    met: bool,
    /// Why there is no value.
    problem: Option<String>,
}

impl From<&Evaluation> for ObjectiveJson {
    fn from(evaluation: &Evaluation) -> Self {
        let Evaluation { text, value, unit, met, problem } = evaluation.clone();
        Self { text, value, unit: unit.name(), met, problem }
    }
}
