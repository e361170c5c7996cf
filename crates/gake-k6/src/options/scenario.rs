//! The options of a scenario: an executor and its settings.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::value::{OptionValue, known, mismatch, object};
use crate::duration::GoDuration;

/// How a scenario starts its iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Executor {
    /// A fixed number of users for a duration.
    ConstantVus,
    /// Numbers of users over time.
    RampingVus,
    /// A total of iterations shared by users.
    SharedIterations,
    /// A number of iterations for each user.
    PerVuIterations,
    /// Iterations at a fixed rate.
    ConstantArrivalRate,
    /// Iterations at rates over time.
    RampingArrivalRate,
    /// A number of users set from outside during the run.
    ExternallyControlled,
}

/// A period in which the number of users, or the rate, changes linearly to a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RampStage {
    /// How long it lasts.
    pub duration: Option<GoDuration>,
    /// The number or rate at its end.
    pub target: Option<i64>,
}

/// One scenario of a script's options; `None` is unset.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioOptions {
    /// How its iterations are started.
    pub executor: Executor,
    /// When it starts.
    pub start_time: Option<GoDuration>,
    /// The grace period for iterations in progress at its end.
    pub graceful_stop: Option<GoDuration>,
    /// Its environment.
    pub env: Option<BTreeMap<String, String>>,
    /// The function that an iteration calls.
    pub exec: Option<String>,
    /// Tags of its samples.
    pub tags: Option<BTreeMap<String, String>>,
    /// Options of the browser module.
    pub options: Option<Value>,
    /// The number of users.
    pub vus: Option<i64>,
    /// Iterations, in total or of each user.
    pub iterations: Option<i64>,
    /// How long it lasts.
    pub duration: Option<GoDuration>,
    /// Its maximum duration.
    pub max_duration: Option<GoDuration>,
    /// Users at its start.
    pub start_vus: Option<i64>,
    /// The targets of its users or rate.
    pub stages: Option<Vec<RampStage>>,
    /// The grace period for the iteration of a leaving user.
    pub graceful_ramp_down: Option<GoDuration>,
    /// Iterations in each `time_unit`.
    pub rate: Option<i64>,
    /// The rate at its start.
    pub start_rate: Option<i64>,
    /// The period of rates.
    pub time_unit: Option<GoDuration>,
    /// Users initialised before the start.
    pub pre_allocated_vus: Option<i64>,
    /// Maximum number of users.
    pub max_vus: Option<i64>,
}

impl Executor {
    /// All executors.
    pub const ALL: [Self; 7] = [
        Self::ConstantVus,
        Self::RampingVus,
        Self::SharedIterations,
        Self::PerVuIterations,
        Self::ConstantArrivalRate,
        Self::RampingArrivalRate,
        Self::ExternallyControlled,
    ];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConstantVus => "constant-vus",
            Self::RampingVus => "ramping-vus",
            Self::SharedIterations => "shared-iterations",
            Self::PerVuIterations => "per-vu-iterations",
            Self::ConstantArrivalRate => "constant-arrival-rate",
            Self::RampingArrivalRate => "ramping-arrival-rate",
            Self::ExternallyControlled => "externally-controlled",
        }
    }

    /// Its own keys, in k6's order.
    #[must_use]
    pub const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::ConstantVus => &["vus", "duration"],
            Self::RampingVus => &["startVUs", "stages", "gracefulRampDown"],
            Self::SharedIterations | Self::PerVuIterations => &["vus", "iterations", "maxDuration"],
            Self::ConstantArrivalRate => {
                &["rate", "timeUnit", "duration", "preAllocatedVUs", "maxVUs"]
            }
            Self::RampingArrivalRate => {
                &["startRate", "timeUnit", "stages", "preAllocatedVUs", "maxVUs"]
            }
            Self::ExternallyControlled => &["vus", "duration", "maxVUs"],
        }
    }

    /// Whether its load is open: iterations start regardless of responses.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ConstantArrivalRate | Self::RampingArrivalRate)
    }
}

/// The keys of all scenarios, in k6's order.
const COMMON: [&str; 7] =
    ["executor", "startTime", "gracefulStop", "env", "exec", "tags", "options"];

impl ScenarioOptions {
    /// Whether it needs `k6/browser`.
    #[must_use]
    pub fn wants_browser(&self) -> bool {
        let kind = self.options.as_ref().and_then(|options| options.pointer("/browser/type"));
        kind.is_some_and(|kind| !kind.is_null())
    }

