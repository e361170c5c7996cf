//! What to send, how much, for how long, over which connections: a plain value.
//!
//! A plan is built from flags, a file or a script's options before anything is touched, and can
//! be printed. What goes over the wire (the rendered request, the TLS settings) is the wire's.

pub mod duration;
pub mod expect;
pub mod rate;
pub mod stage;
pub mod targets;

use std::fmt;
use std::time::Duration;

pub use duration::{format_duration, parse_duration};
pub use expect::Expect;
pub use rate::{Rate, parse_rate};
pub use stage::{Stage, parse_stages};

use crate::clock::SECOND;
use crate::schedule::{Process, Schedule, Trace};

/// A run before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is loaded, as the user named it: a URL or a targets file. For people.
    pub target: String,
    /// How arrivals come.
    pub load: Load,
    /// After this time no new arrival comes; `None` when only a count ends the run.
    pub duration: Option<Duration>,
    /// After this many arrivals no new one comes.
    pub requests: Option<u64>,
    /// The first part of the run, left out of the figures; comes before `duration`.
    pub warmup: Duration,
    /// Most connections at once, over all workers; in a closed loop it is the number of users.
    pub connections: usize,
    /// Most arrivals in flight at once; never over `connections` with HTTP/1.1.
    pub max_in_flight: usize,
    /// What happens to an arrival that is due when the bound is reached.
    pub overflow: Overflow,
    /// New connections a second, when bounded.
    pub connect_rate: Option<f64>,
    /// Connections opened at the start and held without a request.
    pub idle_connections: usize,
    /// Whether a connection serves more than one request.
    pub keepalive: bool,
    /// The bounds on waiting.
    pub timeouts: Timeouts,
    /// How long those in flight may take after the last arrival.
    pub drain: Duration,
    /// Workers: OS threads with a runtime each.
    pub threads: usize,
    /// Whether a worker polls the last part of each wait.
    pub spin: bool,
    /// Which responses are ok.
    pub expect: Expect,
    /// Names of the labels, by label number; empty when there is one target without a name.
    pub labels: Vec<String>,
}

/// How arrivals come.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// They come when they are due, whatever the server does.
    Open {
        /// The rates, one after the other. Never empty.
        stages: Vec<Stage>,
        /// How they are spread.
        process: Process,
    },
    /// They come when they were recorded, whatever the server does: an open loop too.
    Replay(Trace),
    /// Each of `Plan::connections` users waits for its answer before the next.
    Closed {
        /// Time between an answer and the user's next request.
        think: Duration,
    },
    /// Each of `Plan::connections` users starts a request every `pace`, and waits for its answer
    /// before the next. Starts that are due meanwhile are one, right after the answer.
    Paced {
        /// From one start to the next. Longer than nothing.
        pace: Duration,
    },
}

/// What happens to an arrival that is due when every connection is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// It waits, and its wait is part of its response time.
    #[default]
    Wait,
    /// It is dropped and counted.
    Drop,
    /// It waits when fewer than `waiting` do, over all workers; else it is dropped and counted.
    Queue {
        /// Most that wait.
        waiting: usize,
    },
}

/// Bounds on waiting for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection, TLS included.
    pub connect: Duration,
    /// From the write to the first byte of the answer.
    pub first_byte: Option<Duration>,
    /// For the whole request, connection included.
    pub total: Duration,
}

impl Plan {
    /// When each arrival is due, for an open loop.
    ///
    /// The warm-up runs at the rate the first sending stage starts with (its mean rate when it
    /// starts at 0); a bound on requests counts those after the warm-up.
    #[must_use]
    pub fn schedule(&self, seed: u64) -> Option<Schedule> {
        let (stages, process) = match &self.load {
            Load::Open { stages, process } => (stages, process),
            // A recording has no rate to warm up at.
            Load::Replay(trace) => return Some(Schedule::replay(trace.clone(), self.requests)),
            Load::Closed { .. } | Load::Paced { .. } => return None,
        };
        let schedule = Schedule::new(*process, stages, self.requests, seed);
        if self.warmup.is_zero() {
            return Some(schedule);
        }
        let first = stages.iter().find(|s| s.from > 0.0 || s.to > 0.0)?;
        let rate = if first.from > 0.0 { first.from } else { first.to / 2.0 };
        Some(schedule.after(rate, self.warmup))
    }

    /// How long new arrivals come, warm-up included, when that is known beforehand.
    #[must_use]
    pub fn length(&self) -> Option<Duration> {
        let main = match (&self.load, self.duration) {
            (Load::Replay(trace), _) => Some(Duration::from_nanos(trace.length())),
            (_, Some(duration)) => Some(duration),
            (Load::Open { stages, .. }, None) => {
                stages.iter().try_fold(Duration::ZERO, |sum, stage| sum.checked_add(stage.duration))
            }
            (Load::Closed { .. } | Load::Paced { .. }, None) => None,
        };
        main.and_then(|main| main.checked_add(self.warmup))
    }
}

impl fmt::Display for Plan {
    /// The one line echoed before a run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.target)?;
        match &self.load {
            Load::Open { stages, process } => {
                write!(f, "open loop, {process} arrivals, ")?;
                for (i, stage) in stages.iter().enumerate() {
                    let arrow = if i == 0 { "" } else { " → " };
                    write!(f, "{arrow}{stage}")?;
                }
            }
            Load::Replay(trace) => {
                let s = if trace.arrivals() == 1 { "" } else { "s" };
                write!(f, "open loop, replay of {} arrival{s}", trace.arrivals())?;
                // The length of a recording is no round number.
                let seconds = trace.length() as f64 / SECOND as f64;
                write!(f, " over {seconds:.1}s, {}x as recorded", trace.speed())?;
            }
            Load::Closed { .. } | Load::Paced { .. } => {
                let s = if self.connections == 1 { "" } else { "s" };
                write!(f, "closed loop, {} user{s}", self.connections)?;
                match &self.load {
                    Load::Closed { think } if !think.is_zero() => {
                        write!(f, ", think time {}", format_duration(*think))?;
                    }
                    Load::Paced { pace } => {
                        write!(f, ", a request each {} at most", format_duration(*pace))?;
                    }
                    _ => {}
                }
                if let Some(duration) = self.duration {
                    write!(f, " for {}", format_duration(duration))?;
                }
            }
        }
        if let Some(requests) = self.requests {
            let s = if requests == 1 { "" } else { "s" };
            write!(f, ", {requests} request{s}")?;
        }
        if !self.warmup.is_zero() {
            write!(f, " after {} of warm-up", format_duration(self.warmup))?;
        }
        if !matches!(self.load, Load::Closed { .. } | Load::Paced { .. }) {
            write!(f, ", at most {} connections", self.connections)?;
            match self.overflow {
                Overflow::Wait => {}
                Overflow::Drop => write!(f, " (overflow is dropped)")?,
                Overflow::Queue { waiting } => {
                    write!(f, " ({waiting} may wait, further overflow is dropped)")?;
                }
            }
        }
        if !self.keepalive {
            write!(f, ", a new connection each")?;
        }
        if let Some(rate) = self.connect_rate {
            write!(f, ", {rate} new connections/s at most")?;
        }
        if self.idle_connections > 0 {
            write!(f, ", {} idle connections beside", self.idle_connections)?;
        }
        let s = if self.threads == 1 { "" } else { "s" };
        write!(f, ", {} thread{s}", self.threads)
    }
}
