//! The plan, as the run file and JSON have it. Times are in seconds.

use std::time::Duration;

use gake_core::metric::MAX_SERIES;
use gake_core::plan::{Load, Overflow, Plan, Stage, Timeouts, UserStage};
use gake_core::schedule::{Process, Trace};
use serde::{Deserialize, Serialize};

/// What was asked. Times are in seconds, rates in arrivals a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanForm {
    /// The scenario's name, when there are several or it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What was loaded: a URL or a targets file.
    target: String,
    /// How arrivals came.
    load: LoadForm,
    /// From the start of the run to the start of this load; left out when they are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_s: Option<f64>,
    /// Tags of every sample of this load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<(String, String)>,
    /// After this time no new arrival came; null when only a count ended the run.
    duration_s: Option<f64>,
    /// After this many arrivals no new one came; null when only time ended the run.
    requests: Option<u64>,
    /// The first part of the run, left out of the figures; comes before `duration_s`.
    warmup_s: f64,
    /// Most connections at once; in a closed loop, one for each user.
    connections: usize,
    /// Most requests at once on a connection, when a connection could carry several (HTTP/2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streams: Option<usize>,
    /// Most arrivals in flight at once.
    max_in_flight: usize,
    /// What happened to an arrival that was due when every connection was busy.
    overflow: OverflowForm,
    /// New connections a second, when bounded.
    connect_rate: Option<f64>,
    /// Connections opened at the start and held without a request.
    idle_connections: usize,
    /// Whether a connection served more than one request.
    keepalive: bool,
    /// The bounds on waiting.
    timeouts: TimeoutsForm,
    /// How long those in flight might take after the last arrival.
    drain_s: f64,
    /// Worker threads.
    threads: usize,
    /// Whether a worker polled the last part of each wait.
    spin: bool,
    /// Which status codes were ok, for example `200-399`.
    expect: String,
    /// Most series of the run's own metrics told apart; left out when nobody said how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_series: Option<usize>,
    /// Names of the labels; empty when there is one target without a name.
    labels: Vec<String>,
}

/// How arrivals came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "snake_case")]
enum LoadForm {
    /// They came when they were due, whatever the server did.
    Open {
        /// The rates, one after the other.
        stages: Vec<StageForm>,
        /// How they were spread.
        arrivals: ProcessForm,
    },
    /// They came when they were recorded, whatever the server did.
    Replay {
        /// How many there were.
        arrivals: u64,
        /// How long the replay took.
        length_s: f64,
        /// How many times as fast as it was recorded.
        speed: f64,
        /// Most arrivals due in one second.
        peak: u64,
    },
    /// Each user waited for its answer before the next request.
    Closed {
        /// How many users; left out when each has one of the connections.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        users: Option<usize>,
        /// Time between an answer and the user's next request.
        think_s: f64,
    },
    /// Each user started a request at this interval at most, and waited for its answer.
    Paced {
        /// How many users; left out when each has one of the connections.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        users: Option<usize>,
        /// From one start to the next.
        pace_s: f64,
    },
    /// A closed loop whose number of users changed.
    Ramping {
        /// The numbers of users, one after the other.
        stages: Vec<UserStageForm>,
        /// How long a user that left before the end might take for what it had begun.
        graceful_ramp_down_s: f64,
        /// Time between an answer and the user's next request.
        think_s: f64,
    },
    /// Users made a number of iterations between them.
    Shared {
        /// How many users.
        users: usize,
        /// How many iterations, over all users.
        iterations: u64,
    },
    /// Users each made a number of iterations.
    PerUser {
        /// How many users.
        users: usize,
        /// How many iterations, each user.
        iterations: u64,
    },
    /// A closed loop whose number of users was set from outside while it ran.
    External {
        /// How many users at the start.
        users: usize,
        /// Most users at once.
        max: usize,
    },
    /// Several loads side by side.
    Scenarios {
        /// Each of them.
        scenarios: Vec<PlanForm>,
    },
}

/// A time in which the number of users stayed, or changed linearly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct UserStageForm {
    /// Users at its start.
    from: usize,
    /// Users at its end.
    to: usize,
    /// How long it lasted.
    duration_s: f64,
}

/// A piece of the schedule in which the rate was constant or changed linearly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StageForm {
    /// The rate at its start.
    from: f64,
    /// The rate at its end.
    to: f64,
    /// How long it lasted; null when only a count ended it.
    duration_s: Option<f64>,
}

/// How arrivals were spread within the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum ProcessForm {
    /// A perfect grid.
    Uniform,
    /// Exponential gaps.
    Poisson,
    /// Several arrivals of a grid at once.
    Bursts {
        /// How many; 1 leaves the grid as it is.
        size: u64,
        /// Each was later by up to this, at random.
        jitter_s: f64,
    },
}