    /// A scenario with nothing set but its executor.
    #[must_use]
    pub const fn new(executor: Executor) -> Self {
        Self {
            executor,
            start_time: None,
            graceful_stop: None,
            env: None,
            exec: None,
            tags: None,
            options: None,
            vus: None,
            iterations: None,
            duration: None,
            max_duration: None,
            start_vus: None,
            stages: None,
            graceful_ramp_down: None,
            rate: None,
            start_rate: None,
            time_unit: None,
            pre_allocated_vus: None,
            max_vus: None,
        }
    }

    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let written = object(value, "lib.protoExecutorConfig")?;
        let kind = known(written, &["executor"]).0.into_iter().next();
        let kind = match kind {
            Some((_, Value::String(kind))) if !kind.is_empty() => kind,
            None | Some((_, Value::String(_))) => {
                return Err(format!("scenario '{name}' doesn't have a specified executor type"));
            }
            Some((_, other)) => return Err(mismatch(other, "string")),
        };
        let executor = Executor::ALL.into_iter().find(|executor| executor.name() == kind);
        let executor = executor.ok_or_else(|| format!("unknown executor type '{kind}'"))?;
        let keys: Vec<_> = COMMON.iter().chain(executor.keys()).copied().collect();
        let (entries, unknown) = known(written, &keys);
        if let Some(unknown) = unknown {
            return Err(format!("json: unknown field {unknown:?}"));
        }
        let mut scenario = Self::new(executor);
        for (key, value) in entries {
            scenario.read_entry(key, value)?;
        }
        if executor == Executor::ExternallyControlled {
            scenario.max_vus = scenario.max_vus.or(scenario.vus);
        }
        Ok(scenario)
    }

    fn read_entry(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "startTime" => self.start_time = OptionValue::from_json(value)?,
            "gracefulStop" => self.graceful_stop = OptionValue::from_json(value)?,
            "env" => self.env = OptionValue::from_json(value)?,
            "exec" => self.exec = OptionValue::from_json(value)?,
            "tags" => self.tags = OptionValue::from_json(value)?,
            "options" => {
                let browser = object(value, "lib.ScenarioOptions")?.get("browser");
                self.options = Some(json!({ "browser": browser }));
            }
            "vus" => self.vus = OptionValue::from_json(value)?,
            "iterations" => self.iterations = OptionValue::from_json(value)?,
            "duration" => self.duration = OptionValue::from_json(value)?,
            "maxDuration" => self.max_duration = OptionValue::from_json(value)?,
            "startVUs" => self.start_vus = OptionValue::from_json(value)?,
            "stages" => self.stages = Some(read_stages(value)?),
            "gracefulRampDown" => self.graceful_ramp_down = OptionValue::from_json(value)?,
            "rate" => self.rate = OptionValue::from_json(value)?,
            "startRate" => self.start_rate = OptionValue::from_json(value)?,
            "timeUnit" => self.time_unit = OptionValue::from_json(value)?,
            "preAllocatedVUs" => self.pre_allocated_vus = OptionValue::from_json(value)?,
            "maxVUs" => self.max_vus = OptionValue::from_json(value)?,
            _ => {}
        }
        Ok(())
    }

    fn write_entry<M: SerializeMap>(&self, map: &mut M, key: &str) -> Result<(), M::Error> {
        match key {
            "vus" => map.serialize_entry(key, &self.vus),
            "iterations" => map.serialize_entry(key, &self.iterations),
            "duration" => map.serialize_entry(key, &self.duration),
            "maxDuration" => map.serialize_entry(key, &self.max_duration),
            "startVUs" => map.serialize_entry(key, &self.start_vus),
            "stages" => map.serialize_entry(key, &self.stages),
            "gracefulRampDown" => map.serialize_entry(key, &self.graceful_ramp_down),
            "rate" => map.serialize_entry(key, &self.rate),
            "startRate" => map.serialize_entry(key, &self.start_rate),
            "timeUnit" => map.serialize_entry(key, &self.time_unit),
            "preAllocatedVUs" => map.serialize_entry(key, &self.pre_allocated_vus),
            "maxVUs" => map.serialize_entry(key, &self.max_vus),
            _ => Ok(()),
        }
    }
}

impl Serialize for ScenarioOptions {
    /// As k6 shows it: common keys, then its executor's own; `null` if unset.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("executor", self.executor.name())?;
        map.serialize_entry("startTime", &self.start_time)?;
        map.serialize_entry("gracefulStop", &self.graceful_stop)?;
        map.serialize_entry("env", &self.env)?;
        map.serialize_entry("exec", &self.exec)?;
        map.serialize_entry("tags", &self.tags)?;
        if let Some(options) = &self.options {
            map.serialize_entry("options", options)?;
        }
        for key in self.executor.keys() {
            self.write_entry(&mut map, key)?;
        }
        map.end()
    }
}

impl OptionValue for ScenarioOptions {
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        Self::from_entry("", value)
    }

    fn from_entry(name: &str, value: &Value) -> Result<Option<Self>, String> {
        Self::read(name, value).map(Some)
    }
}

/// Parses the stages of a scenario, where unknown keys are an error.
fn read_stages(value: &Value) -> Result<Vec<RampStage>, String> {
    let stages = value.as_array().ok_or_else(|| mismatch(value, "[]executor.Stage"))?;
    stages
        .iter()
        .map(|stage| match RampStage::read(stage)? {
            (stage, None) => Ok(stage),
            (_, Some(unknown)) => Err(format!("json: unknown field {unknown:?}")),
        })
        .collect()
}

impl RampStage {
    /// A stage, and its first unknown key.
    fn read(value: &Value) -> Result<(Self, Option<&str>), String> {
        let (entries, unknown) = known(object(value, "lib.Stage")?, &["duration", "target"]);
        let mut stage = Self::default();
        for (key, value) in entries {
            match key {
                "duration" => stage.duration = OptionValue::from_json(value)?,
                _ => stage.target = OptionValue::from_json(value)?,
            }
        }
        Ok((stage, unknown))
    }
}

impl OptionValue for RampStage {
    /// A stage of the shortcut, where unknown keys, and stages without a duration, are ignored.
    fn from_json(value: &Value) -> Result<Option<Self>, String> {
        let (stage, _) = Self::read(value)?;
        Ok(Some(stage).filter(|stage| stage.duration.is_some()))
    }
}
