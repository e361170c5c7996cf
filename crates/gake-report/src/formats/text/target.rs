//! The watched target.

use gake_core::clock::nanos;
use gake_core::record::{Gauge, LevelUnit, Run};
use gake_text::foreign;
use gake_text::units;

use super::page::{INDENT, Paint, TextPage};

/// The levels of each source, and the settings.
pub(super) fn target(page: &mut TextPage, run: &Run) {
    let watched = &run.watched;
    if watched.is_empty() {
        return;
    }
    page.gap();
    let warmup = nanos(run.plan.warmup);
    let mut sources: Vec<&str> = Vec::new();
    for gauge in watched.targets() {
        if !sources.contains(&gauge.source.as_str()) {
            sources.push(&gauge.source);
        }
    }
    for source in sources {
        page.headed("target", &foreign::line(source));
        let mine = watched.gauges().iter().filter(|gauge| gauge.source == source);
        let levels: Vec<_> = mine.filter_map(|gauge| level(gauge, warmup)).collect();
        page.wrapped(INDENT, "", Paint::Plain, &levels.join(",  "));
        let settings = watched.settings.iter().filter(|setting| setting.source == source);
        let settings: Vec<_> =
            settings.map(|setting| format!("{}={}", setting.name, setting.value)).collect();
        if !settings.is_empty() {
            page.wrapped(INDENT, "", Paint::Quiet, &settings.join("  "));
        }
    }
}

/// The levels of every source, and the settings, as texts.
pub(crate) fn brief(run: &Run) -> (Vec<String>, Vec<String>) {
    let levels = run.watched.targets().filter_map(|gauge| level(gauge, nanos(run.plan.warmup)));
    let settings = run.watched.settings.iter();
    let settings = settings.map(|setting| format!("{}={}", setting.name, setting.value));
    (levels.collect(), settings.collect())
}

/// The mean, and the maximum if it is different; nothing of a level that was always 0.
fn level(gauge: &Gauge, warmup: u64) -> Option<String> {
    let max = gauge.max().filter(|max| *max != 0.0)?;
    let mean = shown(gauge.mean_from(warmup).or_else(|| gauge.last())?, gauge.unit);
    let max = shown(max, gauge.unit);
    let name = gauge.name.replace('_', " ");
    Some(if mean == max { format!("{name} {mean}") } else { format!("{name} {mean} (max {max})") })
}

/// A level of the target for display.
#[must_use]
pub fn shown(value: f64, unit: LevelUnit) -> String {
    match unit {
        LevelUnit::Share => units::percent(value),
        LevelUnit::Bytes => units::bytes(value),
        LevelUnit::Count => units::number(value),
        LevelUnit::PerSecond => format!("{}/s", units::number(value)),
        LevelUnit::Seconds => units::duration(value * 1e9),
    }
}
