//! What to send, how much, for how long, over which connections: a plain value, built before any
//! I/O. Rendered requests and TLS settings belong to the wire.

mod bounds;
pub mod expect;
mod line;
pub mod rate;
pub mod stage;
mod tables;
#[cfg(test)]
mod tests;
mod users;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use bounds::{Overflow, Timeouts};
pub use expect::ExpectedStatus;
pub use rate::{Rate, parse_rate};
pub use stage::{StageError, UserStageError, parse_stages, parse_user_stages};
pub use tables::{OTHER_DESCRIPTORS, TableShares, connections_within, tables_for, tables_hold};
pub use users::{UserStage, presence};

use crate::Load;
use crate::metric::{MAX_SERIES, Tags};
pub use crate::schedule::Stage;
use crate::schedule::{NumberPattern, RateChange, Schedule, Slice};
use crate::seconds::{AsOptionalSeconds, AsSeconds};

/// Default maximum connections of an open loop: enough for a stall of one second at 1,000/s.
pub const OPEN_CONNECTIONS: usize = 1_000;

/// Default of [`Plan::fast_users`].
const FAST_USERS: usize = 8;

/// Default time for requests in flight to finish at the end of a run.
pub const DRAIN: Duration = Duration::from_secs(5);

/// One load, or several that run in parallel ([`PlanLoad::Scenarios`]).
///
/// [`Plan::new`] has the defaults; override them with a struct update. Serialised in run files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The scenario's name.
    #[serde(default = "default_name", skip_serializing_if = "is_default_name")]
    pub name: String,
    /// A URL or a targets file, as the user wrote it. For display.
    pub target: String,
    /// What an arrival fires.
    #[serde(default, skip_serializing_if = "WorkKind::is_requests")]
    pub fires: WorkKind,
    /// How arrivals are generated.
    pub load: PlanLoad,
    /// From the start of the run to the start of this load.
    #[serde(
        default,
        rename = "start_s",
        with = "AsSeconds",
        skip_serializing_if = "Duration::is_zero"
    )]
    pub start: Duration,
    /// Tags of all samples of this load: keys and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// Arrivals stop after this time; `None`: only a count ends the run.
    #[serde(default, rename = "duration_s", with = "AsOptionalSeconds")]
    pub duration: Option<Duration>,
    /// Arrivals stop after this number; `None`: only time ends the run.
    pub requests: Option<u64>,
    /// The arrivals of a larger open loop that this load makes, if it is a slice of one. Rates
    /// belong to this load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripes: Option<NumberPattern>,
    /// Time before `duration` whose arrivals are left out of the figures.
    #[serde(rename = "warmup_s", with = "AsSeconds")]
    pub warmup: Duration,
    /// Maximum connections over all workers. In a closed loop each user has one, unless users
    /// share HTTP/2 connections.
    pub connections: usize,
    /// Maximum concurrent requests on a connection: 1 with HTTP/1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub streams: usize,
    /// Lanes: maximum number of arrivals in flight. The transport decides how many share a
    /// connection.
    pub max_in_flight: usize,
    /// What happens to an arrival that is due while `max_in_flight` is reached.
    pub overflow: Overflow,
    /// Maximum number of new connections a second.
    pub connect_rate: Option<f64>,
    /// Connections opened at the start and kept idle.
    pub idle_connections: usize,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// Time-outs of each request.
    pub timeouts: Timeouts,
    /// Graceful stop: time for arrivals in flight to finish after the last arrival.
    #[serde(rename = "drain_s", with = "AsSeconds")]
    pub drain: Duration,
    /// Workers: OS threads, each with a runtime.
    pub threads: usize,
    /// Descriptor tables. If there are several, each worker has its own, and there are at least as
    /// many workers.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tables: usize,
    /// Whether workers busy-poll at the end of each wait.
    pub spin: bool,
    /// Users on a worker from which plain requests of a closed loop take the engine's fast path: with
    /// fewer, it would wait more often than it saves work. The results are the same.
    #[serde(skip, default = "fast_users")]
    pub fast_users: usize,
    /// Which responses are ok.
    pub expect: ExpectedStatus,
    /// Maximum number of distinct series of the run's own metrics.
    #[serde(default = "max_series", skip_serializing_if = "is_max_series")]
    pub max_series: usize,
    /// Names of the labels, by label number; empty for one unnamed target.
    pub labels: Vec<String>,
}

