//! A summary in JSON.

use std::collections::BTreeMap;

use gake_core::record::{Counts, Fault, Generator, Point, Run};
use gake_judge::stats::{Rates, span};
use gake_judge::{Evaluation, Finding, Summary, Validity, Verdict, advice};
use serde::Serialize;

use super::latency::{HistogramForm, LatencyForm};
use crate::forms::plan::PlanForm;
use crate::forms::run::{EndingForm, EventForm};

/// A run of gake: what was asked, what came, and what is to be thought of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "gake.run/1"))]
pub(super) struct SummaryForm {
    /// Always `gake.run/1`.
    schema: &'static str,
    /// The version of gake that wrote this.
    gake: &'static str,
    /// What was asked.
    plan: PlanForm,
    /// When the run started, RFC 3339 in UTC.
    started: String,
    /// From the start to the last outcome, in seconds.
    elapsed_s: f64,
    /// From the end of the warm-up to the end of arrivals, in seconds.
    measured_s: f64,
    /// What ended the run.
    ended: EndingForm,
    /// What is to be thought of it.
    verdict: VerdictForm,
    /// How many arrivals, after the warm-up.
    requests: RequestsForm,
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
    /// The counts of the warm-up, which are in no other figure.
    warmup: RequestsForm,
    /// Over the seconds; of a long run each point stands for several.
    series: Vec<PointForm>,
    /// What happened beside requests.
    events: Vec<EventForm>,
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
            plan: (&run.plan).into(),
            started: started(run),
            elapsed_s: seconds(run.elapsed),
            measured_s: seconds(run.measured),
            ended: (&run.ending).into(),
            verdict: (&summary.verdict).into(),
            requests: counts.into(),
            rate: run.into(),
            latency_ns: (&run.tally).into(),
            status: run.tally.statuses().iter().map(|(s, n)| (s.to_string(), *n)).collect(),
            faults,
            fault_details: run.tally.faults().iter().map(Into::into).collect(),
            bytes: BytesForm { r#in: counts.bytes_in, out: counts.bytes_out },
            connections: run.into(),
            objectives: summary.verdict.objectives.iter().map(Into::into).collect(),
            generator: GeneratorForm::new(run),
            labels: labels(run),
            warmup: (&run.warmup).into(),
            series: run.series.points().iter().map(Into::into).collect(),
            events: run.events.iter().map(Into::into).collect(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn started(run: &Run) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| run.started_unix_ns.to_string(), |at| at.to_string())
}

fn labels(run: &Run) -> Vec<LabelForm> {
    let names = run.plan.labels.iter().zip(run.tally.labels());
    names
        .map(|(name, label)| LabelForm {
            label: name.clone(),
            requests: (&label.counts).into(),
            response_ns: (&label.response).into(),
            service_ns: (&label.service).into(),
        })
        .collect()
}

/// What is to be thought of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct VerdictForm {
    /// Whether the figures can be believed.
    validity: ValidityForm,
    /// Why not, the worst first.
    reasons: Vec<String>,
    /// What limited the run.
    findings: Vec<FindingForm>,
}

impl From<&Verdict> for VerdictForm {
    fn from(verdict: &Verdict) -> Self {
        Self {
            validity: match verdict.validity {
                Validity::Valid => ValidityForm::Valid,
                Validity::Suspect => ValidityForm::Suspect,
                Validity::Invalid => ValidityForm::Invalid,
            },
            reasons: verdict.reasons.iter().map(|reason| reason.text.clone()).collect(),
            findings: verdict.findings.iter().map(Into::into).collect(),
        }
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
}

impl From<&Finding> for FindingForm {
    fn from(finding: &Finding) -> Self {
        let Finding { id, evidence, advice } = finding.clone();
        Self { id, evidence, advice }
    }
}

/// How many arrivals. sent = ok + failed + unfinished; due = sent + dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RequestsForm {
    /// Arrivals that were due.
    due: u64,
    /// Arrivals that were fired.
    sent: u64,
    /// Of the sent, those whose request was wholly written.
    written: u64,
    /// Responses that met the expectation.
    ok: u64,
    /// Responses that did not, and faults.
    failed: u64,
    /// In flight when the drain ended.
    unfinished: u64,
    /// Never sent, because every connection was busy.
    dropped: u64,
}

impl From<&Counts> for RequestsForm {
    fn from(counts: &Counts) -> Self {
        Self {
            due: counts.due(),
            sent: counts.sent,
            written: counts.written,
            ok: counts.ok,
            failed: counts.failed,
            unfinished: counts.unfinished,
            dropped: counts.dropped,
        }
    }
}

