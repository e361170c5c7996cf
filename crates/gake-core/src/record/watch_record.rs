//! Levels of the target under load, sampled on the run's clock.

use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// Maximum number of samples of a gauge; beyond it neighbours are joined.
const SAMPLES_MAX: usize = 1_800;

/// Maximum number of gauges, over all sources.
pub const GAUGES_MAX: usize = 256;

/// The source of readings of the generator's own machine. Basis of findings; not shown among the
/// target's.
pub const MACHINE: &str = "machine";

/// A gauge with a reading of 1 whenever its source did not respond.
pub const UNANSWERED: &str = "unanswered";

/// A gauge of [`MACHINE`]: the time to the first byte, in seconds, of each request of a probe, sent
/// one at a time after the load.
pub const PROBE: &str = "probe";

/// A gauge of [`MACHINE`]: the mean time, in seconds, for which the generator waited for a core per
/// request of a probe.
pub const PROBE_DELAY: &str = "probe_delay";

/// The unit of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LevelUnit {
    /// A share of a whole, 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// A unitless count.
    Count,
    /// A count per second.
    PerSecond,
    /// Seconds.
    Seconds,
}

/// A level at an instant.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeReading {
    /// Its source: `pid:1234`, `port:8080`, `prometheus:http://...`.
    pub source: String,
    /// `cpu`, `rss`, `descriptors`, `pool` ... or the source's own name.
    pub name: String,
    /// The unit of `value`.
    pub unit: LevelUnit,
    /// The level.
    pub value: f64,
}

/// Consecutive readings of a gauge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GaugeSample {
    /// The instant of the first.
    pub at: Nanos,
    /// Number of readings.
    pub readings: u64,
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// One level over time, in bounded memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    /// As in [`GaugeReading::source`].
    pub source: String,
    /// As in [`GaugeReading::name`].
    pub name: String,
    /// The unit of its values.
    pub unit: LevelUnit,
    samples: Vec<GaugeSample>,
    width: u64,
}

impl Gauge {
    fn push(&mut self, at: Nanos, value: f64) {
        let one = GaugeSample { at, readings: 1, mean: value, max: value };
        match self.samples.last_mut() {
            Some(last) if last.readings < self.width => last.join(&one),
            _ => self.samples.push(one),
        }
        if self.samples.len() > SAMPLES_MAX {
            self.width *= 2;
            let halves = self.samples.chunks(2).map(|pair| {
                let mut first = pair[0];
                if let Some(second) = pair.get(1) {
                    first.join(second);
                }
                first
            });
            self.samples = halves.collect();
        }
    }

    /// The samples, in chronological order.
    #[must_use]
    pub fn samples(&self) -> &[GaugeSample] {
        &self.samples
    }

    /// The mean of readings from `from` on; `None` without any.
    #[must_use]
    pub fn mean_from(&self, from: Nanos) -> Option<f64> {
        let late = self.samples.iter().filter(|sample| sample.at >= from);
        let (sum, count) = late.fold((0.0, 0), |(sum, count), sample| {
            (sum + sample.mean * sample.readings as f64, count + sample.readings)
        });
        (count > 0).then(|| sum / count as f64)
    }

    /// The number of readings from `from` on that are at least `bound`, and of all from then on.
    /// Joined readings count as their mean.
    #[must_use]
    pub fn at_least_from(&self, bound: f64, from: Nanos) -> (u64, u64) {
        let late = self.samples.iter().filter(|sample| sample.at >= from);
        late.fold((0, 0), |(reached, all), sample| {
            let reaches = if sample.mean >= bound { sample.readings } else { 0 };
            (reached + reaches, all + sample.readings)
        })
    }

    /// The growth of a level that only grows.
    #[must_use]
    pub fn growth(&self) -> f64 {
        let first = self.samples.first().map_or(0.0, |sample| sample.mean);
        self.max().map_or(0.0, |max| (max - first).max(0.0))
    }

    /// Whether it is a level of the target, not of the generator's machine.
    #[must_use]
    pub fn is_targets(&self) -> bool {
        self.source != MACHINE
    }

    /// The largest reading.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.samples.iter().map(|sample| sample.max).reduce(f64::max)
    }

    /// The mean of the last sample.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.samples.last().map(|sample| sample.mean)
    }
}

impl GaugeSample {
    fn join(&mut self, next: &Self) {
        let (mine, theirs) = (self.readings as f64, next.readings as f64);
        self.mean = (self.mean * mine + next.mean * theirs) / (mine + theirs);
        self.max = self.max.max(next.max);
        self.readings += next.readings;
    }
}

/// A setting in force at the target, as the target reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSetting {
    /// Its source, as in [`GaugeReading::source`].
    pub source: String,
    /// Its name at the target: `server.tomcat.threads.max`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The gauges and settings of the target, and gauges of the generator's machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WatchRecord {
    gauges: Vec<Gauge>,
    /// Settings in force.
    pub settings: Vec<TargetSetting>,
    /// Readings dropped because there were too many gauges.
    pub left_out: u64,
}

