//! Iterations and scenarios in JSON.

use gake_core::plan::Plan;
use gake_core::record::{Counts, Run, ScenarioRun};
use serde::Serialize;

use super::figures::{RequestsForm, seconds};
use super::latency::LatencyForm;
use crate::json_types::plan::finished;

/// How many iterations. due = started + dropped; started = finished + interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct IterationsForm {
    /// Arrivals that were due.
    due: u64,
    /// Arrivals that were fired.
    started: u64,
    /// Came to their end.
    finished: u64,
    /// Were cut short.
    interrupted: u64,
    /// Never fired.
    dropped: u64,
}

impl From<&Counts> for IterationsForm {
    fn from(counts: &Counts) -> Self {
        Self {
            due: counts.arrivals(),
            started: counts.started,
            finished: counts.finished(),
            interrupted: counts.interrupted,
            dropped: counts.dropped,
        }
    }
}

/// The iterations of a run, where they are not its requests.
pub(super) fn iterations(run: &Run) -> Option<IterationsForm> {
    let counts = &run.tally.counts;
    (!counts.is_plain() || !run.scenarios.is_empty()).then(|| counts.into())
}

/// One of several scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ScenarioForm {
    /// Its name.
    name: String,
    /// What was asked.
    plan: Plan,
    /// From the end of its warm-up to the end of its arrivals, in seconds.
    measured_s: f64,
    /// Arrivals a second that its plan asked for; null in a closed loop.
    asked_rate: Option<f64>,
    /// How many iterations, after its warm-up.
    iterations: IterationsForm,
    /// How many requests, after its warm-up.
    requests: RequestsForm,
    /// Latencies in nanoseconds.
    latency_ns: LatencyForm,
}

impl From<&ScenarioRun> for ScenarioForm {
    fn from(scenario: &ScenarioRun) -> Self {
        let counts = &scenario.tally.counts;
        Self {
            name: scenario.plan.name.clone(),
            plan: finished(&scenario.plan),
            measured_s: seconds(scenario.measured),
            asked_rate: scenario.asked_rate,
            iterations: counts.into(),
            requests: counts.into(),
            latency_ns: (&scenario.tally).into(),
        }
    }
}
