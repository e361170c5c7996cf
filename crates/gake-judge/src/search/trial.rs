//! The trials that a search asks for, and their observations.

use std::time::Duration;

use crate::objective::Bad;

/// The kind of load that is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dimension {
    /// Requests a second, in an open loop.
    #[default]
    Rate,
    /// Users of a closed loop.
    Users,
    /// Connections held open, beside a light load.
    Connections,
    /// New connections a second: the rate, with a connection for each request.
    ConnectRate,
    /// Handshakes of TLS a second: the rate, with a connection for each request.
    TlsHandshakes,
    /// Concurrent requests on shared connections of HTTP/2: users of a closed loop.
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

    /// Whether its levels are arrivals a second, and not whole numbers.
    #[must_use]
    pub fn is_rate(self) -> bool {
        matches!(self, Self::Rate) || self.connects_each()
    }

    /// Whether each request has a connection of its own.
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

/// How a trial loads the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialLoad {
    /// Arrivals a second, in an open loop.
    Rate(f64),
    /// Users, in a closed loop.
    Users(usize),
    /// Connections held open beside a light load.
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

    /// The number alone.
    #[must_use]
    pub fn level(self) -> f64 {
        match self {
            Self::Rate(rate) => rate,
            Self::Users(n) | Self::Connections(n) => n as f64,
        }
    }
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A rung of the ladder: how far does throughput grow?
    Ladder,
    /// Is the objective met under a light load?
    Floor,
    /// Between which levels is the capacity?
    Bracket,
    /// Where exactly?
    Refine,
    /// Is the target in its usual state?
    Probe,
    /// What happens beyond the capacity?
    Map,
}

impl Purpose {
    /// Whether it asks about the target, and not whether a level passes.
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

/// One step to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Its number, from 0.
    pub number: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// The load.
    pub load: TrialLoad,
    /// The part that is left out of the figures.
    pub warmup: Duration,
    /// The part that counts.
    pub duration: Duration,
    /// The seed of this trial's arrivals.
    pub seed: u64,
    /// Bad requests of each clause after which it may end early: more would change nothing.
    /// Empty when it may not.
    pub enough: Vec<f64>,
}

impl Trial {
    /// Whether these numbers of bad requests, by clause, settle it.
    #[must_use]
    pub fn is_settled(&self, bad: &[f64]) -> bool {
        bad.iter().zip(&self.enough).any(|(bad, enough)| bad >= enough)
    }
}

/// What a search wants next.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Run this, then tell.
    Trial(Trial),
    /// Let the target rest for this time; there is nothing to tell.
    Rest(Duration),
    /// The search is over: ask for the answer.
    Done,
}

/// The figures of one second of a trial, after the warm-up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrialSecond {
    /// Sent in it, or given up in it.
    pub due: f64,
    /// Ended ok in it.
    pub ok: f64,
    /// Ended in it, but not ok.
    pub failed: f64,
    /// Ended ok and within every latency bound.
    pub good: f64,
    /// Mean time from due to done of those that ended ok, in seconds.
    pub response: f64,
    /// Mean number in flight.
    pub in_flight: f64,
    /// Mean time from due to the end of those that failed, in seconds.
    pub failure: f64,
}

/// The figures of one clause in a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Bad requests, of all that were due.
    pub total: Bad,
    /// The same by the second.
    pub slices: Vec<Bad>,
    /// For a bounded level: its value in each second.
    pub levels: Vec<f64>,
}

/// What one trial measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// Seconds that were measured: of arrivals, after the warm-up.
    pub measured: f64,
    /// Seconds the whole trial took, from its start to the end of its drain.
    pub took: f64,
    /// Arrivals due in the measured part.
    pub due: u64,
    /// Those that ended ok.
    pub ok: u64,
    /// Those that failed, were dropped, or never finished.
    pub errors: u64,
    /// Of these, what was still in flight, or never sent, when the drain ended.
    pub unfinished: u64,
    /// Completed ok a second, while the load was on.
    pub throughput: f64,
    /// Mean response time of those that ended ok, in seconds.
    pub response: f64,
    /// Mean number in flight.
    pub in_flight: f64,
    /// The figures of each clause, in order.
    pub clauses: Vec<Seen>,
    /// By the second.
    pub seconds: Vec<TrialSecond>,
    /// Why the generator, and not the target, may have decided this trial.
    pub limited: Option<String>,
    /// Whether the target had CPU to spare; `None` when that is not known.
    pub idle: Option<bool>,
}

impl Observation {
    /// Arrivals a second that were really due.
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
