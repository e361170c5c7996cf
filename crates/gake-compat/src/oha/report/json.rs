//! oha's summary for programs. Times are in seconds; missing values are null.

use std::collections::BTreeMap;

use gake_core::record::Histogram;
use serde::Serialize;

use super::{Oha, PERCENTILES, Triple, percentile, position, rows, seconds};

type Counts = BTreeMap<String, u64>;
type Percentiles = BTreeMap<String, f64>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    summary: Summary,
    metrics: Metrics,
    response_time_histogram: Counts,
    latency_percentiles: Percentiles,
    first_byte_histogram: Counts,
    first_byte_percentiles: Percentiles,
    #[serde(flatten)]
    breakdown: Option<Breakdown>,
    rps: Rps,
    details: Details,
    status_code_distribution: Counts,
    error_distribution: Counts,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    success_rate: f64,
    total: f64,
    slowest: f64,
    fastest: f64,
    average: f64,
    requests_per_sec: f64,
    total_data: u64,
    size_per_request: Option<u64>,
    size_per_sec: f64,
}

#[derive(Serialize)]
struct Metrics {
    success_rate: f64,
    requests_per_sec: f64,
    latency_ms: LatencyMs,
}

#[derive(Serialize)]
struct LatencyMs {
    min: f64,
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Breakdown {
    response_time_histogram_successful: Counts,
    latency_percentiles_successful: Percentiles,
    response_time_histogram_not_successful: Counts,
    latency_percentiles_not_successful: Percentiles,
}

#[derive(Serialize)]
struct Rps {
    mean: f64,
    stddev: f64,
    max: f64,
    min: f64,
    percentiles: Percentiles,
}

#[derive(Serialize)]
struct Details {
    #[serde(rename = "DNSDialup")]
    dial: Triple,
    #[serde(rename = "DNSLookup")]
    lookup: Triple,
    #[serde(rename = "firstByte")]
    first_byte: Triple,
}

/// The summary as one JSON object, without a line break at its end.
pub fn json(oha: &Oha<'_>) -> String {
    let document = Document {
        summary: summary(oha),
        metrics: metrics(oha),
        response_time_histogram: histogram(oha.latency),
        latency_percentiles: percentiles(|percent| percentile(oha.latency, percent)),
        first_byte_histogram: histogram(oha.first_byte),
        first_byte_percentiles: percentiles(|percent| percentile(oha.first_byte, percent)),
        breakdown: oha.breakdown.map(|[ok, other]| Breakdown {
            response_time_histogram_successful: histogram(ok),
            latency_percentiles_successful: percentiles(|percent| percentile(ok, percent)),
            response_time_histogram_not_successful: histogram(other),
            latency_percentiles_not_successful: percentiles(|percent| percentile(other, percent)),
        }),
        rps: rps(&oha.rates.sorted()),
        details: Details {
            dial: oha.dial.into(),
            lookup: oha.lookup().into(),
            first_byte: Triple::of(oha.first_byte),
        },
        status_code_distribution: oha
            .statuses
            .iter()
            .map(|(status, count)| (status.to_string(), *count))
            .collect(),
        error_distribution: oha.errors.iter().cloned().collect(),
    };
    // Maps with string keys, written to memory: this cannot fail.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn summary(oha: &Oha<'_>) -> Summary {
    let latency = Triple::of(oha.latency);
    Summary {
        success_rate: oha.success_rate(),
        total: seconds(oha.total),
        slowest: latency.slowest,
        fastest: latency.fastest,
        average: latency.average,
        requests_per_sec: oha.per_second(),
        total_data: oha.body_bytes,
        size_per_request: oha.bytes_per_response(),
        size_per_sec: oha.bytes_per_second(),
    }
}

fn metrics(oha: &Oha<'_>) -> Metrics {
    let latency = Triple::of(oha.latency);
    let ms = |seconds: f64| (seconds * 1e6).round() / 1e3;
    let at = |percent| ms(percentile(oha.latency, percent));
    Metrics {
        success_rate: oha.success_rate(),
        requests_per_sec: oha.per_second(),
        latency_ms: LatencyMs {
            min: ms(latency.fastest),
            mean: ms(latency.average),
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            max: ms(latency.slowest),
        },
    }
}

/// The rows by their marks; rows with the same mark are merged.
fn histogram(latency: &Histogram) -> Counts {
    let mut counts = Counts::new();
    for (mark, count) in rows(latency) {
        *counts.entry(mark.to_string()).or_default() += count;
    }
    counts
}

fn percentiles(at: impl Fn(f64) -> f64) -> Percentiles {
    PERCENTILES.iter().map(|&percent| (format!("p{percent}"), at(percent))).collect()
}

/// Statistics of the rates of the steps, which are sorted.
fn rps(sorted: &[f64]) -> Rps {
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let squares = sorted.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    let at = |at: u64| sorted.get(at as usize).copied().unwrap_or(f64::NAN);
    Rps {
        mean,
        // The sample deviation: undefined for one rate.
        stddev: (squares / (count - 1.0)).sqrt(),
        max: sorted.last().copied().unwrap_or(f64::NAN),
        min: at(0),
        percentiles: percentiles(|percent| at(position(percent, sorted.len() as u64))),
    }
}