/// One load, or several in parallel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum PlanLoad {
    /// Several loads, each with figures of its own. Threads and spinning are set by the outer plan,
    /// whose warm-up is the time before the first figures of any scenario.
    Scenarios {
        /// Plans of one load each.
        scenarios: Vec<Plan>,
    },
    /// One load.
    #[serde(untagged)]
    One(Load),
}

/// What an arrival fires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// An HTTP request.
    #[default]
    Requests,
    /// An iteration of a script, by one of its users.
    Iterations,
    /// A message of a WebSocket session.
    Messages,
    /// A gRPC call.
    Calls,
}

impl WorkKind {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_requests(&self) -> bool {
        matches!(self, Self::Requests)
    }
}

impl Plan {
    /// The name of an unnamed load.
    pub const DEFAULT_NAME: &str = "default";

    /// The tag of samples whose value is the scenario's name.
    pub const NAME_TAG: &str = "scenario";

    /// A load on `target` with defaults: one thread; a connection for each user of a closed loop,
    /// [`OPEN_CONNECTIONS`] for an open one.
    #[must_use]
    pub fn new(target: impl Into<String>, load: impl Into<PlanLoad>) -> Self {
        let load = load.into();
        let connections = load.users().unwrap_or(OPEN_CONNECTIONS);
        Self {
            name: Self::DEFAULT_NAME.to_owned(),
            target: target.into(),
            fires: WorkKind::Requests,
            load,
            start: Duration::ZERO,
            tags: Vec::new(),
            duration: None,
            requests: None,
            stripes: None,
            warmup: Duration::ZERO,
            connections,
            streams: 1,
            max_in_flight: connections,
            overflow: Overflow::Wait,
            connect_rate: None,
            idle_connections: 0,
            keepalive: true,
            timeouts: Timeouts::default(),
            drain: DRAIN,
            threads: 1,
            tables: 1,
            spin: false,
            fast_users: FAST_USERS,
            max_series: MAX_SERIES,
            expect: ExpectedStatus::default(),
            labels: Vec::new(),
        }
    }

    /// The plans of [`PlanLoad::Scenarios`], or this plan itself.
    #[must_use]
    pub fn scenarios(&self) -> &[Self] {
        match &self.load {
            PlanLoad::Scenarios { scenarios } => scenarios,
            PlanLoad::One(_) => std::slice::from_ref(self),
        }
    }

    /// Whether any scenario fires iterations of a script.
    #[must_use]
    pub fn fires_iterations(&self) -> bool {
        self.scenarios().iter().any(|plan| plan.fires == WorkKind::Iterations)
    }

    /// Whether all samples of this load carry these tags. The name counts as the tag `scenario`.
    #[must_use]
    pub fn carries(&self, tags: &Tags) -> bool {
        tags.pairs().iter().all(|(key, value)| match key.as_str() {
            Self::NAME_TAG => self.name == *value,
            // The last value of a repeated key wins, as in `Tags::new`.
            _ => self.tags.iter().rfind(|tag| tag.0 == *key).is_some_and(|tag| tag.1 == *value),
        })
    }

    /// The schedule of an open loop, counted from the start of this load.
    ///
    /// The warm-up runs at the rate the first sending stage starts with (its mean rate when it
    /// starts at 0); a bound on requests counts those after the warm-up.
    #[must_use]
    pub fn schedule(&self, seed: u64) -> Option<Schedule> {
        let (stages, process) = match self.load.one()? {
            Load::Open { stages, process } => (stages, process),
            // A recording has no rate to warm up at.
            Load::Replay { trace, .. } => {
                return Some(Schedule::replay(trace.clone().unwrap_or_default(), self.requests));
            }
            _ => return None,
        };
        let mut schedule = Schedule::new(*process, stages, self.requests, seed);
        if let Some(stripes) = &self.stripes {
            schedule = schedule.with_pattern(stripes.clone());
        }
        if self.warmup.is_zero() {
            return Some(schedule);
        }
        let first = stages.iter().find(|s| s.from > 0.0 || s.to > 0.0)?;
        let rate = if first.from > 0.0 { first.from } else { first.to / 2.0 };
        Some(schedule.after(rate, self.warmup))
    }

