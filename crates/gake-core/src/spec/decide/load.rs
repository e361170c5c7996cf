//! The load of a scenario, and its duration.

use std::time::Duration;

use super::super::error::{FieldPath, SpecError};
use super::super::value::{ArrivalsValue, CountValue, TimeValue, UsersValue};
use super::super::{DURATION, RequestSource, USERS};
use super::scenario::ScenarioResolver;
use crate::Load;
use crate::clock::nanos;
use crate::plan::{DRAIN, Rate, Stage};
use crate::schedule::Process;

impl ScenarioResolver<'_> {
    pub(super) fn load(&self, source: &RequestSource) -> Result<Load, SpecError> {
        if let RequestSource::Recording(_) = source {
            return self.recorded();
        }
        if self.given("rate") || self.given("stages") {
            return self.open();
        }
        if self.draft.arrivals.is_some_and(|arrivals| arrivals != ArrivalsValue::Uniform) {
            let problem = "it needs a rate: in a closed loop, responses determine the arrivals";
            return Err(self.refuse("arrivals", problem));
        }
        self.closed()
    }

    fn recorded(&self) -> Result<Load, SpecError> {
        let own = "a recording has its own rates; speed = \"2x\" doubles them";
        self.without(&["rate", "stages"], own)?;
        let users = ["users", "users_max", "pace", "iterations", "iterations_per_user"];
        self.without(&users, "a recording has no users")?;
        self.without(&["think", "graceful_ramp_down"], "a replay has no users who think or leave")?;
        self.without(&["method", "body"], "a recording has its own methods and bodies")?;
        if !self.warmup.is_zero() {
            let path = FieldPath::root().key("warmup");
            return Err(SpecError::new(
                path,
                "a replay has no warm-up: it has no rate to warm up at",
            ));
        }
        let speed = self.draft.speed.map_or(1.0, |speed| speed.0);
        Ok(Load::Replay { speed, trace: None })
    }

    fn open(&self) -> Result<Load, SpecError> {
        let closed = "it belongs to a closed loop; a rate makes the loop open";
        self.without(&["think", "pace", "users", "users_max"], closed)?;
        self.without(&["iterations", "iterations_per_user", "graceful_ramp_down"], closed)?;
        let process = match self.draft.arrivals {
            None | Some(ArrivalsValue::Uniform) => Process::Uniform,
            Some(ArrivalsValue::Poisson) => Process::Poisson,
            Some(ArrivalsValue::Bursts { size, jitter }) => Process::Bursts {
                size: size.0.max(1),
                jitter: jitter.map_or(0, |TimeValue(time)| nanos(time)),
            },
        };
        let stages = match (&self.draft.stages, self.draft.rate) {
            (Some(_), Some(_)) => {
                return Err(self.refuse("stages", "they are rates already: leave the rate out"));
            }
            (Some(_), None) if self.given("duration") => {
                return Err(self.refuse("duration", "the stages have times of their own"));
            }
            (Some(stages), None) => stages.0.clone(),
            (None, rate) => {
                let rate = match rate.map(|rate| rate.0) {
                    Some(Rate::PerSecond(rate)) => rate,
                    Some(Rate::Max) | None => return Err(self.refuse("rate", "it is missing")),
                };
                let forever = if self.given("requests") { Duration::MAX } else { DURATION };
                let duration = self.draft.duration.map_or(forever, |TimeValue(time)| time);
                vec![Stage::step(rate, duration)]
            }
        };
        Ok(Load::Open { stages, process })
    }

    fn closed(&self) -> Result<Load, SpecError> {
        let draft = &self.draft;
        let think = draft.think.map_or(Duration::ZERO, |TimeValue(time)| time);
        let shared = draft.iterations.map(|CountValue(count)| count);
        let each = draft.iterations_per_user.map(|CountValue(count)| count);
        let max = draft.users_max.map(|CountValue(count)| count as usize);
        let is_ramp = matches!(draft.users, Some(UsersValue::Stages(_)));
        if !is_ramp {
            self.without(&["graceful_ramp_down"], "it needs stages of users, as 50..200@30s")?;
        }
        // The kind of load, and the keys that it excludes.
        let (kind, others): (_, &[&str]) = match (is_ramp, shared, each, max) {
            (true, ..) => (
                "stages of users",
                &["pace", "iterations", "iterations_per_user", "users_max", "duration", "requests"],
            ),
            (_, Some(_), ..) => {
                ("iterations", &["think", "pace", "iterations_per_user", "users_max", "requests"])
            }
            (_, _, Some(_), _) => {
                ("iterations_per_user", &["think", "pace", "users_max", "requests"])
            }
            (.., Some(_)) => ("users_max", &["think", "pace", "requests"]),
            _ if self.given("pace") => ("a pace", &["think"]),
            _ => ("", &[]),
        };
        self.without(others, &format!("it contradicts {kind}"))?;
        if let Some(UsersValue::Stages(stages)) = &draft.users {
            let down = draft.graceful_ramp_down.map_or(DRAIN, |TimeValue(time)| time);
            let stages = stages.clone();
            return Ok(Load::Ramping { stages, graceful_ramp_down: down, think });
        }
        let users = match &draft.users {
            Some(UsersValue::Number(users)) => Some(*users),
            _ => None,
        };
        if let Some(max) = max {
            let users = users.unwrap_or(0);
            if max == 0 || users > max {
                return Err(self.refuse("users_max", "it is below the number of users, or 0"));
            }
            return Ok(Load::External { users, max });
        }
        let users = users.unwrap_or(USERS);
        if users == 0 {
            return Err(self.refuse("users", "it must be at least 1"));
        }
        for (key, count) in [("iterations", shared), ("iterations_per_user", each)] {
            if count == Some(0) {
                return Err(self.refuse(key, "it must be at least 1"));
            }
        }
        Ok(match (shared, each, draft.pace.map(|TimeValue(time)| time)) {
            (Some(iterations), ..) => Load::Shared { users, iterations },
            (_, Some(iterations), _) => Load::PerUser { users, iterations },
            (.., Some(pace)) if !pace.is_zero() => Load::Paced { users, pace },
            _ => Load::Closed { users, think },
        })
    }

    /// The duration of a load without stages.
    pub(super) fn duration(&self, load: &Load) -> Result<Option<Duration>, SpecError> {
        let given = self.draft.duration.map(|TimeValue(time)| time);
        if given.is_some_and(|time| time.is_zero()) {
            return Err(self.refuse("duration", "it must be longer than 0"));
        }
        let ended = given.filter(|time| *time != Duration::MAX);
        Ok(match load {
            Load::Open { .. } | Load::Ramping { .. } => None,
            Load::Closed { .. } | Load::Paced { .. } => {
                let default = (!self.given("requests")).then_some(DURATION);
                if given.is_some() { ended } else { default }
            }
            _ => ended,
        })
    }
}
