//! The load of a spec: how arrivals are generated.

use std::time::Duration;

use crate::plan::{Stage, UserStage};
use crate::schedule::Process;

/// How arrivals are generated. Numbers are totals over all threads and agents.
#[derive(Debug, Clone, PartialEq)]
pub enum LoadSpec {
    /// An open loop: arrivals come when they are due, whatever the server does.
    Open {
        /// The rates, in order. Never empty.
        stages: Vec<Stage>,
        /// How they are spread.
        process: Process,
    },
    /// A replay: arrivals come at their recorded times, whatever the server does.
    Recorded {
        /// Speed relative to the recording.
        speed: f64,
    },
    /// Each user waits for its answer before the next.
    Closed {
        /// How many users.
        users: usize,
        /// Time between an answer and the user's next request.
        think: Duration,
    },
    /// Each user starts a request every `pace`, and waits for its answer before the next.
    Paced {
        /// How many users.
        users: usize,
        /// From one start to the next. Above 0.
        pace: Duration,
    },
    /// A closed loop whose number of users changes.
    Ramping {
        /// The numbers of users, in order. Never empty.
        stages: Vec<UserStage>,
        /// How long a user that leaves before the end may take for what it has begun.
        graceful_ramp_down: Duration,
        /// Time between an answer and the user's next request.
        think: Duration,
    },
    /// Users who share a total number of iterations.
    Shared {
        /// How many users.
        users: usize,
        /// How many iterations, over all users.
        iterations: u64,
    },
    /// Users who each make a number of iterations.
    PerUser {
        /// How many users.
        users: usize,
        /// How many iterations, each user.
        iterations: u64,
    },
    /// A closed loop whose number of users is set from outside while it runs.
    External {
        /// How many users at the start.
        users: usize,
        /// Maximum number of users.
        max: usize,
    },
}

impl LoadSpec {
    /// An open loop at one rate, in arrivals a second, on a grid.
    #[must_use]
    pub fn rate(rate: f64, duration: Duration) -> Self {
        Self::Open { stages: vec![Stage::step(rate, duration)], process: Process::Uniform }
    }

    /// A closed loop of users who send the next request right after an answer.
    #[must_use]
    pub const fn closed(users: usize) -> Self {
        Self::Closed { users, think: Duration::ZERO }
    }

    /// Whether arrivals come whatever the server does.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::Recorded { .. })
    }

    /// Maximum concurrent users of a closed loop.
    #[must_use]
    pub fn users(&self) -> Option<usize> {
        match self {
            Self::Open { .. } | Self::Recorded { .. } => None,
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
}
