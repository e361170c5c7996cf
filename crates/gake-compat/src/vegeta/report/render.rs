//! Vegeta's reports: text, JSON, histogram and HDR plot, as its `report` command prints them.

use std::str::FromStr;

use gake_text::foreign;

use super::buckets::{Buckets, BucketsError};
use super::metrics::Metrics;
use gake_report::vegeta::go;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportKind {
    /// For people.
    Text,
    /// For programs; with buckets if there are any.
    Json,
    /// Latencies by bucket.
    Hist,
    /// Latencies by percentile, for HdrHistogram's plotter.
    HdrPlot,
}

/// An error of a report's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KindError {
    /// There is no such report.
    #[error("there is no report type {0:?}; there are text, json, hist[buckets] and hdrplot")]
    Unknown(String),
    /// Vegeta has removed it.
    #[error("the report type plot is now a command of its own: plot")]
    Plot,
    /// Its buckets are invalid.
    #[error(transparent)]
    Buckets(#[from] BucketsError),
    /// A histogram needs buckets.
    #[error("the histogram needs buckets: write hist[0,1ms,10ms]")]
    NoBuckets,
}

impl ReportKind {
    /// The report and the buckets of `-type` and `-buckets`, either of which may have the buckets
    /// of a histogram. As in Vegeta, only the first four letters of the type count.
    ///
    /// # Errors
    /// When there is no such report, or buckets are missing or not valid.
    pub fn parse(text: &str, buckets: &str) -> Result<(Self, Option<Buckets>), KindError> {
        let given = || (!buckets.is_empty()).then(|| Buckets::from_str(buckets)).transpose();
        match text.get(..4) {
            Some("text") => Ok((Self::Text, None)),
            Some("json") => Ok((Self::Json, given()?)),
            Some("hdrp") => Ok((Self::HdrPlot, None)),
            Some("plot") => Err(KindError::Plot),
            Some("hist") => {
                let inside = &text[4..];
                let buckets = match given()? {
                    Some(buckets) => buckets,
                    None if inside.is_empty() => return Err(KindError::NoBuckets),
                    None => inside.parse()?,
                };
                Ok((Self::Hist, Some(buckets)))
            }
            _ => Err(KindError::Unknown(text.to_owned())),
        }
    }
}

/// The report of these metrics.
pub fn render(kind: ReportKind, metrics: &mut Metrics) -> String {
    match kind {
        ReportKind::Text => text(metrics),
        ReportKind::Json => json(metrics),
        ReportKind::Hist => hist(metrics),
        ReportKind::HdrPlot => hdrplot(metrics),
    }
}

fn text(metrics: &mut Metrics) -> String {
    let rounded = |nanos| go::duration(go::rounded(nanos));
    let [p50, p90, p95, p99] =
        [0.50, 0.90, 0.95, 0.99].map(|quantile| rounded(metrics.quantile(quantile)));
    let (min, mean, max) = (rounded(metrics.min), rounded(metrics.mean()), rounded(metrics.max));
    let (duration, wait) = (metrics.duration(), metrics.wait());
    let requests = metrics.requests;
    let bytes = |total: u64| format!("{total}, {:.2}", metrics.per_request(total as f64));
    // Sorted as text, which for three-digit codes is numeric order.
    let codes: String =
        metrics.codes.iter().map(|(code, count)| format!("{code}:{count}  ")).collect();
    let row = |name: &str, fields: &str, values: String| {
        vec![name.to_owned(), format!("[{fields}]"), values]
    };
    let mut report = align(&[
        row(
            "Requests",
            "total, rate, throughput",
            format!("{requests}, {:.2}, {:.2}", metrics.rate(), metrics.throughput()),
        ),
        row(
            "Duration",
            "total, attack, wait",
            format!(
                "{}, {}, {}",
                rounded(duration.saturating_add(wait)),
                rounded(duration),
                rounded(wait)
            ),
        ),
        row(
            "Latencies",
            "min, mean, 50, 90, 95, 99, max",
            format!("{min}, {mean}, {p50}, {p90}, {p95}, {p99}, {max}"),
        ),
        row("Bytes In", "total, mean", bytes(metrics.bytes_in)),
        row("Bytes Out", "total, mean", bytes(metrics.bytes_out)),
        row("Success", "ratio", format!("{:.2}%", metrics.success() * 100.0)),
        row("Status Codes", "code:count", codes),
    ]);
    report.push_str("Error Set:\n");
    for error in &metrics.errors {
        report.push_str(&foreign::line(error));
        report.push('\n');
    }
    report
}

