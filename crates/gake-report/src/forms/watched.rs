//! What the watched target said, as the run file and JSON have it.

use gake_core::clock::Nanos;
use gake_core::record::{Gauge, GaugeReading, LevelUnit, TargetSetting, WatchRecord};
use serde::{Deserialize, Serialize};

/// What a level is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnitForm {
    /// Of a whole, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// Things a second.
    PerSecond,
    /// Seconds.
    Seconds,
}

impl From<LevelUnit> for UnitForm {
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

impl From<UnitForm> for LevelUnit {
    fn from(form: UnitForm) -> Self {
        match form {
            UnitForm::Share => Self::Share,
            UnitForm::Bytes => Self::Bytes,
            UnitForm::Count => Self::Count,
            UnitForm::PerSecond => Self::PerSecond,
            UnitForm::Seconds => Self::Seconds,
        }
    }
}

/// Levels of one instant, as a line of the run file has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadingsForm {
    /// Nanoseconds since the start of the run.
    pub(crate) at_ns: Nanos,
    /// Source, name, unit and value of each.
    levels: Vec<(String, String, UnitForm, f64)>,
}

impl ReadingsForm {
    pub(crate) fn new(at_ns: Nanos, readings: &[GaugeReading]) -> Self {
        // JSON has no other numbers.
        let finite = readings.iter().filter(|reading| reading.value.is_finite());
        let levels =
            finite.map(|r| (r.source.clone(), r.name.clone(), r.unit.into(), r.value)).collect();
        Self { at_ns, levels }
    }

    pub(crate) fn readings(self) -> Vec<GaugeReading> {
        let reading = |(source, name, unit, value): (String, String, UnitForm, f64)| GaugeReading {
            source,
            name,
            unit: unit.into(),
            value,
        };
        self.levels.into_iter().map(reading).collect()
    }
}

/// A setting in force at the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SettingForm {
    /// Where it comes from.
    source: String,
    /// Its name, as the target has it.
    name: String,
    /// Its value.
    value: String,
}

impl From<&TargetSetting> for SettingForm {
    fn from(setting: &TargetSetting) -> Self {
        let TargetSetting { source, name, value } = setting.clone();
        Self { source, name, value }
    }
}

impl From<SettingForm> for TargetSetting {
    fn from(form: SettingForm) -> Self {
        let SettingForm { source, name, value } = form;
        Self { source, name, value }
    }
}

/// A level of the target over the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct GaugeForm {
    /// Where it comes from: `pid:1234`, `port:8080`, `prometheus:URL`, `actuator:URL`; `machine`
    /// when it is the generator's own.
    source: String,
    /// What it is: `cpu`, `rss`, `descriptors`, `pool` ... or the source's own name.
    name: String,
    /// What it is counted in.
    unit: UnitForm,
    /// The mean after the warm-up.
    mean: Option<f64>,
    /// The largest.
    max: Option<f64>,
    /// Nanoseconds since the start of the run, and the level; of a long run each stands for
    /// several.
    samples: Vec<(Nanos, f64)>,
}

impl GaugeForm {
    /// The levels of the generator's own machine; `None` when it was not read.
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

/// What the target said of itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct WatchedForm {
    /// Its levels.
    gauges: Vec<GaugeForm>,
    /// Its settings in force.
    settings: Vec<SettingForm>,
}

impl WatchedForm {
    /// `None` when nothing was watched.
    pub(crate) fn new(watched: &WatchRecord, warmup: Nanos) -> Option<Self> {
        (!watched.is_empty()).then(|| Self {
            gauges: watched.targets().map(|gauge| GaugeForm::new(gauge, warmup)).collect(),
            settings: watched.settings.iter().map(Into::into).collect(),
        })
    }
}
