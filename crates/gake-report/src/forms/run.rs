//! How a run ended, what it used and what happened, as the run file and JSON have it.

use gake_core::record::{Generator, RunEnd, RunEvent};
use serde::{Deserialize, Serialize};

/// What ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub(crate) enum EndingForm {
    /// Its plan was done.
    Done,
    /// A signal, or the run file ends before the run did.
    Interrupted,
    /// An objective was missed and the run was to stop then.
    Aborted {
        /// The objective.
        objective: String,
    },
    /// The targets ran out.
    OutOfTargets,
}

impl From<&RunEnd> for EndingForm {
    fn from(ending: &RunEnd) -> Self {
        match ending {
            RunEnd::Done => Self::Done,
            RunEnd::Interrupted => Self::Interrupted,
            RunEnd::Aborted(objective) => Self::Aborted { objective: objective.clone() },
            RunEnd::OutOfTargets => Self::OutOfTargets,
        }
    }
}

impl From<EndingForm> for RunEnd {
    fn from(form: EndingForm) -> Self {
        match form {
            EndingForm::Done => Self::Done,
            EndingForm::Interrupted => Self::Interrupted,
            EndingForm::Aborted { objective } => Self::Aborted(objective),
            EndingForm::OutOfTargets => Self::OutOfTargets,
        }
    }
}

/// Something that happened and is not a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventForm {
    /// Nanoseconds since the start of the run.
    at_ns: u64,
    /// What, in a sentence.
    text: String,
}

impl From<&RunEvent> for EventForm {
    fn from(event: &RunEvent) -> Self {
        Self { at_ns: event.at, text: event.text.clone() }
    }
}

impl From<EventForm> for RunEvent {
    fn from(form: EventForm) -> Self {
        Self { at: form.at_ns, text: form.text }
    }
}

/// What the generator itself used, to the last bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GeneratorForm {
    cpu_ns: u64,
    busiest: f64,
    run_delay_ns: u64,
    rss_bytes: u64,
    threads: usize,
    cores: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    miscounted: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<&Generator> for GeneratorForm {
    fn from(generator: &Generator) -> Self {
        Self {
            cpu_ns: generator.cpu,
            busiest: generator.busiest,
            run_delay_ns: generator.run_delay,
            rss_bytes: generator.rss_bytes,
            threads: generator.threads,
            cores: generator.cores,
            miscounted: generator.miscounted,
        }
    }
}

impl From<GeneratorForm> for Generator {
    fn from(form: GeneratorForm) -> Self {
        Self {
            cpu: form.cpu_ns,
            busiest: form.busiest,
            run_delay: form.run_delay_ns,
            rss_bytes: form.rss_bytes,
            threads: form.threads,
            cores: form.cores,
            miscounted: form.miscounted,
        }
    }
}
