//! A whole run as it was recorded: facts only, no judgement.

use serde::{Deserialize, Serialize};

use super::failed_bodies::FailedBodies;
use super::counts::Counts;
use super::series::Series;
use super::tally::Tally;
use super::watch_record::WatchRecord;
use crate::clock::Nanos;
use crate::plan::Plan;

/// What ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// The plan was completed: its time was over or its count reached.
    Done,
    /// A signal.
    Interrupted,
    /// A missed objective, when the user asked to stop then; its text.
    Aborted(String),
    /// The targets ran out.
    OutOfTargets,
}

/// Something that happened at an instant and is not a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    /// When.
    pub at: Nanos,
    /// What, in a sentence.
    pub text: String,
}

/// What one agent of a fleet did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its name.
    pub name: String,
    /// When it was lost, in ns since the epoch, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_ns: Option<Nanos>,
    /// Whether its figures can be believed, judged by themselves: valid, suspect, invalid.
    pub validity: String,
    /// Why not, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Requests that it sent after the warm-up, as far as it told.
    pub sent: u64,
    /// The 99th percentile of its lateness, in ns.
    pub lateness_p99_ns: Nanos,
}

/// What the generator itself used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// CPU time of the workers' threads, in the measured part.
    pub cpu: Nanos,
    /// The largest share of one core that a worker used in the measured part, 0 to 1.
    pub busiest: f64,
    /// Time that workers were runnable without a core (other processes had it).
    pub run_delay: Nanos,
    /// The highest resident memory of the process that was seen, as each second ended and at the
    /// end; the sum of several processes, such as agents.
    pub rss_bytes: u64,
    /// Workers.
    pub threads: usize,
    /// Cores the process may use.
    pub cores: usize,
    /// Arrivals and requests by which its counts differ where they must agree; 0 unless the
    /// generator itself is wrong.
    #[serde(default)]
    pub miscounted: u64,
}

/// The origin of a run: what is needed to repeat it and to judge it by the same objectives.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command lines that fired it, without secrets; several when runs were merged.
    pub commands: Vec<String>,
    /// The machines it ran on: name, system, cores.
    pub hosts: Vec<String>,
    /// The versions of gake.
    pub versions: Vec<String>,
    /// The objectives it was judged against, as the user wrote them.
    pub objectives: Vec<String>,
    /// The specs it followed, as JSON, without secrets; several when runs were merged. Older files
    /// have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub specs: Vec<String>,
}

impl Provenance {
    /// Adds what is only in `other`.
    pub fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.commands, &other.commands),
            (&mut self.hosts, &other.hosts),
            (&mut self.versions, &other.versions),
            (&mut self.objectives, &other.objectives),
            (&mut self.specs, &other.specs),
        ] {
            for text in theirs {
                if !mine.contains(text) {
                    mine.push(text.clone());
                }
            }
        }
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The plan.
    pub plan: Plan,
    /// The commands, hosts, versions and objectives; empty when they are unknown.
    pub origin: Provenance,
    /// When the epoch was, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// From the end of the warm-up to the end of arrivals: the base of the rate asked.
    pub measured: Nanos,
    /// From the end of the warm-up to the last arrival fired, `measured` at least: the base of the
    /// rate sent. Longer when a backlog was sent late.
    pub sending: Nanos,
    /// From the end of the warm-up to the last answer or fault, at least `measured`: the base of
    /// completed rate and goodput, so that what a drain completes does not raise them, and a
    /// wait for answers that never came does not lower them.
    pub completing: Nanos,
    /// From the epoch to the last outcome, including those given up when the drain ended.
    pub elapsed: Nanos,
    /// What ended it.
    pub ending: RunEnd,
    /// Arrivals a second that the plan asked for, the mean over its time (or over the part
    /// before an interrupt); `None` in a closed loop, which asks for no rate.
    pub asked_rate: Option<f64>,
    /// Every outcome after the warm-up.
    pub tally: Tally,
    /// The counts of the warm-up.
    pub warmup: Counts,
    /// The figures over time.
    pub series: Series,
    /// Peak number of open connections.
    pub peak_connections: u64,
    /// What the generator itself used.
    pub generator: Generator,
    /// Events other than requests.
    pub events: Vec<RunEvent>,
    /// The agents, when a fleet did it.
    #[serde(default)]
    pub agents: Vec<AgentRecord>,
    /// What was sampled of the target, if it was watched.
    pub watched: WatchRecord,
    /// Bodies of failed answers, when they were asked for.
    #[serde(default)]
    pub bodies: FailedBodies,
    /// Each scenario by itself, when the run has several; the figures above are their sum.
    pub scenarios: Vec<ScenarioRun>,
}

/// One of several scenarios of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// The plan.
    pub plan: Plan,
    /// From the end of its warm-up to the end of its arrivals.
    pub measured: Nanos,
    /// From the end of its warm-up to its last arrival fired, `measured` at least.
    pub sending: Nanos,
    /// From the end of its warm-up to its last answer or fault, `measured` at least.
    pub completing: Nanos,
    /// Arrivals a second that its plan asked for; `None` in a closed loop.
    pub asked_rate: Option<f64>,
    /// Every outcome after its warm-up.
    pub tally: Tally,
    /// The counts of its warm-up.
    pub warmup: Counts,
}
