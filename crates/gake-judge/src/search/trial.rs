//! The trials of a search, and their observations.

use std::time::Duration;

use crate::objective::BadCount;

/// The kind of load to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dimension {
    /// Requests a second, in an open loop.
    #[default]
    Rate,
    /// Users of a closed loop.
    Users,
    /// Connections held open during a light load.
    Connections,
    /// New connections a second: a rate with a new connection for each request.
    ConnectRate,
    /// TLS handshakes a second: a rate with a new connection for each request.
    TlsHandshakes,
    /// Concurrent requests on shared HTTP/2 connections: users of a closed loop.
    Streams,
}

impl Dimension {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Users => "users",
            Self::Connections => "connections",
            Self::ConnectRate => "connect-rate",
            Self::TlsHandshakes => "tls-handshakes",
            Self::Streams => "streams",
        }
    }

    /// Whether levels are arrivals a second; otherwise they are whole numbers.
    #[must_use]
    pub fn is_rate(self) -> bool {
        matches!(self, Self::Rate) || self.connects_each()
    }

    /// Whether each request opens a new connection.
    #[must_use]
    pub fn connects_each(self) -> bool {
        matches!(self, Self::ConnectRate | Self::TlsHandshakes)
    }

    /// The load of a trial at `level`.
    #[must_use]
    pub fn load(self, level: f64) -> TrialLoad {
        match self {
            Self::Rate | Self::ConnectRate | Self::TlsHandshakes => TrialLoad::Rate(level),
            Self::Users | Self::Streams => TrialLoad::Users(level.round().max(1.0) as usize),
            Self::Connections => TrialLoad::Connections(level.round().max(1.0) as usize),
        }
    }
}

/// The load of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialLoad {
    /// Arrivals a second, in an open loop.
    Rate(f64),
    /// Users, in a closed loop.
    Users(usize),
    /// Connections held open during a light load.
    Connections(usize),
}

impl TrialLoad {
    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Users(_) => "users",
            Self::Connections(_) => "connections",
        }
    }

    /// The rate or number.
    #[must_use]
    pub fn level(self) -> f64 {
        match self {
            Self::Rate(rate) => rate,
            Self::Users(n) | Self::Connections(n) => n as f64,
        }
    }
}

/// The purpose of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A rung of the ladder: growth of throughput.
    Ladder,
    /// Feasibility of the objective under a light load.
    Floor,
    /// Two levels around the capacity.
    Bracket,
    /// The exact capacity.
    Refine,
    /// The state of the target.
    Probe,
    /// Behaviour beyond the capacity.
    Map,
}

impl Purpose {
    /// Whether it explores the target instead of testing a level.
    #[must_use]
    pub fn is_exploring(self) -> bool {
        matches!(self, Self::Ladder | Self::Probe | Self::Map)
    }

    /// The stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ladder => "ladder",
            Self::Floor => "floor",
            Self::Bracket => "bracket",
            Self::Refine => "refine",
            Self::Probe => "probe",
            Self::Map => "map",
        }
    }
}

/// One trial to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The number, from 0.
    pub number: u64,
    /// The purpose.
    pub purpose: Purpose,
    /// The load.
    pub load: TrialLoad,
    /// The time before measuring.
    pub warmup: Duration,
    /// The time to measure.
    pub duration: Duration,
    /// The seed of the arrivals.
    pub seed: u64,
    /// For each clause, the bad requests after which the trial may end early, as more would change
    /// nothing; empty when it may not.
    pub enough: Vec<f64>,
}

impl Trial {
    /// Whether these numbers of bad requests, by clause, end the trial early.
    #[must_use]
    pub fn is_settled(&self, bad: &[f64]) -> bool {
        bad.iter().zip(&self.enough).any(|(bad, enough)| bad >= enough)
    }
}

/// The next action of a search.
#[derive(Debug, Clone, PartialEq)]
pub enum SearchAction {
    /// Run this trial, then pass its observation to [`super::Search::tell`].
    Trial(Trial),
    /// Let the target rest for this time.
    Rest(Duration),
    /// The search is over.
    Done,
}

/// The figures of one second of a trial, after the warm-up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialSecond {
    /// Arrivals due: sent or dropped.
    pub due: f64,
    /// Ended ok.
    pub ok: f64,
    /// Ended, but not ok.
    pub failed: f64,
    /// Ended ok and within every latency bound.
    pub good: f64,
    /// Mean response time of ok requests, in seconds.
    pub response: f64,
    /// Mean number in flight.
    pub in_flight: f64,
    /// Mean time of failed requests, in seconds.
    pub failure: f64,
}

/// The figures of one clause in a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClauseCounts {
    /// Bad requests and all due.
    pub total: BadCount,
    /// The same for each second.
    pub slices: Vec<BadCount>,
    /// The samples of a bounded level.
    pub levels: Vec<f64>,
    /// The percentile that it bounds, in nanoseconds; see [`crate::Clause::measured`].
    pub percentile: Option<u64>,
}

/// The observation of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// Seconds of arrivals after the warm-up.
    pub measured: f64,
    /// Seconds of the whole trial, from its start to the end of the drain.
    pub took: f64,
    /// Arrivals due in the measured interval.
    pub due: u64,
    /// Arrivals that ended ok.
    pub ok: u64,
    /// Arrivals that failed, were dropped, or never finished.
    pub errors: u64,
    /// Of these, the ones in flight or unsent when the drain ended.
    pub unfinished: u64,
    /// Ok responses a second during the load.
    pub throughput: f64,
    /// Mean response time of ok requests, in seconds.
    pub response: f64,
    /// Mean number in flight.
    pub in_flight: f64,
    /// The figures of each clause, in order.
    pub clauses: Vec<ClauseCounts>,
    /// The figures of each second.
    pub seconds: Vec<TrialSecond>,
    /// Why the generator, not the target, may have been the limit.
    pub limited: Option<String>,
    /// Whether the target had CPU to spare; `None` when unknown.
    pub idle: Option<bool>,
}

impl Observation {
    /// Actual arrivals a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.measured > 0.0 { self.due as f64 / self.measured } else { 0.0 }
    }

    /// The share of the arrivals that did not end ok.
    #[must_use]
    pub fn error_share(&self) -> f64 {
        crate::stats::share(self.errors, self.due)
    }
}
