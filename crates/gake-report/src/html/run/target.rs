//! What the watched target said of itself, on the points of the series.

use gake_core::clock::{Nanos, SECOND, nanos};
use gake_core::record::{Gauge, GaugeSample, Run, SeriesPoint};
use serde::Serialize;

use super::series::digits;
use crate::forms::watched::UnitForm;
use crate::html::cut_to;

/// Levels with a line in a chart.
const LINES_MAX: usize = 40;

/// Levels that are shown.
const GAUGES_MAX: usize = 80;

/// Settings that are shown.
const SETTINGS_MAX: usize = 40;

/// Characters of a name that are shown.
const NAME_MAX: usize = 60;

/// Levels over time and as a table, and the settings in force.
#[derive(Serialize)]
pub(super) struct TargetForm {
    /// Where levels and settings come from.
    sources: Vec<String>,
    gauges: Vec<GaugeForm>,
    /// Levels that are kept and not in `gauges`.
    more_gauges: usize,
    /// Whether there were levels that are not even kept.
    lost: bool,
    settings: Vec<SettingForm>,
    more_settings: usize,
}

#[derive(Serialize)]
struct GaugeForm {
    /// Its place in `sources`.
    source: usize,
    name: String,
    unit: UnitForm,
    /// After the warm-up, or the last one before its end.
    mean: f64,
    max: f64,
    /// The mean at each point of the series; absent when it never changed, or there are too many.
    values: Option<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct SettingForm {
    source: usize,
    name: String,
    value: String,
}

impl TargetForm {
    /// `None` when nothing was watched.
    pub(super) fn new(run: &Run, points: usize) -> Option<Self> {
        let watched = &run.watched;
        if watched.is_empty() {
            return None;
        }
        let (series, per_second) = run.series.finest(points);
        let unit = SECOND / per_second;
        let warmup = nanos(run.plan.warmup);
        let mut lines = 0;
        let mut sources = Vec::new();
        let mut gauges = Vec::new();
        for gauge in watched.targets().take(GAUGES_MAX) {
            let drawn = changes(gauge) && lines < LINES_MAX;
            lines += usize::from(drawn);
            let mean = gauge.mean_from(warmup).or_else(|| gauge.last());
            gauges.push(GaugeForm {
                source: place(&mut sources, &gauge.source),
                name: cut_to(&gauge.name, NAME_MAX),
                unit: gauge.unit.into(),
                mean: digits(mean.unwrap_or(0.0), 4),
                max: digits(gauge.max().unwrap_or(0.0), 4),
                values: drawn.then(|| values(gauge.samples(), series.points(), unit)),
            });
        }
        let mut settings = Vec::new();
        for setting in watched.settings.iter().take(SETTINGS_MAX) {
            settings.push(SettingForm {
                source: place(&mut sources, &setting.source),
                name: cut_to(&setting.name, NAME_MAX),
                value: cut_to(&setting.value, NAME_MAX),
            });
        }
        Some(Self {
            sources: sources.into_iter().map(|source| cut_to(source, NAME_MAX)).collect(),
            gauges,
            more_gauges: watched.targets().count().saturating_sub(GAUGES_MAX),
            lost: watched.left_out > 0,
            settings,
            more_settings: watched.settings.len().saturating_sub(SETTINGS_MAX),
        })
    }
}

/// Where a source is in the list, or now is.
fn place<'a>(sources: &mut Vec<&'a str>, source: &'a str) -> usize {
    let known = sources.iter().position(|known| *known == source);
    known.unwrap_or_else(|| {
        sources.push(source);
        sources.len() - 1
    })
}

/// Whether a chart would show more than a straight line.
fn changes(gauge: &Gauge) -> bool {
    let mut means = gauge.samples().iter().map(|sample| sample.mean);
    let first = means.next();
    means.any(|mean| Some(mean) != first)
}

/// The mean of the readings within each point, whose times count pieces of length `unit`; where none
/// fell into it because readings come about once a second, the one before.
fn values(samples: &[GaugeSample], points: &[SeriesPoint], unit: Nanos) -> Vec<Option<f64>> {
    let mut rest = samples;
    let mut before: Option<GaugeSample> = None;
    let value = |point: &SeriesPoint| {
        let end = (point.second + point.seconds).saturating_mul(unit);
        let (mine, later) = rest.split_at(rest.partition_point(|sample| sample.at < end));
        rest = later;
        let (sum, readings) = mine.iter().fold((0.0, 0), |(sum, readings), sample| {
            (sum + sample.mean * sample.readings as f64, readings + sample.readings)
        });
        before = mine.last().copied().or(before);
        if readings > 0 {
            return Some(digits(sum / readings as f64, 4));
        }
        let start = point.second.saturating_mul(unit);
        let holds = |sample: &GaugeSample| sample.at + (sample.readings + 1) * SECOND > start;
        before.filter(holds).map(|sample| digits(sample.mean, 4))
    };
    points.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use gake_core::record::{GaugeReading, LevelUnit, Series, Tally, WatchRecord};

    use super::*;

    #[test]
    fn each_point_has_the_mean_of_its_readings() {
        let mut watched = WatchRecord::default();
        // A second without a reading between two late ones, and then silence.
        for (at, value) in [(0, 1.0), (999, 3.0), (2_001, 5.0), (3_000, 7.0)] {
            let (source, name) = ("pid:1".to_owned(), "threads".to_owned());
            let reading = GaugeReading { source, name, unit: LevelUnit::Count, value };
            watched.add(at * SECOND / 1_000, &[reading]);
        }
        let mut series = Series::default();
        (0..8).for_each(|n| series.push(SeriesPoint::new(n, &Tally::new(0))));
        let samples = watched.gauges()[0].samples();
        let of = |points: usize| values(samples, series.at_most(points).points(), SECOND);
        assert_eq!(of(8)[..5], [2.0, 3.0, 5.0, 7.0, 7.0].map(Some));
        assert_eq!(of(8)[5..], [None; 3]);
        assert_eq!(of(4), [Some(2.0), Some(6.0), Some(7.0), None]);
    }
}
