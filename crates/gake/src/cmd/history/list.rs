//! Runs of the history, one a line.

use gake_text::units::{duration, percent, rate};

use gake_session::history::HistoryEntry;

/// Headings; the columns from the fifth to the eighth are numbers.
const HEADINGS: [&str; 10] = [
    "run",
    "started (UTC)",
    "commit",
    "branch",
    "errors",
    "p50",
    "p99",
    "goodput",
    "verdict",
    "target",
];

/// Columns that are aligned to the right.
const NUMBERS: std::ops::Range<usize> = 4..8;

/// A run as comparisons name it.
pub(super) fn name(entry: &HistoryEntry) -> String {
    let commit = entry.revision.short();
    if commit.is_empty() { format!("#{}", entry.id) } else { format!("#{} ({commit})", entry.id) }
}

/// The table of runs.
pub(super) fn text(entries: &[HistoryEntry], baselines: &[(String, i64)]) -> String {
    let rows: Vec<[String; 10]> = std::iter::once(HEADINGS.map(str::to_owned))
        .chain(entries.iter().map(|entry| row(entry, baselines)))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            if NUMBERS.contains(&at) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(entry: &HistoryEntry, baselines: &[(String, i64)]) -> [String; 10] {
    let names = baselines.iter().filter(|baseline| baseline.1 == entry.id);
    let names: String = names.map(|(name, _)| format!(" [{name}]")).collect();
    let [p50, p99] = entry
        .times
        .map_or(["–".to_owned(), "–".to_owned()], |times| times.map(|ns| duration(ns as f64)));
    let goodput = match entry.capacity {
        Some([capacity, low, high]) => {
            format!("{} ({} to {})", rate(capacity), rate(low), rate(high))
        }
        None if entry.file.is_some() => rate(entry.goodput),
        None => "–".to_owned(),
    };
    let errors = if entry.due > 0 { percent(entry.errors()) } else { "–".to_owned() };
    [
        entry.id.to_string(),
        entry.when(),
        entry.revision.short(),
        entry.revision.branch.clone().unwrap_or_default(),
        errors,
        p50,
        p99,
        goodput,
        entry.statements(),
        format!("{}{names}", entry.target),
    ]
}
