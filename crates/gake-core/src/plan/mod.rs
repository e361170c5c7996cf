//! What to send, how much, for how long, over which connections: a plain value.
//!
//! A plan is built from flags, a file or a script's options before anything is touched, and can
//! be printed. What goes over the wire (the rendered request, the TLS settings) is the wire's.

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

/// Default time for requests in flight to finish at the end of a run.
pub const DRAIN: Duration = Duration::from_secs(5);

/// One load before it runs, or, as [`PlanLoad::Scenarios`], several that run side by side.
///
/// [`Plan::new`] has the defaults; set what differs with a struct update.
/// Run files and JSON hold plans in this form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The scenario's name, when there are several or it was named.
    #[serde(default = "default_name", skip_serializing_if = "is_default_name")]
    pub name: String,
    /// What is loaded, as the user named it: a URL or a targets file. For people.
    pub target: String,
    /// What each arrival fires.
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
    /// Tags of every sample of this load: keys and values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// Arrivals stop after this time; `None` when only a count ends the run.
    #[serde(default, rename = "duration_s", with = "AsOptionalSeconds")]
    pub duration: Option<Duration>,
    /// Arrivals stop after this number; `None` when only time ends the run.
    pub requests: Option<u64>,
    /// Which arrivals of a larger open loop this load is, if it is part of one. Its rates are its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripes: Option<NumberPattern>,
    /// The first part of the run, left out of the figures; comes before `duration`.
    #[serde(rename = "warmup_s", with = "AsSeconds")]
    pub warmup: Duration,
    /// Maximum connections over all workers. In a closed loop each user has one, unless users
    /// share those of HTTP/2.
    pub connections: usize,
    /// Maximum concurrent requests on a connection: 1 with HTTP/1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub streams: usize,
    /// Lanes: maximum number of arrivals in flight. How many of them share a connection is up to
    /// the transport.
    pub max_in_flight: usize,
    /// What happens to an arrival that is due while `max_in_flight` is reached.
    pub overflow: Overflow,
    /// New connections a second, when bounded.
    pub connect_rate: Option<f64>,
    /// Connections opened at the start and held without a request.
    pub idle_connections: usize,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// The bounds on waiting.
    pub timeouts: Timeouts,
    /// The graceful stop: how long those in flight may take after the last arrival.
    #[serde(rename = "drain_s", with = "AsSeconds")]
    pub drain: Duration,
    /// Workers: OS threads with a runtime each.
    pub threads: usize,
    /// Descriptor tables. With more than that of the process, there are at least as many workers,
    /// and each has its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub tables: usize,
    /// Whether a worker polls the last part of each wait.
    pub spin: bool,
    /// Which responses are ok.
    pub expect: ExpectedStatus,
    /// Maximum number of distinct series of the run's own metrics.
    #[serde(default = "max_series", skip_serializing_if = "is_max_series")]
    pub max_series: usize,
    /// Names of the labels, by label number; empty when there is one target without a name.
    pub labels: Vec<String>,
}

/// What a plan loads with: one load, or several plans side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum PlanLoad {
    /// Several loads side by side. Each is a plan of one load and counts for itself; of the plan
    /// around them, the threads and the spinning hold for all, and its warm-up is the time before
    /// the first figures of any of them.
    Scenarios {
        /// Their plans.
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
    /// A request of HTTP.
    #[default]
    Requests,
    /// An iteration of a script, by one of its users.
    Iterations,
    /// A message of a WebSocket session.
    Messages,
    /// A call of gRPC.
    Calls,
}

impl WorkKind {
    /// Whether it is a plain request.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    const fn is_requests(&self) -> bool {
        matches!(self, Self::Requests)
    }
}

impl Plan {
    /// The name of a load without a name.
    pub const DEFAULT_NAME: &str = "default";

    /// The key of the tag that a scenario's name is to each of its samples.
    pub const NAME_TAG: &str = "scenario";

    /// A load on `target` with the defaults of everything else: one thread, a connection for each
    /// user of a closed loop, [`OPEN_CONNECTIONS`] of an open one.
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
            max_series: MAX_SERIES,
            expect: ExpectedStatus::default(),
            labels: Vec::new(),
        }
    }

    /// The loads that run side by side: those of [`PlanLoad::Scenarios`], or this plan itself.
    #[must_use]
    pub fn scenarios(&self) -> &[Self] {
        match &self.load {
            PlanLoad::Scenarios { scenarios } => scenarios,
            PlanLoad::One(_) => std::slice::from_ref(self),
        }
    }

    /// Whether it, or one of its scenarios, fires iterations of a script.
    #[must_use]
    pub fn fires_iterations(&self) -> bool {
        self.scenarios().iter().any(|plan| plan.fires == WorkKind::Iterations)
    }

    /// Whether every sample of this load carries these tags. Its name is its tag `scenario`.
    #[must_use]
    pub fn carries(&self, tags: &Tags) -> bool {
        tags.pairs().iter().all(|(key, value)| match key.as_str() {
            Self::NAME_TAG => self.name == *value,
            // The last of a key that repeats counts, as in [`Tags::new`].
            _ => self.tags.iter().rfind(|tag| tag.0 == *key).is_some_and(|tag| tag.1 == *value),
        })
    }

    /// When each arrival is due, counted from the start of this load, for an open loop.
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
            schedule = schedule.striped(stripes.clone());
        }
        if self.warmup.is_zero() {
            return Some(schedule);
        }
        let first = stages.iter().find(|s| s.from > 0.0 || s.to > 0.0)?;
        let rate = if first.from > 0.0 { first.from } else { first.to / 2.0 };
        Some(schedule.after(rate, self.warmup))
    }

    /// The same plan with the rates of its open loops changed. A change of the first stage may make
    /// the warm-up of its schedule another: who follows the changes keeps that of the plan
    /// ([`Schedule::with_lead_of`]).
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

    /// Workers of the run in one process: its threads, and at least one for each descriptor table,
    /// as far as there are lanes for them.
    #[must_use]
    pub fn workers(&self) -> usize {
        let lanes = self.scenarios().iter().map(Self::lanes).max().unwrap_or(1);
        self.threads.max(self.tables).clamp(1, lanes)
    }

    /// Connections that users of this load keep; none in an open loop, which opens what it needs,
    /// and where each request has a connection of its own.
    #[must_use]
    pub fn kept_connections(&self) -> usize {
        if self.load.is_open() || !self.keepalive { 0 } else { self.connections }
    }

    /// What worker `worker` of the workers of process `process` does of this load, when it has a
    /// part in it: of a load with fewer lanes than there are workers, the last workers have none.
    #[must_use]
    pub fn part(&self, process: Slice, worker: Slice) -> Option<Slice> {
        let process = process.among(self.lanes())?;
        let worker = worker.among(process.part(self.lanes()))?;
        Some(process.inner(worker))
    }

    /// The seed of scenario `number` of a run with the seed `seed`: scenarios of one rate do not
    /// arrive at the same instants.
    #[must_use]
    pub const fn scenario_seed(seed: u64, number: usize) -> u64 {
        seed.wrapping_add((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// How long arrivals come, warm-up included, when that is known beforehand: from the start
    /// of this load; of several, from the start of the first to the end of the last.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        let main = match &self.load {
            PlanLoad::Scenarios { scenarios } => {
                let end = |plan: &Self| plan.start.checked_add(plan.length()?);
                // Each has its own warm-up in its length.
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

    /// Whether it is one load whose arrivals come whatever the server does.
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

const fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(n: &usize) -> bool {
    *n == 1
}
