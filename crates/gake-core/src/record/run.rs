//! A whole run as it was recorded: facts only, no judgement.

use super::series::Series;
use super::tally::{Counts, Tally};
use super::watched::Watched;
use crate::clock::Nanos;
use crate::plan::Plan;

/// What ended a run.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What, in a sentence.
    pub text: String,
}

/// What the generator itself used.
#[derive(Debug, Clone, Default, PartialEq)]
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

/// A whole run.
#[derive(Debug, Clone)]
pub struct Run {
    /// What was asked.
    pub plan: Plan,
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
}