impl WatchRecord {
    /// Whether a decoded record is within the limits.
    pub(crate) fn is_plausible(&self) -> bool {
        let gauge = |gauge: &Gauge| {
            let readings = |sample: &GaugeSample| (1..=1 << 40).contains(&sample.readings);
            gauge.width.is_power_of_two()
                && gauge.width <= 1 << 32
                && gauge.samples.len() <= SAMPLES_MAX
                && gauge.samples.iter().all(readings)
        };
        self.gauges.len() <= GAUGES_MAX && self.gauges.iter().all(gauge)
    }

    /// Adds readings taken at `at`. Values that are not finite are ignored.
    pub fn add(&mut self, at: Nanos, readings: &[GaugeReading]) {
        for reading in readings.iter().filter(|reading| reading.value.is_finite()) {
            let is =
                |gauge: &&mut Gauge| gauge.name == reading.name && gauge.source == reading.source;
            if let Some(gauge) = self.gauges.iter_mut().find(is) {
                gauge.push(at, reading.value);
            } else if self.gauges.len() < GAUGES_MAX {
                let GaugeReading { source, name, unit, value } = reading.clone();
                let mut gauge = Gauge { source, name, unit, samples: Vec::new(), width: 1 };
                gauge.push(at, value);
                self.gauges.push(gauge);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Adds missing gauges and settings from `other`, with instants shifted by `shift`.
    pub fn absorb(&mut self, other: &Self, shift: Nanos) {
        for gauge in &other.gauges {
            let known = self.named(&gauge.name).any(|mine| mine.source == gauge.source);
            if known || self.gauges.len() >= GAUGES_MAX {
                continue;
            }
            let mut gauge = gauge.clone();
            for sample in &mut gauge.samples {
                sample.at = sample.at.saturating_add(shift);
            }
            self.gauges.push(gauge);
        }
        for setting in &other.settings {
            if !self.settings.contains(setting) {
                self.settings.push(setting.clone());
            }
        }
        self.left_out += other.left_out;
    }

    /// The gauges, in the order in which they were first read.
    #[must_use]
    pub fn gauges(&self) -> &[Gauge] {
        &self.gauges
    }

    /// The gauges with this name, of all sources.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Gauge> {
        self.gauges.iter().filter(move |gauge| gauge.name == name)
    }

    /// The target's gauges, in the order in which they were first read.
    pub fn targets(&self) -> impl Iterator<Item = &Gauge> {
        self.gauges.iter().filter(|gauge| gauge.is_targets())
    }

    /// A gauge of the generator's own machine.
    #[must_use]
    pub fn machine(&self, name: &str) -> Option<&Gauge> {
        self.gauges.iter().find(|gauge| gauge.name == name && !gauge.is_targets())
    }

    /// Whether there are no gauges or settings of the target.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets().next().is_none() && self.settings.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    fn reading(name: &str, value: f64) -> GaugeReading {
        GaugeReading { source: "pid:1".into(), name: name.into(), unit: LevelUnit::Share, value }
    }

    #[test]
    fn memory_is_bounded_and_the_mean_is_kept() {
        let mut watched = WatchRecord::default();
        for second in 0..10_000u64 {
            watched.add(second * SECOND, &[reading("cpu", second as f64)]);
        }
        let gauge = &watched.gauges()[0];
        assert!(gauge.samples().len() <= SAMPLES_MAX);
        assert_eq!(gauge.samples().iter().map(|s| s.readings).sum::<u64>(), 10_000);
        assert!((gauge.mean_from(0).unwrap() - 4999.5).abs() < 1e-6);
        assert_eq!(gauge.max(), Some(9_999.0));
        assert_eq!(gauge.mean_from(20_000 * SECOND), None);
    }

    #[test]
    fn time_at_a_bound_and_growth_are_computed() {
        let mut watched = WatchRecord::default();
        for (second, value) in [(0, 0.2), (1, 1.0), (2, 0.97), (3, 1.0), (4, 0.5)] {
            watched.add(second * SECOND, &[reading("pool", value)]);
            watched.add(second * SECOND, &[reading("dropped", 40.0 + value)]);
        }
        let pool = &watched.gauges()[0];
        assert_eq!(pool.at_least_from(0.95, 0), (3, 5));
        assert_eq!(pool.at_least_from(0.95, 3 * SECOND), (1, 2));
        assert!((watched.gauges()[1].growth() - 0.8).abs() < 1e-9);
    }

    #[test]
    fn the_generators_machine_is_not_a_target() {
        let mut watched = WatchRecord::default();
        let machine = GaugeReading { source: MACHINE.into(), ..reading("machine_cpu", 0.5) };
        watched.add(0, &[machine]);
        assert!(watched.is_empty() && watched.machine("machine_cpu").is_some());
        watched.add(0, &[reading("machine_cpu", 0.5)]);
        assert!(!watched.is_empty());
        assert_eq!(watched.targets().count(), 1);
    }

    #[test]
    fn gauges_are_bounded_and_values_finite() {
        let mut watched = WatchRecord::default();
        for name in 0..GAUGES_MAX + 5 {
            watched.add(0, &[reading(&name.to_string(), 1.0), reading("bad", f64::NAN)]);
        }
        assert_eq!((watched.gauges().len(), watched.left_out), (GAUGES_MAX, 5));
        assert_eq!(watched.named("bad").count(), 0);
    }
}
