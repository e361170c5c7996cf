//! The section of thresholds.

use gake_core::metric::MetricKind;

use super::human;
use super::palette::{Palette, TextStyle};
use crate::summary::{SummaryData, SummaryMetric};
use crate::threshold::ThresholdResult;

/// The section; empty without thresholds.
pub(super) fn section(data: &SummaryData, palette: Palette) -> String {
    let with: Vec<_> =
        data.total.metrics.iter().filter(|metric| !metric.thresholds.is_empty()).collect();
    if with.is_empty() {
        return String::new();
    }
    let mut text = super::title("THRESHOLDS", palette);
    for metric in &with {
        let (parent, tags) = metric.parts();
        let inner = tags.filter(|_| with.iter().any(|other| other.name == parent));
        let (indent, name) = match inner {
            Some(tags) => ("      ", tags),
            None => ("    ", metric.name.as_str()),
        };
        text.push_str(&format!("\n{indent}{name}\n"));
        for threshold in &metric.thresholds {
            text.push_str(&format!("{indent}{}\n", line(metric, threshold, data, palette)));
        }
    }
    text
}

fn line(
    metric: &SummaryMetric,
    threshold: &ThresholdResult,
    data: &SummaryData,
    palette: Palette,
) -> String {
    // As in k6, the name ends at the first of `<`, `>`, `=`: with `!=` it keeps the `!`.
    let source = threshold.source.trim();
    let name = source.split(['<', '>', '=']).next().unwrap_or_default().trim();
    let is_speed = metric.kind == MetricKind::Counter && name != "count";
    let value = match metric.kind {
        MetricKind::Trend => {
            // As in k6, of the figures that the summary leaves out only percentiles are shown.
            let is_own = name == threshold.aggregation && name.starts_with("p(");
            let own = || is_own.then_some(threshold.figure);
            metric.value(name).or_else(own)
        }
        MetricKind::Counter => metric.value(if is_speed { "rate" } else { "count" }),
        MetricKind::Gauge => metric.value("value"),
        MetricKind::Rate => metric.value("rate"),
    };
    let shown = value.map(|value| {
        let unit = data.time_unit.as_deref();
        let figure = human::figure(value, metric.kind, metric.contains, unit);
        if is_speed { format!("{figure}/s") } else { figure }
    });
    format!(
        "{} {} {}={}",
        palette.mark(threshold.ok),
        palette.paint(TextStyle::Source, &format!("'{source}'")),
        palette.paint(TextStyle::Source, name),
        shown.map(|shown| palette.paint(TextStyle::Value, &shown)).unwrap_or_default(),
    )
}
