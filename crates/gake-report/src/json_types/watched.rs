//! The watched target, in the run file and JSON.

use gake_core::clock::Nanos;
use gake_core::record::{Gauge, GaugeReading, LevelUnit, TargetSetting, WatchRecord};
use serde::{Deserialize, Serialize};

/// The unit of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnitJson {
    /// A share, 0 to 1.
    Share,
    Bytes,
    /// A unitless count.
    Count,
    /// A unitless count per second.
    PerSecond,
    Seconds,
}

impl From<LevelUnit> for UnitJson {
    fn from(unit: LevelUnit) -> Self {
        match unit {
            LevelUnit::Share => Self::Share,
            LevelUnit::Bytes => Self::Bytes,
            LevelUnit::Count => Self::Count,
            LevelUnit::PerSecond => Self::PerSecond,
            LevelUnit::Seconds => Self::Seconds,
        }
    }
}

impl From<UnitJson> for LevelUnit {
    fn from(form: UnitJson) -> Self {
        match form {
            UnitJson::Share => Self::Share,
            UnitJson::Bytes => Self::Bytes,
            UnitJson::Count => Self::Count,
            UnitJson::PerSecond => Self::PerSecond,
            UnitJson::Seconds => Self::Seconds,
        }
    }
}

/// The levels of one instant, as a line of the run file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadingsJson {
    /// Nanoseconds since the start of the run.
    pub(crate) at_ns: Nanos,
    /// Source, name, unit and value of each.
    levels: Vec<(String, String, UnitJson, f64)>,
}

impl ReadingsJson {
    pub(crate) fn new(at_ns: Nanos, readings: &[GaugeReading]) -> Self {
        // JSON has only finite numbers.
        let finite = readings.iter().filter(|reading| reading.value.is_finite());
        let levels =
            finite.map(|r| (r.source.clone(), r.name.clone(), r.unit.into(), r.value)).collect();
        Self { at_ns, levels }
    }

    pub(crate) fn readings(self) -> Vec<GaugeReading> {
        let reading = |(source, name, unit, value): (String, String, UnitJson, f64)| GaugeReading {
            source,
            name,
            unit: unit.into(),
            value,
        };
        self.levels.into_iter().map(reading).collect()
    }
}

/// A setting of the watched target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SettingJson {
    /// Its source.
    source: String,
    /// The target's name for it.
    name: String,
    /// Its value.
    value: String,
}

impl From<&TargetSetting> for SettingJson {
    fn from(setting: &TargetSetting) -> Self {
        let TargetSetting { source, name, value } = setting.clone();
        Self { source, name, value }
    }
}

impl From<SettingJson> for TargetSetting {
    fn from(form: SettingJson) -> Self {
        let SettingJson { source, name, value } = form;
        Self { source, name, value }
    }
}

/// A level of the target over the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GaugeJson {
    /// The source: `pid:1234`, `port:8080`, `prometheus:URL`, `actuator:URL`; `machine` for the
    /// generator's own machine.
    source: String,
    /// The level: `cpu`, `rss`, `descriptors`, `pool` ... or the source's own name.
    name: String,
    unit: UnitJson,
    /// The mean after the warm-up.
    mean: Option<f64>,
    /// The maximum.
    max: Option<f64>,
    /// Nanoseconds since the start of the run, and the level; in a long run each sample covers
    /// several.
    samples: Vec<(Nanos, f64)>,
}

impl GaugeJson {
    /// The levels of the generator's own machine; `None` when it was not sampled.
    pub(crate) fn of_machine(watched: &WatchRecord, warmup: Nanos) -> Option<Vec<Self>> {
        let machine = watched.gauges().iter().filter(|gauge| !gauge.is_targets());
        let all: Vec<_> = machine.map(|gauge| Self::new(gauge, warmup)).collect();
        (!all.is_empty()).then_some(all)
    }

    fn new(gauge: &Gauge, warmup: Nanos) -> Self {
        Self {
            source: gauge.source.clone(),
            name: gauge.name.clone(),
            unit: gauge.unit.into(),
            mean: gauge.mean_from(warmup),
            max: gauge.max(),
            samples: gauge.samples().iter().map(|sample| (sample.at, sample.mean)).collect(),
        }
    }
}

/// The watched target.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchedTargetJson {
    gauges: Vec<GaugeJson>,
    /// Its settings.
    settings: Vec<SettingJson>,
}

impl WatchedTargetJson {
    /// `None` when nothing was watched.
    pub(crate) fn new(watched: &WatchRecord, warmup: Nanos) -> Option<Self> {
        (!watched.is_empty()).then(|| Self {
            gauges: watched.targets().map(|gauge| GaugeJson::new(gauge, warmup)).collect(),
            settings: watched.settings.iter().map(Into::into).collect(),
        })
    }
}
