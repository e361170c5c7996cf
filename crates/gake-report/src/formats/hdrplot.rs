//! The percentile distribution of response times in the columns of HdrHistogram's plotter,
//! formatted as vegeta does.

use std::fmt::Write as _;

use gake_core::record::Histogram;

/// Steps per halving of the distance to 100 %.
const TICKS: f64 = 5.0;

/// Above this quantile only the maximum follows.
const LAST: f64 = 0.999_999;

/// Replaces infinity in the last column, of which a plotter takes the logarithm.
const INFINITY: f64 = 1e7;

/// The distribution, with a final newline; only the header without values.
#[must_use]
pub fn render(histogram: &Histogram) -> String {
    let mut rows =
        vec![["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"].map(str::to_owned)];
    if !histogram.is_empty() {
        let count = histogram.count();
        rows.extend(quantiles().into_iter().map(|quantile| {
            let value =
                if quantile == 0.0 { histogram.min() } else { histogram.quantile(quantile) };
            let inverse = if quantile < 1.0 { 1.0 / (1.0 - quantile) } else { INFINITY };
            [
                format!("{:.6}", value as f64 / 1e6),
                format!("{quantile:.6}"),
                format!("{:.0}", (quantile * count as f64).round()),
                format!("{inverse:.6}"),
            ]
        }));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0) + 2;
    let widths = [width(0), width(1), width(2)];
    let mut text = String::new();
    for [value, quantile, count, inverse] in &rows {
        let [a, b, c] = widths;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{value:<a$}{quantile:<b$}{count:<c$}{inverse}");
    }
    text
}

/// Quantiles that get denser towards 1: five per halving of the rest, with six digits.
fn quantiles() -> Vec<f64> {
    let mut all = Vec::new();
    let mut quantile: f64 = 0.0;
    while quantile < LAST {
        let rounded = (quantile * 1e6).round() / 1e6;
        if all.last() != Some(&rounded) {
            all.push(rounded);
        }
        let halvings = (1.0 / (1.0 - quantile)).log2().floor();
        quantile += 1.0 / (TICKS * (halvings + 1.0).exp2());
    }
    all.extend([LAST, 1.0].into_iter().filter(|q| all.last() != Some(q)).collect::<Vec<_>>());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const VEGETA: &str = include_str!("../../tests/expected/vegeta.hdrplot.txt");

    fn columns(text: &str) -> Vec<Vec<&str>> {
        text.lines().map(|line| line.split_whitespace().skip(1).collect()).collect()
    }

    #[test]
    fn the_rows_are_those_of_vegeta() {
        let mut histogram = Histogram::new();
        (1..=120).for_each(|n| histogram.record(n * 50_000));
        let text = render(&histogram);
        let (ours, theirs) = (columns(&text), columns(VEGETA));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in ours.iter().zip(&theirs).skip(1) {
            let [ours, theirs] = [ours, theirs]
                .map(|row| row.iter().map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<_>>());
            // Its list is rounded inconsistently in the sixth digit.
            assert!((ours[0] - theirs[0]).abs() < 1.5e-6, "{ours:?} {theirs:?}");
            assert_eq!(ours[1], theirs[1]);
            assert!((ours[2] / theirs[2] - 1.0).abs() < 1e-3 || ours[0] > 0.999, "{ours:?}");
        }
        assert_eq!(text.lines().next(), VEGETA.lines().next());
        assert!(text.contains("\n0.050000   0.000000    0           1.000000\n"), "{text}");
    }

    #[test]
    fn nothing_is_a_header() {
        assert_eq!(render(&Histogram::new()).lines().count(), 1);
    }
}
