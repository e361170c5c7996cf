//! The spec of a trial: the spec of the search with the load of the trial.

use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{OPEN_CONNECTIONS, Stage};
use gake_judge::search::{Dimension, Trial, TrialLoad};

use super::options::CapacityOptions;
use crate::spec::{RunSpec, ScenarioSpec};

/// Drain at the end of a trial.
const DRAIN: Duration = Duration::from_secs(10);
/// Requests a second while idle connections are held open.
const LIGHT: f64 = 20.0;
/// Connections for a rate, as a multiple of the requests in flight at the objective's latency.
const CONNECTIONS_TIMES: f64 = 3.0;
/// Without an objective for latency, responses may take this multiple of their time without load.
const UNLOADED_TIMES: f64 = 2.0;
/// Minimum users of a script: each takes memory and time to create.
const SCRIPT_USERS: usize = 50;

/// Determines the number of connections of a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConnectionNeeds {
    /// The latency of the objectives, in seconds.
    pub(super) limit: f64,
    /// The response time without load, in seconds; 0 if unknown.
    pub(super) unloaded: f64,
    /// Whether the load consists of users of a script.
    pub(super) has_scripts: bool,
}

impl ConnectionNeeds {
    /// Enough connections not to limit the load before an objective does.
    fn connections_for(self, rate: f64, options: &CapacityOptions) -> usize {
        let longest = self.limit.max(UNLOADED_TIMES * self.unloaded);
        let needed = (CONNECTIONS_TIMES * rate * longest).ceil() as usize;
        let least = if self.has_scripts { SCRIPT_USERS } else { OPEN_CONNECTIONS };
        let connections = options.connections.unwrap_or(least.max(needed));
        connections.min(options.connections_max)
    }
}

/// The spec of `trial`, with the requests of `spec`.
pub(super) fn of(
    trial: &Trial,
    spec: &RunSpec,
    options: &CapacityOptions,
    needs: ConnectionNeeds,
) -> RunSpec {
    let dimension = options.search.dimension;
    let (rate, connections, idle) = match trial.load {
        TrialLoad::Rate(rate) => (Some(rate), needs.connections_for(rate, options), 0),
        TrialLoad::Users(_) if dimension == Dimension::Streams => {
            (None, options.connections.unwrap_or(1).min(options.connections_max), 0)
        }
        TrialLoad::Users(users) => (None, users, 0),
        TrialLoad::Connections(idle) => (Some(LIGHT), OPEN_CONNECTIONS, idle),
    };
    let load = match rate {
        Some(rate) => {
            let stages = vec![Stage::step(rate, trial.duration)];
            Load::Open { stages, process: options.arrivals }
        }
        None => Load::closed(trial.load.level() as usize),
    };
    let max_in_flight = load.users().unwrap_or(connections);
    let mut spec = spec.clone();
    spec.seed = trial.seed;
    spec.warmup = trial.warmup;
    spec.abort = false;
    spec.connection.idle_connections = idle;
    spec.connection.keepalive &= !dimension.connects_each();
    for scenario in &mut spec.scenarios {
        *scenario = ScenarioSpec {
            load: load.clone(),
            duration: rate.is_none().then_some(trial.duration),
            requests: None,
            start: Duration::ZERO,
            connections,
            max_in_flight,
            graceful_stop: DRAIN.max(Duration::from_secs_f64(2.0 * needs.unloaded.min(60.0))),
            ..scenario.clone()
        };
    }
    spec
}