fn json(metrics: &mut Metrics) -> String {
    let [p50, p90, p95, p99] = [0.50, 0.90, 0.95, 0.99].map(|quantile| metrics.quantile(quantile));
    let mut out = Vec::new();
    let mut push = |text: String| out.extend_from_slice(text.as_bytes());
    push(format!(
        "{{\"latencies\":{{\"total\":{},\"mean\":{},\"50th\":{p50},\"90th\":{p90},\
         \"95th\":{p95},\"99th\":{p99},\"max\":{},\"min\":{}}}",
        metrics.total,
        metrics.mean(),
        metrics.max,
        metrics.min
    ));
    if let Some(histogram) = &metrics.histogram {
        let starts = histogram.buckets.starts().iter();
        let counts: Vec<_> = starts
            .zip(histogram.counts())
            .map(|(start, count)| format!("\"{start}\":{count}"))
            .collect();
        push(format!(",\"buckets\":{{{}}}", counts.join(",")));
    }
    let bytes = |total: u64| {
        let mean = go::float(metrics.per_request(total as f64));
        format!("{{\"total\":{total},\"mean\":{mean}}}")
    };
    let (earliest, latest) = metrics.span.unwrap_or_default();
    let codes: Vec<_> =
        metrics.codes.iter().map(|(code, count)| format!("\"{code}\":{count}")).collect();
    push(format!(
        ",\"bytes_in\":{},\"bytes_out\":{},\"earliest\":\"{}\",\"latest\":\"{}\",\"end\":\"{}\",\
         \"duration\":{},\"wait\":{},\"requests\":{},\"rate\":{},\"throughput\":{},\
         \"success\":{},\"status_codes\":{{{}}},\"errors\":[",
        bytes(metrics.bytes_in),
        bytes(metrics.bytes_out),
        go::timestamp(earliest),
        go::timestamp(latest),
        go::timestamp(metrics.end),
        metrics.duration(),
        metrics.wait(),
        metrics.requests,
        go::float(metrics.rate()),
        go::float(metrics.throughput()),
        go::float(metrics.success()),
        codes.join(",")
    ));
    for (i, error) in metrics.errors.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        go::push_json_text(&mut out, error);
    }
    out.extend_from_slice(b"]}\n");
    String::from_utf8_lossy(&out).into_owned()
}

/// The length of a bar for all requests.
const BAR: f64 = 75.0;

fn hist(metrics: &Metrics) -> String {
    let mut rows = vec![["Bucket", "", "#", "%", "Histogram"].map(str::to_owned).to_vec()];
    if let Some(histogram) = &metrics.histogram {
        for (at, &count) in histogram.counts().iter().enumerate() {
            let (start, end) = histogram.buckets.bounds(at);
            let share = metrics.per_request(count as f64);
            rows.push(vec![
                format!("[{start},"),
                format!("{end}]"),
                count.to_string(),
                format!("{:.2}%", share * 100.0),
                "#".repeat((share * BAR) as usize),
            ]);
        }
    }
    align(&rows)
}

fn hdrplot(metrics: &mut Metrics) -> String {
    let header = ["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for quantile in PERCENTILES {
        let value = metrics.quantile(quantile) as f64 / 1e6;
        let rank = (quantile * metrics.requests as f64 + 0.5) as u64;
        let odds = if quantile < 1.0 { 1.0 / (1.0 - quantile) } else { 10_000_000.0 };
        rows.push(vec![
            format!("{value:.6}"),
            format!("{quantile:.6}"),
            rank.to_string(),
            format!("{odds:.6}"),
        ]);
    }
    align(&rows)
}

/// The percentiles of the HDR plot, five to ten in each halving of what is left.
const PERCENTILES: [f64; 94] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875,
    0.8875, 0.9, 0.9125, 0.925, 0.9375, 0.94375, 0.95, 0.95625, 0.9625, 0.96875, 0.971875, 0.975,
    0.978125, 0.98125, 0.984375, 0.985938, 0.9875, 0.989062, 0.990625, 0.992188, 0.992969, 0.99375,
    0.994531, 0.995313, 0.996094, 0.996484, 0.996875, 0.997266, 0.997656, 0.998047, 0.998242,
    0.998437, 0.998633, 0.998828, 0.999023, 0.999121, 0.999219, 0.999316, 0.999414, 0.999512,
    0.999561, 0.999609, 0.999658, 0.999707, 0.999756, 0.99978, 0.999805, 0.999829, 0.999854,
    0.999878, 0.99989, 0.999902, 0.999915, 0.999927, 0.999939, 0.999945, 0.999951, 0.999957,
    0.999963, 0.999969, 0.999973, 0.999976, 0.999979, 0.999982, 0.999985, 0.999986, 0.999988,
    0.999989, 0.999991, 0.999992, 0.999993, 0.999994, 0.999995, 0.999996, 0.999997, 0.999998,
    0.999999, 1.0,
];

/// Aligns cells as Go's `tabwriter` does: two blanks after the widest cell, and no padding of a
/// line's last cell.
fn align(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (at, cell) in row.iter().take(row.len().saturating_sub(1)).enumerate() {
            let width = cell.chars().count() + 2;
            match widths.get_mut(at) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let Some((last, cells)) = row.split_last() else { continue };
        for (cell, &width) in cells.iter().zip(&widths) {
            text.push_str(&format!("{cell:width$}"));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}
