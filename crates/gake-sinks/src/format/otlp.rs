//! OpenTelemetry metrics: OTLP over HTTP in JSON. Times are exponential histograms, which merge
//! exactly.

use std::collections::BTreeMap;

use gake_core::record::Histogram;
use serde_json::{Value, json};

use super::series::{Family, SeriesWriter, Totals};
use crate::carrier::FigureBatch;

/// 2^SCALE buckets per octave, each 1.1 % wide.
pub(super) const SCALE: i32 = 6;
/// The aggregation temporality "cumulative".
pub(super) const CUMULATIVE: u32 = 2;

pub(super) const NOTHING: &str = r#"{"resourceMetrics":[]}"#;

pub(crate) struct Otlp {
    service: String,
    tags: Vec<(String, String)>,
}

impl Otlp {
    pub(crate) fn new(service: String, tags: Vec<(String, String)>) -> Self {
        Self { service, tags }
    }
}

impl SeriesWriter for Otlp {
    const AT_BEGIN: bool = false;

    fn write(&self, totals: &Totals, started: u64, unix_ns: u64) -> FigureBatch {
        let times = json!({
            "startTimeUnixNano": started.to_string(),
            "timeUnixNano": unix_ns.to_string(),
        });
        let mut metrics: Vec<Value> =
            totals.families().iter().map(|family| metric(family, &times)).collect();
        metrics
            .extend(totals.histograms().iter().map(|(name, all)| exponential(name, all, &times)));
        let rows = metrics.len() as u64;
        let common = self.tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let service = [("service.name", self.service.as_str())];
        let request = json!({"resourceMetrics": [{
            "resource": {"attributes": attributes(service.into_iter().chain(common))},
            "scopeMetrics": [{
                "scope": {"name": "gake", "version": env!("CARGO_PKG_VERSION")},
                "metrics": metrics,
            }],
        }]});
        FigureBatch { bytes: request.to_string().into_bytes(), rows }
    }
}

/// A family's name, with a dot after `gake`.
pub(super) fn metric_name(family: &Family) -> String {
    family.name.replacen('_', ".", 1)
}

pub(super) fn attributes<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    pairs.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn metric(family: &Family, times: &Value) -> Value {
    let points: Vec<Value> = family
        .points
        .iter()
        .map(|point| {
            let labels = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
            let mut data = times.clone();
            data["attributes"] = attributes(labels).into();
            data["asDouble"] = point.value.into();
            data
        })
        .collect();
    let name = metric_name(family);
    match family.is_counter {
        true => json!({"name": name, "description": family.help, "sum": {
            "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
        }}),
        false => json!({"name": name, "description": family.help, "gauge": {"dataPoints": points}}),
    }
}

fn exponential(name: &str, histogram: &Histogram, times: &Value) -> Value {
    let buckets = ExponentialBuckets::of(histogram);
    let dense: Vec<String> = buckets.counts.iter().map(u64::to_string).collect();
    let mut data = times.clone();
    data["count"] = histogram.count().to_string().into();
    data["sum"] = (histogram.sum() as f64 / 1e9).into();
    if !histogram.is_empty() {
        data["min"] = (histogram.min() as f64 / 1e9).into();
        data["max"] = (histogram.max() as f64 / 1e9).into();
    }
    data["scale"] = SCALE.into();
    data["zeroCount"] = buckets.zeros.to_string().into();
    data["positive"] = json!({"offset": buckets.offset, "bucketCounts": dense});
    json!({"name": format!("gake.{name}"), "unit": "s", "exponentialHistogram": {
        "dataPoints": [data], "aggregationTemporality": CUMULATIVE,
    }})
}

/// The buckets of an exponential histogram of seconds.
pub(super) struct ExponentialBuckets {
    /// Values of 0.
    pub(super) zeros: u64,
    pub(super) offset: i32,
    /// Counts from there on.
    pub(super) counts: Vec<u64>,
}

impl ExponentialBuckets {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let mut counts = BTreeMap::<i32, u64>::new();
        let mut zeros = 0;
        for bucket in histogram.buckets() {
            match index(bucket.middle() as f64 / 1e9) {
                Some(index) => *counts.entry(index).or_default() += bucket.count,
                None => zeros += bucket.count,
            }
        }
        let offset = counts.keys().next().copied().unwrap_or(0);
        let last = counts.keys().next_back().copied().unwrap_or(offset - 1);
        let counts = (offset..=last).map(|index| counts.get(&index).copied().unwrap_or(0));
        Self { zeros, offset, counts: counts.collect() }
    }
}

/// The index of the bucket (base^index, base^(index+1)] of a value; `None` for zero. base =
/// 2^(2^-SCALE).
fn index(value: f64) -> Option<i32> {
    (value > 0.0).then(|| (value.log2() * f64::from(1 << SCALE)).ceil() as i32 - 1)
}
