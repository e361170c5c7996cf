//! The ending, events and resource usage of a run, in the run file and JSON.

use gake_core::record::{Generator, RunEnd, RunEvent};
use gake_text::redact::Redacted;
use serde::{Deserialize, Serialize};

/// What ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub(crate) enum EndingJson {
    /// The plan was completed.
    Done,
    /// A signal, or the run file is incomplete.
    Interrupted,
    /// A missed objective that was to abort the run.
    Aborted {
        /// The objective.
        objective: String,
    },
    /// The targets were used up.
    OutOfTargets,
}

impl From<&RunEnd> for EndingJson {
    fn from(ending: &RunEnd) -> Self {
        match ending {
            RunEnd::Done => Self::Done,
            RunEnd::Interrupted => Self::Interrupted,
            RunEnd::Aborted(objective) => Self::Aborted { objective: objective.clone() },
            RunEnd::OutOfTargets => Self::OutOfTargets,
        }
    }
}

impl From<EndingJson> for RunEnd {
    fn from(form: EndingJson) -> Self {
        match form {
            EndingJson::Done => Self::Done,
            EndingJson::Interrupted => Self::Interrupted,
            EndingJson::Aborted { objective } => Self::Aborted(objective),
            EndingJson::OutOfTargets => Self::OutOfTargets,
        }
    }
}

/// An event other than a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct EventJson {
    /// Nanoseconds since the start of the run.
    at_ns: u64,
    /// A sentence.
    #[cfg_attr(test, schemars(with = "String"))]
    text: Redacted,
}

impl From<&RunEvent> for EventJson {
    fn from(event: &RunEvent) -> Self {
        Self { at_ns: event.at, text: event.text.clone() }
    }
}

impl From<EventJson> for RunEvent {
    fn from(form: EventJson) -> Self {
        Self { at: form.at_ns, text: form.text }
    }
}

/// The generator's own resource usage, exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct GeneratorJson {
    cpu_ns: u64,
    busiest: f64,
    run_delay_ns: u64,
    rss_bytes: u64,
    threads: usize,
    cores: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    miscounted: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    abandoned: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<&Generator> for GeneratorJson {
    fn from(generator: &Generator) -> Self {
        Self {
            cpu_ns: generator.cpu,
            busiest: generator.busiest,
            run_delay_ns: generator.run_delay,
            rss_bytes: generator.rss_bytes,
            threads: generator.threads,
            cores: generator.cores,
            miscounted: generator.miscounted,
            abandoned: generator.abandoned,
        }
    }
}

impl From<GeneratorJson> for Generator {
    fn from(form: GeneratorJson) -> Self {
        Self {
            cpu: form.cpu_ns,
            busiest: form.busiest,
            run_delay: form.run_delay_ns,
            rss_bytes: form.rss_bytes,
            threads: form.threads,
            cores: form.cores,
            miscounted: form.miscounted,
            abandoned: form.abandoned,
        }
    }
}
