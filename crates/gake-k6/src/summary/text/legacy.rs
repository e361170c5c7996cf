//! The summary of k6 before 1.0.

use super::palette::{Palette, TextStyle};
use super::table::{TableRow, Widths};
use super::{counted, marked};
use crate::summary::{SummaryData, SummaryGroup, SummaryMetric};

const LOOKS: (TextStyle, TextStyle) = (TextStyle::LegacyDots, TextStyle::LegacyExtra);

pub(super) fn text(data: &SummaryData, palette: Palette) -> String {
    let mut text = String::from("\n");
    group(&mut text, &data.root_group, "     ", palette);
    let rows: Vec<_> =
        data.total.metrics.iter().map(|metric| (metric, TableRow::metric(metric, data))).collect();
    let widths = Widths::of(rows.iter().map(|row| &row.1));
    for (metric, row) in &rows {
        let line = widths.line(row, palette, LOOKS);
        let line = match mark(metric, palette) {
            Some(mark) if metric.parts().1.is_some() => {
                format!("     {mark} {}", line.trim_start())
            }
            Some(mark) => format!("   {mark} {line}"),
            None => format!("     {line}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The mark of a metric's thresholds, if it has any.
fn mark(metric: &SummaryMetric, palette: Palette) -> Option<String> {
    let passed = metric.thresholds.iter().all(|threshold| threshold.ok);
    (!metric.thresholds.is_empty()).then(|| palette.mark(passed))
}

fn group(text: &mut String, group: &SummaryGroup, indent: &str, palette: Palette) {
    for check in &group.checks {
        let (mark, look) = marked(check);
        let mut line = format!("{indent}{mark} {}", check.name);
        if check.fails > 0 {
            line.push_str(&format!("\n{indent} {}", counted(check)));
        }
        text.push_str(&palette.paint(look, &line));
        text.push('\n');
    }
    if !group.checks.is_empty() {
        text.push('\n');
    }
    for inner in &group.groups {
        text.push_str(&format!("{indent}█ {}\n\n", inner.name));
        self::group(text, inner, &format!("{indent}  "), palette);
    }
}
