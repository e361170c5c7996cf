//! The plan, as the run file and JSON have it. Times are in seconds.

use std::time::Duration;

use gake_core::plan::{Load, Overflow, Plan, Stage, Timeouts};
use gake_core::schedule::{Process, Trace};
use serde::{Deserialize, Serialize};

/// What was asked. Times are in seconds, rates in arrivals a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanForm {
    /// What was loaded: a URL or a targets file.
    target: String,
    /// How arrivals came.
    load: LoadForm,
    /// After this time no new arrival came; null when only a count ended the run.
    duration_s: Option<f64>,
    /// After this many arrivals no new one came; null when only time ended the run.
    requests: Option<u64>,
    /// The first part of the run, left out of the figures; comes before `duration_s`.
    warmup_s: f64,
    /// Most connections at once; in a closed loop, the number of users.
    connections: usize,
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
        /// Time between an answer and the user's next request.
        think_s: f64,
    },
    /// Each user started a request at this interval at most, and waited for its answer.
    Paced {
        /// From one start to the next.
        pace_s: f64,
    },
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
            load: (&plan.load).into(),
            duration_s: plan.duration.map(|duration| duration.as_secs_f64()),
            requests: plan.requests,
            warmup_s: plan.warmup.as_secs_f64(),
            connections: plan.connections,
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
            threads: plan.threads,
            spin: plan.spin,
            expect: plan.expect.to_string(),
            labels: plan.labels.clone(),
        }
    }
}

impl From<&Load> for LoadForm {
    fn from(load: &Load) -> Self {
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
            Load::Closed { think } => Self::Closed { think_s: think.as_secs_f64() },
            Load::Paced { pace } => Self::Paced { pace_s: pace.as_secs_f64() },
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

/// A plan that makes no sense, with what does not.
type Senseless = String;

impl PlanForm {
    /// The plan.
    pub(crate) fn plan(self) -> Result<Plan, Senseless> {
        Ok(Plan {
            target: self.target,
            load: self.load.load()?,
            duration: self.duration_s.map(seconds).transpose()?,
            requests: self.requests,
            warmup: seconds(self.warmup_s)?,
            connections: self.connections,
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
            spin: self.spin,
            expect: self.expect.parse().map_err(|error| format!("{error}"))?,
            labels: self.labels,
        })
    }
}

impl LoadForm {
    fn load(self) -> Result<Load, Senseless> {
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
            Self::Closed { think_s } => Load::Closed { think: seconds(think_s)? },
            Self::Paced { pace_s } => Load::Paced { pace: seconds(pace_s)? },
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

fn seconds(value: f64) -> Result<Duration, Senseless> {
    // What has no end was written as the longest time there is, which a number rounds up.
    if value >= Duration::MAX.as_secs_f64() {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(value).map_err(|_| format!("{value} seconds are no time"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    fn again(plan: &Plan) -> Result<Plan, Senseless> {
        let text = serde_json::to_string(&PlanForm::from(plan)).unwrap();
        serde_json::from_str::<PlanForm>(&text).unwrap().plan()
    }

    #[test]
    fn every_part_comes_back() {
        let mut plan = plan();
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
        plan.load = Load::Closed { think: Duration::from_millis(1_500) };
        plan.duration = None;
        plan.requests = Some(u64::MAX);
        plan.overflow = Overflow::Drop;
        plan.connect_rate = Some(0.1);
        plan.timeouts.first_byte = Some(Duration::from_nanos(1_000_001));
        plan.expect = "2xx,404".parse().unwrap();
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
        plan.overflow = Overflow::Queue { waiting: 7 };
        plan.labels = vec!["a b".to_owned(), "č,\"".to_owned()];
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
        let stages = vec![
            Stage { from: 1.0 / 3.0, to: 1e9, duration: Duration::from_secs(86_400) },
            Stage::step(0.0, Duration::MAX),
        ];
        for process in [Process::Poisson, Process::Bursts { size: 4, jitter: 1_500_000 }] {
            plan.load = Load::Open { stages: stages.clone(), process };
            assert_eq!(again(&plan).as_ref(), Ok(&plan));
        }
        plan.load = Load::Replay(Trace::described(3_600, 60_500_000_000, 60.0, 75));
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
    }

    #[test]
    fn a_plan_without_sense_is_refused() {
        let mut form = PlanForm::from(&plan());
        form.drain_s = -1.0;
        assert!(form.plan().is_err());
        let mut form = PlanForm::from(&plan());
        form.load = LoadForm::Open { stages: Vec::new(), arrivals: ProcessForm::Uniform };
        assert!(form.plan().is_err());
    }
}
