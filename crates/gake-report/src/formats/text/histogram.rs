//! A small histogram of response times.

use gake_core::clock::Nanos;
use gake_core::record::{Histogram, Run};
use gake_judge::stats;
use gake_text::units;

use super::page::{Paint, TextPage};

const ROWS_MAX: usize = 10;

/// The longest bar on a narrow page, and the columns beside the bar.
const BAR_MIN: usize = 19;
const BAR_MARGIN: usize = 40;

/// With fewer values the table says more.
const COUNT_MIN: u64 = 10;

/// A wider ratio of the maximum to the minimum gets growing intervals instead of equal ones.
const NARROW: f64 = 3.0;

/// Edges within a decade, from fine to coarse.
const GRIDS: [&[f64]; 5] = [
    &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
    &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
    &[1.0, 2.0, 5.0],
    &[1.0, 3.0],
    &[1.0],
];

/// Draws the histogram of response times.
pub(super) fn responses(page: &mut TextPage, run: &Run) {
    let response = run.tally.latency.response();
    if response.count() < COUNT_MIN || response.min() == response.max() {
        return;
    }
    page.gap();
    page.headed("response times", "");
    let rows = rows(&response);
    let highest = rows.iter().map(|row| row.2).max().unwrap_or(1).max(1);
    let longest = page.width().saturating_sub(BAR_MARGIN).max(BAR_MIN);
    for (low, high, count) in rows {
        let bar = page.paint(Paint::Bar, &bar(count as f64 / highest as f64, longest));
        let part = units::percent(stats::share(count, response.count()));
        let line = format!("  {:>7} … {:<7} {part:>8}  {bar}", edge(low), edge(high));
        page.line(&line);
    }
}

/// The rows as `low..high` with their counts; every value is in exactly one row.
fn rows(response: &Histogram) -> Vec<(Nanos, Nanos, u64)> {
    let edges = edges(response.min(), response.max());
    let below = |edge: Nanos| match edge {
        0 => 0,
        _ => response.count_up_to(edge - 1),
    };
    let mut before = 0;
    let mut rows: Vec<_> = edges
        .windows(2)
        .map(|pair| {
            let upto = below(pair[1]);
            let count = upto.saturating_sub(before);
            before = before.max(upto);
            (pair[0], pair[1], count)
        })
        .collect();
    // A bucket across the last edge belongs to the last row.
    if let Some(last) = rows.last_mut() {
        last.2 += response.count().saturating_sub(before);
    }
    rows
}

/// Round edges around `min..=max` for at most [`ROWS_MAX`] rows.
fn edges(min: Nanos, max: Nanos) -> Vec<Nanos> {
    let (min, max) = (min.max(1), max.max(2));
    if (max as f64) < min as f64 * NARROW {
        return equal_edges(min, max);
    }
    let mut edges = Vec::new();
    for grid in GRIDS {
        edges = growing_edges(min, max, grid);
        if edges.len() <= ROWS_MAX + 1 {
            break;
        }
    }
    edges
}

/// Steps of 1, 2 or 5 times a power of ten.
fn equal_edges(min: Nanos, max: Nanos) -> Vec<Nanos> {
    let mut power = 1;
    loop {
        for step in [power, 2 * power, 5 * power] {
            let (from, to) = (min / step, max / step + 1);
            if to - from <= ROWS_MAX as u64 {
                return (from..=to).map(|n| n * step).collect();
            }
        }
        power *= 10;
    }
}

/// The points of `grid` in every decade, from the last one up to `min` to the first above `max`.
fn growing_edges(min: Nanos, max: Nanos, grid: &[f64]) -> Vec<Nanos> {
    let mut edges: Vec<Nanos> = Vec::new();
    let mut decade = 1.0;
    loop {
        for point in grid {
            let edge = (decade * point).round() as Nanos;
            if edge <= min {
                edges.clear();
            }
            if edges.last() != Some(&edge) {
                edges.push(edge);
            }
            if edge > max {
                return edges;
            }
        }
        decade *= 10.0;
    }
}

/// A round number without trailing zeros.
fn edge(ns: Nanos) -> String {
    let (value, unit) = match ns {
        0..1_000 => (ns as f64, "ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    // Three digits after the unit's point: equal steps may be fine.
    let text = format!("{value:.3}");
    format!("{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A bar in eighths of a column; at least one eighth unless zero.
fn bar(part: f64, longest: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (part * (longest * 8) as f64).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_round_few_and_enclose() {
        for (min, max) in [
            (1, 2),
            (95_000_000, 105_000_000),
            (800_000, 200_000_000),
            (1_000, 60_000_000_000),
            (1, 86_400_000_000_000),
            (30_000, 31_000),
            (999_999, 3_000_000),
        ] {
            let edges = edges(min, max);
            assert!(edges.len() >= 2 && edges.len() <= ROWS_MAX + 5, "{edges:?}");
            assert!(edges[0] <= min && *edges.last().unwrap() > max, "{edges:?}");
            assert!(edges.is_sorted_by(|a, b| a < b), "{edges:?}");
        }
    }

    #[test]
    fn every_value_is_in_one_row() {
        for spread in [2, 1_000, 1_000_000] {
            let mut histogram = Histogram::new();
            for n in 0..5_000u64 {
                histogram.record(100_000 + n * n % (100_000 * spread));
            }
            let rows = rows(&histogram);
            assert_eq!(rows.iter().map(|row| row.2).sum::<u64>(), 5_000);
        }
    }

    #[test]
    fn edges_are_written_without_empty_digits() {
        assert_eq!(
            [edge(1_500), edge(2_000_000), edge(100_000), edge(7), edge(30_000_000_000)],
            ["1.5 µs", "2 ms", "100 µs", "7 ns", "30 s"]
        );
    }
}