/// Arrivals a second.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RateForm {
    /// What the plan asked for; null in a closed loop.
    asked: Option<f64>,
    /// What left, over the time in which it was sent.
    sent: f64,
    /// What came back, over the time from the end of the warm-up to the last outcome.
    completed: f64,
    /// What came back ok, over the same time.
    goodput: f64,
}

impl From<&Run> for RateForm {
    fn from(run: &Run) -> Self {
        let Rates { asked, sent, completed, goodput } = Rates::of(run);
        Self { asked, sent, completed, goodput }
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

/// Bytes, heads included, before TLS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BytesForm {
    /// Read.
    r#in: u64,
    /// Written.
    out: u64,
}

/// Connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ConnectionsForm {
    /// Opened in all.
    opened: u64,
    /// Most open at once.
    peak: u64,
    /// Reused ones found closed, and replaced for the same request.
    stale_reconnects: u64,
    /// Responses followed by bytes that nobody asked for; their connection was closed.
    excess: u64,
    /// TCP segments sent again, as far as sampled.
    retransmits: u64,
    /// Idle ones, held beside the load, that the server closed.
    idle_lost: u64,
}

impl From<&Run> for ConnectionsForm {
    fn from(run: &Run) -> Self {
        let counts = &run.tally.counts;
        Self {
            opened: counts.opened,
            peak: run.peak_connections,
            stale_reconnects: counts.stale_reconnects,
            excess: counts.excess,
            retransmits: counts.retransmits,
            idle_lost: counts.idle_lost,
        }
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

/// What the generator itself used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct GeneratorForm {
    /// CPU time of the workers, after the warm-up, in seconds.
    cpu_s: f64,
    /// The same as a share of the workers' cores, 0 to 1.
    cpu_share: f64,
    /// The largest share of one core that a worker used, 0 to 1.
    busiest_share: f64,
    /// Time in which workers were runnable but other processes had the cores, in seconds.
    run_delay_s: f64,
    /// Resident memory at the end.
    rss_bytes: u64,
    /// Workers.
    threads: usize,
    /// Cores that the process might use.
    cores: usize,
}

impl GeneratorForm {
    fn new(run: &Run) -> Self {
        let Generator { cpu, busiest, run_delay, rss_bytes, threads, cores } = run.generator;
        let time = span(run) as f64 * threads as f64;
        Self {
            cpu_s: seconds(cpu),
            cpu_share: if time > 0.0 { cpu as f64 / time } else { 0.0 },
            busiest_share: busiest,
            run_delay_s: seconds(run_delay),
            rss_bytes,
            threads,
            cores,
        }
    }
}

/// What one label saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LabelForm {
    /// Its name.
    label: String,
    /// How many arrivals; dropped ones are not told by label.
    requests: RequestsForm,
    /// Response time.
    response_ns: HistogramForm,
    /// Service time.
    service_ns: HistogramForm,
}

/// What one piece of the run saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct PointForm {
    /// Where it starts, in seconds since the start of the run.
    second: u64,
    /// How many seconds it stands for.
    seconds: u64,
    /// Arrivals that the plan asked for in it; null in a closed loop.
    asked: Option<f64>,
    /// What ended in it.
    requests: RequestsForm,
    /// Bytes that its requests read and wrote.
    bytes: BytesForm,
    /// Median response time; of joined seconds the worst, as with all percentiles here.
    p50_ns: u64,
    /// 90th percentile of the response time.
    p90_ns: u64,
    /// 99th percentile of the response time.
    p99_ns: u64,
    /// The longest response time.
    max_ns: u64,
    /// 99th percentile of the service time.
    service_p99_ns: u64,
    /// 99th percentile of the generator's own delay.
    lateness_p99_ns: u64,
    /// Mean number in flight.
    in_flight: f64,
    /// Connections open at its end.
    open_connections: u64,
    /// CPU time of the workers in it.
    cpu_ns: u64,
}

impl From<&Point> for PointForm {
    fn from(point: &Point) -> Self {
        Self {
            second: point.second,
            seconds: point.seconds,
            asked: point.asked,
            requests: (&point.counts).into(),
            bytes: BytesForm { r#in: point.counts.bytes_in, out: point.counts.bytes_out },
            p50_ns: point.p50,
            p90_ns: point.p90,
            p99_ns: point.p99,
            max_ns: point.max,
            service_p99_ns: point.service_p99,
            lateness_p99_ns: point.lateness_p99,
            in_flight: point.in_flight,
            open_connections: point.open,
            cpu_ns: point.cpu,
        }
    }
}
