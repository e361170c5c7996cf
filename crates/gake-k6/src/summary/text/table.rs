//! Aligns rows of a name, dots and figures.

use gake_core::metric::MetricKind;

use super::human;
use super::palette::{Palette, TextStyle};
use crate::summary::{SummaryData, SummaryMetric};

pub(super) struct TableRow {
    /// The name with its indent.
    pub(super) name: String,
    cells: Cells,
}

enum Cells {
    /// Names and figures of a trend.
    Trend(Vec<(String, String)>),
    /// A figure and additional ones.
    Plain(String, Vec<String>),
}

/// The widths of the columns of some rows.
#[derive(Default)]
pub(super) struct Widths {
    name: usize,
    trend: Vec<usize>,
    plain: usize,
    extra: Vec<usize>,
}

/// Number of characters; each takes one column.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

fn widen(widths: &mut Vec<usize>, cells: impl Iterator<Item = usize>) {
    for (at, cell) in cells.enumerate() {
        match widths.get_mut(at) {
            Some(width) => *width = (*width).max(cell),
            None => widths.push(cell),
        }
    }
}

impl TableRow {
    pub(super) fn plain(name: &str, figure: String, extra: Vec<String>) -> Self {
        Self { name: name.to_owned(), cells: Cells::Plain(figure, extra) }
    }

    /// The row of a metric; the name of a sub-metric is its indented tags.
    pub(super) fn metric(metric: &SummaryMetric, data: &SummaryData) -> Self {
        let unit = data.time_unit.as_deref();
        let figure = |value: f64| human::figure(value, metric.kind, metric.contains, unit);
        let value = |name: &str| metric.value(name).unwrap_or(0.0);
        let count = |name: &str| human::number(value(name));
        let cells = match metric.kind {
            MetricKind::Trend => {
                let cell = |stat: &String| {
                    let shown = if stat == "count" { count(stat) } else { figure(value(stat)) };
                    (stat.clone(), shown)
                };
                Cells::Trend(data.trend_stats.iter().map(cell).collect())
            }
            MetricKind::Counter => {
                let rate = format!("{}/s", figure(value("rate")));
                Cells::Plain(figure(value("count")), vec![rate])
            }
            MetricKind::Gauge => {
                let extra = ["min", "max"].map(|name| format!("{name}={}", figure(value(name))));
                Cells::Plain(figure(value("value")), extra.to_vec())
            }
            MetricKind::Rate => {
                let all = human::number(value("passes") + value("fails"));
                let extra = format!("{} out of {all}", count("passes"));
                Cells::Plain(figure(value("rate")), vec![extra])
            }
        };
        let name = match metric.parts() {
            (_, Some(tags)) => {
                let inner = tags.strip_prefix('{').unwrap_or(tags);
                format!("  {{ {} }}", inner.strip_suffix('}').unwrap_or(inner))
            }
            (name, None) => name.to_owned(),
        };
        Self { name, cells }
    }
}

impl Widths {
    /// The widths that rows need.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a TableRow>) -> Self {
        let mut widths = Self::default();
        for row in rows {
            widths.name = widths.name.max(width(&row.name));
            match &row.cells {
                Cells::Trend(cells) => {
                    let cells = cells.iter().map(|(name, value)| width(name) + 1 + width(value));
                    widen(&mut widths.trend, cells);
                }
                Cells::Plain(figure, extra) => {
                    widths.plain = widths.plain.max(width(figure));
                    widen(&mut widths.extra, extra.iter().map(|text| width(text)));
                }
            }
        }
        widths
    }

    /// The name's dots and its figures, in the colours of `dots` and `extra`.
    pub(super) fn line(
        &self,
        row: &TableRow,
        palette: Palette,
        (dots, extra): (TextStyle, TextStyle),
    ) -> String {
        let missing = (self.name + 3).saturating_sub(width(&row.name));
        let dots = palette.paint(dots, &format!("{}:", ".".repeat(missing)));
        format!("{}{dots} {}", row.name, self.cells(row, palette, extra))
    }

    fn cells(&self, row: &TableRow, palette: Palette, extra_look: TextStyle) -> String {
        let blanks = |wide: usize, taken: usize| " ".repeat(wide.saturating_sub(taken));
        match &row.cells {
            Cells::Trend(cells) => {
                let cell = |((name, value), wide): (&(String, String), &usize)| {
                    let blanks = blanks(*wide, width(name) + 1 + width(value));
                    format!("{name}={}{blanks}", palette.paint(TextStyle::Value, value))
                };
                cells.iter().zip(&self.trend).map(cell).collect::<Vec<_>>().join(" ")
            }
            Cells::Plain(figure, extra) => {
                let mut text = palette.paint(TextStyle::Value, figure);
                text.push_str(&blanks(self.plain, width(figure)));
                for (at, cell) in extra.iter().enumerate() {
                    text.push(' ');
                    text.push_str(&palette.paint(extra_look, cell));
                    if at + 1 < extra.len() {
                        text.push_str(&blanks(self.extra[at], width(cell)));
                    }
                }
                text
            }
        }
    }
}