/// What happened to an arrival that was due when every connection was busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum OverflowForm {
    /// It waited.
    Wait,
    /// It was dropped and counted.
    Drop,
    /// It waited when few enough did, and was dropped and counted otherwise.
    Queue {
        /// Most that waited.
        waiting: usize,
    },
}

/// Bounds on waiting for one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TimeoutsForm {
    /// For the connection, TLS included.
    connect_s: f64,
    /// From the write to the first byte of the answer, when bounded.
    first_byte_s: Option<f64>,
    /// For the whole request.
    total_s: f64,
}

impl From<&Plan> for PlanForm {
    fn from(plan: &Plan) -> Self {
        Self {
            target: plan.target.clone(),
            name: (plan.name != Plan::DEFAULT_NAME).then(|| plan.name.clone()),
            load: LoadForm::of(&plan.load, plan.connections),
            start_s: (!plan.start.is_zero()).then_some(plan.start.as_secs_f64()),
            tags: plan.tags.clone(),
            duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
            requests: plan.requests,
            warmup_s: plan.warmup.as_secs_f64(),
            connections: plan.connections,
            streams: (plan.streams > 1).then_some(plan.streams),
            max_in_flight: plan.max_in_flight,
            overflow: match plan.overflow {
                Overflow::Wait => OverflowForm::Wait,
                Overflow::Drop => OverflowForm::Drop,
                Overflow::Queue { waiting } => OverflowForm::Queue { waiting },
            },
            connect_rate: plan.connect_rate,
            idle_connections: plan.idle_connections,
            keepalive: plan.keepalive,
            timeouts: TimeoutsForm {
                connect_s: plan.timeouts.connect.as_secs_f64(),
                first_byte_s: plan.timeouts.first_byte.map(|first| first.as_secs_f64()),
                total_s: plan.timeouts.total.as_secs_f64(),
            },
            drain_s: plan.drain.as_secs_f64(),
            threads: if plan.tables > 1 { plan.workers() } else { plan.threads },
            spin: plan.spin,
            expect: plan.expect.to_string(),
            max_series: (plan.max_series != MAX_SERIES).then_some(plan.max_series),
            labels: plan.labels.clone(),
        }
    }
}

impl LoadForm {
    /// The form of `load`, which has `connections` connections.
    fn of(load: &Load, connections: usize) -> Self {
        let differs = |users: usize| (users != connections).then_some(users);
        match load {
            Load::Open { stages, process } => Self::Open {
                stages: stages.iter().map(StageForm::from).collect(),
                arrivals: match process {
                    Process::Uniform => ProcessForm::Uniform,
                    Process::Poisson => ProcessForm::Poisson,
                    Process::Bursts { size, jitter } => ProcessForm::Bursts {
                        size: *size,
                        jitter_s: Duration::from_nanos(*jitter).as_secs_f64(),
                    },
                },
            },
            Load::Replay(trace) => Self::Replay {
                arrivals: trace.arrivals(),
                length_s: Duration::from_nanos(trace.length()).as_secs_f64(),
                speed: trace.speed(),
                peak: trace.peak(),
            },
            Load::Closed { users, think } => {
                Self::Closed { users: differs(*users), think_s: think.as_secs_f64() }
            }
            Load::Paced { users, pace } => {
                Self::Paced { users: differs(*users), pace_s: pace.as_secs_f64() }
            }
            Load::Ramping { stages, graceful_ramp_down, think } => Self::Ramping {
                stages: stages.iter().map(UserStageForm::from).collect(),
                graceful_ramp_down_s: graceful_ramp_down.as_secs_f64(),
                think_s: think.as_secs_f64(),
            },
            &Load::Shared { users, iterations } => Self::Shared { users, iterations },
            &Load::PerUser { users, iterations } => Self::PerUser { users, iterations },
            &Load::External { users, max } => Self::External { users, max },
            Load::Scenarios(plans) => {
                Self::Scenarios { scenarios: plans.iter().map(PlanForm::from).collect() }
            }
        }
    }
}

impl From<&Stage> for StageForm {
    fn from(stage: &Stage) -> Self {
        let duration = stage.duration;
        let duration_s = (duration != Duration::MAX).then_some(duration.as_secs_f64());
        Self { from: stage.from, to: stage.to, duration_s }
    }
}

impl From<&UserStage> for UserStageForm {
    fn from(stage: &UserStage) -> Self {
        Self { from: stage.from, to: stage.to, duration_s: stage.duration.as_secs_f64() }
    }
}

/// An invalid plan, and what is invalid in it.
type Senseless = String;

impl PlanForm {
    /// Whether both have the same loads.
    pub(crate) fn has_same_load(&self, other: &Self) -> bool {
        self.load == other.load
    }