    /// The plan with the rates of its open loops changed. A change of the first stage may change
    /// the warm-up of the schedule: restore it with [`Schedule::with_warmup_of`].
    #[must_use]
    pub fn with_rates_changed(&self, changes: &[RateChange]) -> Self {
        let mut plan = self.clone();
        match &mut plan.load {
            PlanLoad::One(Load::Open { stages, .. }) => {
                let start = self.start.saturating_add(self.warmup);
                *stages = RateChange::apply(changes, stages, start);
            }
            PlanLoad::Scenarios { scenarios } => {
                for plan in scenarios {
                    *plan = plan.with_rates_changed(changes);
                }
            }
            PlanLoad::One(_) => {}
        }
        plan
    }

    /// Maximum number of arrivals of this load in flight; at least one.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.load.users().unwrap_or(self.max_in_flight).max(1)
    }

    /// Workers of the run in one process: its threads, at least one for each descriptor table, and
    /// no more than lanes.
    #[must_use]
    pub fn workers(&self) -> usize {
        let lanes = self.scenarios().iter().map(Self::lanes).max().unwrap_or(1);
        self.threads.max(self.tables).clamp(1, lanes)
    }

    /// Connections that users of this load keep open; 0 in an open loop and without keep-alive.
    #[must_use]
    pub fn kept_connections(&self) -> usize {
        if self.load.is_open() || !self.keepalive { 0 } else { self.connections }
    }

    /// The slice of this load of worker `worker` in process `process`. `None` for the last workers
    /// of a load with fewer lanes than workers.
    #[must_use]
    pub fn slice(&self, process: Slice, worker: Slice) -> Option<Slice> {
        let process = process.among(self.lanes())?;
        let worker = worker.among(process.count(self.lanes()))?;
        Some(process.inner(worker))
    }

    /// The seed of scenario `number`: scenarios with the same rate must not fire at the same
    /// instants.
    #[must_use]
    pub const fn scenario_seed(seed: u64, number: usize) -> u64 {
        seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// How long arrivals come, warm-up included, if known beforehand: from the start of this load;
    /// for several, from the start of the first to the end of the last.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        let main = match &self.load {
            PlanLoad::Scenarios { scenarios } => {
                let end = |plan: &Self| plan.start.checked_add(plan.length()?);
                // Their lengths include their warm-ups.
                return scenarios
                    .iter()
                    .map(end)
                    .try_fold(Duration::ZERO, |last, end| Some(last.max(end?)));
            }
            PlanLoad::One(load) => self.duration.or_else(|| load.length()),
        };
        main.and_then(|main| main.checked_add(self.warmup))
    }
}

impl PlanLoad {
    /// The load, if it is one.
    #[must_use]
    pub const fn one(&self) -> Option<&Load> {
        match self {
            Self::One(load) => Some(load),
            Self::Scenarios { .. } => None,
        }
    }

    /// Whether it is one open loop.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.one().is_some_and(Load::is_open)
    }

    /// Whether it is one closed loop whose users send the next request right after a response.
    #[must_use]
    pub fn is_back_to_back(&self) -> bool {
        self.one().is_some_and(Load::is_back_to_back)
    }

    /// Maximum concurrent users of one closed loop.
    #[must_use]
    pub fn users(&self) -> Option<usize> {
        self.one().and_then(Load::users)
    }
}

impl From<Load> for PlanLoad {
    fn from(load: Load) -> Self {
        Self::One(load)
    }
}

impl From<Vec<Plan>> for PlanLoad {
    fn from(scenarios: Vec<Plan>) -> Self {
        Self::Scenarios { scenarios }
    }
}

fn default_name() -> String {
    Plan::DEFAULT_NAME.to_owned()
}

fn is_default_name(name: &str) -> bool {
    name == Plan::DEFAULT_NAME
}

const fn max_series() -> usize {
    MAX_SERIES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_max_series(n: &usize) -> bool {
    *n == MAX_SERIES
}

const fn fast_users() -> usize {
    FAST_USERS
}

const fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(n: &usize) -> bool {
    *n == 1
}
