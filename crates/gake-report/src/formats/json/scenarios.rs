//! Iterations and scenarios in JSON.

use gake_core::plan::Plan;
use gake_core::record::{Counts, Run, ScenarioRun};
use serde::Serialize;

use super::figures::{RequestsJson, seconds};
use super::latency::LatencyJson;
use crate::json_types::plan::finished;

/// Iteration counts. due = started + dropped; started = finished + interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct IterationsJson {
    due: u64,
    started: u64,
    /// Completed.
    finished: u64,
    /// Interrupted.
    interrupted: u64,
    /// Never fired.
    dropped: u64,
}

impl From<&Counts> for IterationsJson {
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

/// The iteration counts of a run, unless its iterations are single requests.
pub(super) fn iterations(run: &Run) -> Option<IterationsJson> {
    let counts = &run.tally.counts;
    (!counts.is_plain() || !run.scenarios.is_empty()).then(|| counts.into())
}

/// One of several scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ScenarioJson {
    /// The scenario's name.
    name: String,
    /// The plan of the scenario.
    plan: Plan,
    /// From the end of its warm-up to the end of its arrivals, in seconds.
    measured_s: f64,
    /// Arrivals per second by the plan; null in a closed loop.
    asked_rate: Option<f64>,
    /// Iteration counts, after the warm-up.
    iterations: IterationsJson,
    /// Request counts, after the warm-up.
    requests: RequestsJson,
    /// Latencies in nanoseconds.
    latency_ns: LatencyJson,
}

impl From<&ScenarioRun> for ScenarioJson {
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
