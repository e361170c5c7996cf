//! The load: how arrivals are generated. Specs, plans and run files hold this one type.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plan::UserStage;
use crate::schedule::{Process, Stage, Trace};
use crate::seconds::AsSeconds;

/// How arrivals are generated. Numbers are totals over all workers and agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "snake_case")]
pub enum Load {
    /// An open loop: arrivals come when they are due, independent of responses.
    Open {
        /// The rates, in order. Never empty.
        stages: Vec<Stage>,
        /// Their distribution in time.
        #[serde(rename = "arrivals")]
        process: Process,
    },
    /// A replay, also an open loop: arrivals come at their recorded times.
    Replay {
        /// Speed relative to the recording.
        speed: f64,
        /// The due instants; absent until the recording has been read.
        #[serde(flatten)]
        trace: Option<Trace>,
    },
    /// Each user waits for its response before the next request.
    Closed {
        /// Number of users. Absent in old run files if each has a connection.
        #[serde(default)]
        users: usize,
        /// Time between a response and the user's next request.
        #[serde(rename = "think_s", with = "AsSeconds")]
        think: Duration,
    },
    /// Each user starts a request every `pace`, and waits for its response before the next. Starts
    /// that fall due while it waits are merged into one, right after the response.
    Paced {
        /// Number of users. Absent in old run files if each has a connection.
        #[serde(default)]
        users: usize,
        /// From one start to the next. Above 0.
        #[serde(rename = "pace_s", with = "AsSeconds")]
        pace: Duration,
    },
    /// A closed loop whose number of users changes.
    Ramping {
        /// The numbers of users, in order. Never empty.
        stages: Vec<UserStage>,
        /// Time that a user who leaves before the end has to finish its iteration.
        #[serde(rename = "graceful_ramp_down_s", with = "AsSeconds")]
        graceful_ramp_down: Duration,
        /// Time between a response and the user's next request.
        #[serde(rename = "think_s", with = "AsSeconds")]
        think: Duration,
    },
    /// Users who share a total number of iterations, bounded by the duration if there is one.
    Shared {
        /// Number of users.
        users: usize,
        /// Iterations of all users together.
        iterations: u64,
    },
    /// Users who each make a number of iterations, bounded by the duration if there is one.
    PerUser {
        /// Number of users.
        users: usize,
        /// Iterations of each user.
        iterations: u64,
    },
    /// A closed loop whose number of users is set from outside while it runs.
    External {
        /// Number of users at the start.
        users: usize,
        /// Maximum number of users.
        max: usize,
    },
}

impl Load {
    /// An open loop at one rate, in arrivals a second, on a grid.
    #[must_use]
    pub fn rate(rate: f64, duration: Duration) -> Self {
        Self::Open { stages: vec![Stage::step(rate, duration)], process: Process::Uniform }
    }

    /// A closed loop of users who send the next request right after a response.
    #[must_use]
    pub const fn closed(users: usize) -> Self {
        Self::Closed { users, think: Duration::ZERO }
    }

    /// Whether arrivals are independent of responses.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Replay { .. })
    }

    /// Whether each user of a closed loop sends the next request right after a response.
    #[must_use]
    pub fn is_back_to_back(&self) -> bool {
        match self {
            Self::Closed { think, .. } | Self::Ramping { think, .. } => think.is_zero(),
            Self::Shared { .. } | Self::PerUser { .. } | Self::External { .. } => true,
            Self::Open { .. } | Self::Replay { .. } | Self::Paced { .. } => false,
        }
    }

    /// Maximum concurrent users of a closed loop.
    #[must_use]
    pub fn users(&self) -> Option<usize> {
        match self {
            Self::Open { .. } | Self::Replay { .. } => None,
            Self::Closed { users, .. }
            | Self::Paced { users, .. }
            | Self::Shared { users, .. }
            | Self::PerUser { users, .. } => Some(*users),
            Self::Ramping { stages, .. } => {
                stages.iter().map(|stage| stage.from.max(stage.to)).max()
            }
            Self::External { max, .. } => Some(*max),
        }
    }

    /// The length of its stages or trace, unless endless.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        match self {
            Self::Open { stages, .. } => total(stages.iter().map(|stage| stage.duration)),
            Self::Ramping { stages, .. } => total(stages.iter().map(|stage| stage.duration)),
            Self::Replay { trace: Some(trace), .. } => Some(Duration::from_nanos(trace.length())),
            _ => None,
        }
    }
}

fn total(mut durations: impl Iterator<Item = Duration>) -> Option<Duration> {
    durations.try_fold(Duration::ZERO, Duration::checked_add)
}
