//! A whole run as it was recorded: facts only, no judgement.

use serde::{Deserialize, Serialize};

use super::bodies::FailedBodies;
use super::counts::Counts;
use super::series::Series;
use super::tally::Tally;
use super::watched::Watched;
use crate::clock::Nanos;
use crate::plan::Plan;

/// What ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Its plan was done: the time was over or the count was reached.
    Done,
    /// A signal.
    Interrupted,
    /// An objective was missed and the user had asked to stop then; its text.
    Aborted(String),
    /// The targets ran out.
    OutOfTargets,
}

/// Something that happened at an instant and is not a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What, in a sentence.
    pub text: String,
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
    /// Resident memory of the process at the end.
    pub rss_bytes: u64,
    /// Workers.
    pub threads: usize,
    /// Cores the process may use.
    pub cores: usize,
}

/// Where a run comes from: what somebody needs to repeat it and to judge it as it was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The command lines that fired it, without secrets; several when runs were merged.
    pub commands: Vec<String>,
    /// The machines it ran on: name, system, cores.
    pub hosts: Vec<String>,
    /// The versions of gake.
    pub versions: Vec<String>,
    /// The objectives it was judged against, as they are read.
    pub objectives: Vec<String>,
}

impl Provenance {
    /// Adds what `other` says and this does not.
    pub fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.commands, &other.commands),
            (&mut self.hosts, &other.hosts),
            (&mut self.versions, &other.versions),
            (&mut self.objectives, &other.objectives),
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
    /// What was asked.
    pub plan: Plan,
    /// Who asked, where, and with which objectives; empty when nothing says so.
    pub origin: Provenance,
    /// When the epoch was, in Unix nanoseconds.
    pub started_unix_ns: u64,
    /// From the end of the warm-up to the end of arrivals: what the rate asked is over.
    pub measured: Nanos,
    /// From the end of the warm-up to the last arrival fired, `measured` at least: what the rate
    /// sent is over. Longer when a backlog was sent after its time.
    pub sending: Nanos,
    /// From the end of the warm-up to the last answer or fault, `measured` at least: what the rates
    /// completed and goodput are over, so that what a drain completes does not raise them, and the
    /// wait for what never came does not lower them.
    pub completing: Nanos,
    /// From the epoch to the last outcome, also of those given up when the drain ended.
    pub elapsed: Nanos,
    /// What ended it.
    pub ending: Ending,
    /// Arrivals a second that the plan asked for, the mean over its time (or over the part
    /// before an interrupt); `None` in a closed loop, which asks for no rate.
    pub asked_rate: Option<f64>,
    /// Every outcome after the warm-up.
    pub tally: Tally,
    /// The counts of the warm-up.
    pub warmup: Counts,
    /// Over the seconds.
    pub series: Series,
    /// Most connections open at once.
    pub peak_connections: u64,
    /// The generator's own use.
    pub generator: Generator,
    /// What happened beside requests.
    pub events: Vec<Event>,
    /// What the target said of itself, when it was watched.
    pub watched: Watched,
    /// Bodies of failed answers, when they were asked for.
    #[serde(default)]
    pub bodies: FailedBodies,
    /// Each scenario by itself, when the run has several; the figures above are their sum.
    pub scenarios: Vec<ScenarioRun>,
}

/// One of several scenarios of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// What was asked.
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
