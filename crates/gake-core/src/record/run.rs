//! A recorded run: facts, no judgement.

use gake_text::redact::{Redacted, Redactor, SecretNames};
use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::failed_bodies::FailedBodies;
use super::series::Series;
use super::tally::Tally;
use super::watch_record::WatchRecord;
use crate::clock::Nanos;
use crate::plan::Plan;

/// The reason why a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// The plan was completed.
    Done,
    /// A signal.
    Interrupted,
    /// A missed objective, with its text.
    Aborted(String),
    /// The source of requests was exhausted.
    OutOfTargets,
}

/// An event that is not a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The instant.
    pub at: Nanos,
    /// A sentence. It may quote what others said.
    pub text: Redacted,
}

impl RunEvent {
    /// An event, with masks for the secrets in its sentence.
    #[must_use]
    pub fn new(at: Nanos, text: &str) -> Self {
        Self { at, text: Redactor::masking(SecretNames::default()).sentence(text) }
    }
}

/// The record of one agent of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The agent's name.
    pub name: String,
    /// When it was lost, in ns since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ns: Option<Nanos>,
    /// Validity of its own figures: valid, suspect, invalid.
    pub validity: String,
    /// Reasons, worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Requests sent after the warm-up, as far as reported.
    pub sent: u64,
    /// 99th percentile of its lateness, in ns.
    pub lateness_p99_ns: Nanos,
}

/// Resource usage of the generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the workers after the warm-up.
    pub cpu: Nanos,
    /// The largest share of a core that a worker used after the warm-up, 0 to 1.
    pub busiest: f64,
    /// Time that workers were runnable but not running.
    pub run_delay: Nanos,
    /// Peak resident memory, sampled each second and at the end; the sum over processes.
    pub rss_bytes: u64,
    /// Number of workers.
    pub threads: usize,
    /// Cores the process may use.
    pub cores: usize,
    /// By how much counts that must agree differ; above 0 only if the generator has a bug.
    #[serde(default)]
    pub miscounted: u64,
    /// Workers that blocked their threads and were abandoned, with what they had not reported.
    #[serde(default)]
    pub abandoned: u64,
}

/// The origin of a run: enough to repeat it and to judge it by the same objectives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Command lines, without secrets; several if runs were merged.
    pub commands: Vec<Redacted>,
    /// Machines: name, system, cores.
    pub hosts: Vec<String>,
    /// Versions of gake.
    pub versions: Vec<String>,
    /// Objectives, as the user wrote them.
    pub objectives: Vec<String>,
    /// Specs as JSON, without secrets; several if runs were merged. Absent in old files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub specs: Vec<Redacted>,
}

impl Provenance {
    /// Adds the entries of `other` that are missing.
    pub fn absorb(&mut self, other: &Self) {
        add_missing(&mut self.commands, &other.commands);
        add_missing(&mut self.hosts, &other.hosts);
        add_missing(&mut self.versions, &other.versions);
        add_missing(&mut self.objectives, &other.objectives);
        add_missing(&mut self.specs, &other.specs);
    }
}

fn add_missing<T: Clone + PartialEq>(mine: &mut Vec<T>, theirs: &[T]) {
    for text in theirs {
        if !mine.contains(text) {
            mine.push(text.clone());
        }
    }
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The plan.
    pub plan: Plan,
    /// Commands, hosts, versions and objectives; empty if unknown.
    pub origin: Provenance,
    /// The epoch in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// From the end of the warm-up to the end of arrivals: divisor of the rate asked.
    pub measured: Nanos,
    /// From the end of the warm-up to the last arrival fired, at least `measured`: divisor of the
    /// rate sent. Longer if a backlog was sent late.
    pub sending: Nanos,
    /// From the end of the warm-up to the last response or fault, at least `measured`: divisor of
    /// the completed rate and goodput, so that neither a drain nor a wait for missing responses
    /// distorts them.
    pub completing: Nanos,
    /// From the epoch to the last outcome, unfinished ones included.
    pub elapsed: Nanos,
    /// Why it ended.
    pub ending: RunEnd,
    /// Mean arrivals a second that the plan asked for, up to an interrupt; `None` in a closed loop.
    pub asked_rate: Option<f64>,
    /// All outcomes after the warm-up.
    pub tally: Tally,
    /// The counts of the warm-up.
    pub warmup: Counts,
    /// The figures over time.
    pub series: Series,
    /// Peak number of open connections.
    pub peak_connections: u64,
    /// Resource usage of the generator.
    pub generator: Generator,
    /// Events other than requests.
    pub events: Vec<RunEvent>,
    /// The agents of a fleet.
    #[serde(default)]
    pub agents: Vec<AgentRecord>,
    /// Samples of the target, if it was watched.
    pub watched: WatchRecord,
    /// Bodies of failed responses, on request.
    #[serde(default)]
    pub bodies: FailedBodies,
    /// The scenarios, if there are several; the figures above are their sum.
    pub scenarios: Vec<ScenarioRun>,
}

/// One of several scenarios of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// The plan.
    pub plan: Plan,
    /// From the end of its warm-up to the end of its arrivals.
    pub measured: Nanos,
    /// From the end of its warm-up to its last arrival fired, at least `measured`.
    pub sending: Nanos,
    /// From the end of its warm-up to its last response or fault, at least `measured`.
    pub completing: Nanos,
    /// Arrivals a second that its plan asked for; `None` in a closed loop.
    pub asked_rate: Option<f64>,
    /// All outcomes after its warm-up.
    pub tally: Tally,
    /// The counts of its warm-up.
    pub warmup: Counts,
}