    /// The plan.
    pub(crate) fn plan(self) -> Result<Plan, Senseless> {
        Ok(Plan {
            name: self.name.unwrap_or_else(|| Plan::DEFAULT_NAME.to_owned()),
            target: self.target,
            load: self.load.load(self.connections)?,
            start: self.start_s.map_or(Ok(Duration::ZERO), seconds)?,
            tags: self.tags,
            duration: self.duration_s.map(seconds).transpose()?,
            requests: self.requests,
            // The rates say all that a finished run needs.
            stripes: None,
            warmup: seconds(self.warmup_s)?,
            connections: self.connections,
            streams: self.streams.unwrap_or(1),
            max_in_flight: self.max_in_flight,
            overflow: match self.overflow {
                OverflowForm::Wait => Overflow::Wait,
                OverflowForm::Drop => Overflow::Drop,
                OverflowForm::Queue { waiting } => Overflow::Queue { waiting },
            },
            connect_rate: self.connect_rate,
            idle_connections: self.idle_connections,
            keepalive: self.keepalive,
            timeouts: Timeouts {
                connect: seconds(self.timeouts.connect_s)?,
                first_byte: self.timeouts.first_byte_s.map(seconds).transpose()?,
                total: seconds(self.timeouts.total_s)?,
            },
            drain: seconds(self.drain_s)?,
            threads: self.threads,
            // The threads say what came of them.
            tables: 1,
            spin: self.spin,
            expect: self.expect.parse().map_err(|error| format!("{error}"))?,
            max_series: self.max_series.unwrap_or(MAX_SERIES),
            labels: self.labels,
        })
    }
}

impl LoadForm {
    /// The load; its users are `connections` unless it says otherwise.
    fn load(self, connections: usize) -> Result<Load, Senseless> {
        Ok(match self {
            Self::Open { stages, arrivals } => {
                if stages.is_empty() {
                    return Err("an open loop without stages".to_owned());
                }
                let stages = stages.iter().map(StageForm::stage).collect::<Result<_, _>>()?;
                let process = match arrivals {
                    ProcessForm::Uniform => Process::Uniform,
                    ProcessForm::Poisson => Process::Poisson,
                    ProcessForm::Bursts { size, jitter_s } => {
                        let jitter = seconds(jitter_s)?.as_nanos().try_into().unwrap_or(u64::MAX);
                        Process::Bursts { size, jitter }
                    }
                };
                Load::Open { stages, process }
            }
            Self::Replay { arrivals, length_s, speed, peak } => {
                let length = seconds(length_s)?.as_nanos().try_into().unwrap_or(u64::MAX);
                Load::Replay(Trace::described(arrivals, length, speed, peak))
            }
            Self::Closed { users, think_s } => {
                Load::Closed { users: users.unwrap_or(connections), think: seconds(think_s)? }
            }
            Self::Paced { users, pace_s } => {
                Load::Paced { users: users.unwrap_or(connections), pace: seconds(pace_s)? }
            }
            Self::Ramping { stages, graceful_ramp_down_s, think_s } => {
                if stages.is_empty() {
                    return Err("a ramp of users without stages".to_owned());
                }
                Load::Ramping {
                    stages: stages.iter().map(UserStageForm::stage).collect::<Result<_, _>>()?,
                    graceful_ramp_down: seconds(graceful_ramp_down_s)?,
                    think: seconds(think_s)?,
                }
            }
            Self::Shared { users, iterations } => Load::Shared { users, iterations },
            Self::PerUser { users, iterations } => Load::PerUser { users, iterations },
            Self::External { users, max } => Load::External { users, max },
            Self::Scenarios { scenarios } => {
                let plans: Vec<_> =
                    scenarios.into_iter().map(PlanForm::plan).collect::<Result<_, _>>()?;
                if plans.iter().any(|plan| matches!(plan.load, Load::Scenarios(_))) {
                    return Err("scenarios within a scenario".to_owned());
                }
                Load::Scenarios(plans)
            }
        })
    }
}

impl StageForm {
    fn stage(&self) -> Result<Stage, Senseless> {
        if !(self.from >= 0.0 && self.to >= 0.0) {
            return Err("a rate below 0".to_owned());
        }
        let duration = self.duration_s.map_or(Ok(Duration::MAX), seconds)?;
        Ok(Stage { from: self.from, to: self.to, duration })
    }
}

impl UserStageForm {
    fn stage(&self) -> Result<UserStage, Senseless> {
        Ok(UserStage { from: self.from, to: self.to, duration: seconds(self.duration_s)? })
    }
}

fn seconds(value: f64) -> Result<Duration, Senseless> {
    // An endless time was written as the longest one, which a number rounds up.
    if value >= Duration::MAX.as_secs_f64() {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(value).map_err(|_| format!("{value} seconds is not a valid time"))
}

#[cfg(test)]
mod tests;
