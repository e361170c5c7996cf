//! `--output-format fortio`: the input of fortio's report page.

use serde_json::{Value, json};

use super::json::{duration, indented};
use super::{BODY_SIZE, HEADER_SIZE, Output, REQUEST_TO_RESPONSE, Unit, main_levels};
use crate::spectrum::levels;
use gake_core::record::Histogram;

/// The result as fortio's JSON.
pub fn fortio(output: &Output) -> String {
    let (settings, global) = (&output.settings, output.global());
    let counter = |name| global.counter(name).unwrap_or(0);
    let workers = output.workers.len() as u64;
    let statistics = &global.statistics;
    indented(&json!({
        "RunType": "HTTP",
        "Labels": settings.labels.join(" "),
        "Version": env!("CARGO_PKG_VERSION"),
        "StartTime": output.timestamp(),
        "URL": settings.uri,
        "RequestedQPS": workers * u64::from(settings.rps),
        "RequestedDuration": duration(settings.duration.unwrap_or_default().as_nanos()),
        "ActualQPS": output.a_second(counter("upstream_rq_total")),
        "ActualDuration": output.execution.as_nanos() as u64,
        "NumThreads": workers * u64::from(settings.connections),
        "Jitter": !settings.jitter.is_zero(),
        "BytesReceived": counter("upstream_cx_rx_bytes_total").to_string(),
        "BytesSent": counter("upstream_cx_tx_bytes_total").to_string(),
        "RetCodes": { "200": counter("benchmark.http_2xx").to_string() },
        "DurationHistogram": histogram(&statistics[REQUEST_TO_RESPONSE], Unit::Time),
        "Sizes": histogram(&statistics[BODY_SIZE], Unit::Bytes),
        "HeaderSizes": histogram(&statistics[HEADER_SIZE], Unit::Bytes),
    }))
}

fn histogram(values: &Histogram, unit: Unit) -> Value {
    let scale = if unit == Unit::Time { 1e9 } else { 1.0 };
    let levels = levels(values);
    let (mut start, mut counted) = (None, 0);
    let mut data = Vec::new();
    for level in &levels {
        let end = level.value as f64 / scale;
        // The first bucket has no width: from 0 it would dwarf the others.
        data.push(json!({
            "Start": start.unwrap_or(end),
            "End": end,
            "Percent": level.quantile * 100.0,
            "Count": (level.count - counted).to_string(),
        }));
        (start, counted) = (Some(end), level.count);
    }
    let percentiles: Vec<_> = main_levels(values)
        .into_iter()
        .map(|level| {
            // 99.0625 is shown as 99.
            let percentile = (level.quantile * 1_000.0).floor() / 10.0;
            json!({ "Percentile": percentile, "Value": level.value as f64 / scale })
        })
        .collect();
    json!({
        "Count": values.count().to_string(),
        "Min": values.min() as f64 / scale,
        "Max": values.max() as f64 / scale,
        "Sum": values.sum() as f64 / scale,
        "Avg": values.mean() / scale,
        "StdDev": values.stddev() / scale,
        "Data": data,
        "Percentiles": percentiles,
    })
}
