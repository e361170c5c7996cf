//! `--output-file`: h2load's figures and their samples as JSON.

use std::io::{self, Write};

use gake_core::record::Histogram;
use serde_json::json;

use super::report::{H2load, RATE_SCALE, deviation, within};

/// The most samples of a figure and thread, as in h2load.
const SAMPLES_MAX: u64 = 1_000_000;

/// Writes the figures of a run with `threads` threads.
///
/// # Errors
/// When it cannot be written.
pub fn write(out: &mut impl Write, figures: &H2load<'_>, threads: usize) -> io::Result<()> {
    let H2load { requests, classes: [second, third, fourth, fifth], traffic, .. } = figures;
    let seconds = figures.base.as_secs_f64();
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let answered = figures.classes.iter().sum::<u64>() as f64;
    let head = json!({
        "duration": figures.took.as_secs_f64(),
        "request_per_second": per_second(answered),
        "bytes_per_second": per_second(traffic.total as f64) as u64,
        "requests": {
            "total": requests.total,
            "started": requests.started,
            "done": requests.done,
            "succeeded": requests.succeeded,
            "failed": requests.failed,
            "errored": requests.errored,
            "timeout": requests.timed_out,
        },
        "status_codes": { "2xx": second, "3xx": third, "4xx": fourth, "5xx": fifth },
        "traffic": {
            "total": traffic.total,
            "headers": traffic.headers,
            "headers_decompressed": traffic.header_text,
            "data": traffic.data,
        },
    })
    .to_string();
    let generator = json!(concat!("gake/", env!("CARGO_PKG_VERSION")));
    // The object continues.
    let head = head.strip_suffix('}').unwrap_or(&head);
    write!(
        out,
        r#"{{"version":"v1","metadata":{{"generator":{generator}}},"measurements":{head}"#
    )?;
    let most = SAMPLES_MAX.saturating_mul(threads as u64);
    let times = 1e9;
    for (before, name, samples, scale) in [
        (r#","performance":{"#, "request", figures.request, times),
        (",", "connect", figures.connect, times),
        (",", "ttfb", figures.first_byte, times),
        (",", "request_per_second", figures.rates, RATE_SCALE),
    ] {
        write!(out, "{before}\"{name}\":")?;
        distribution(out, samples, scale, most)?;
    }
    out.write_all(b"}}}")
}

/// The statistics of values, divided by `scale`, and up to `most` of the values in order.
fn distribution(
    out: &mut impl Write,
    samples: &Histogram,
    scale: f64,
    most: u64,
) -> io::Result<()> {
    let quantile = |share: f64| samples.quantile(share) as f64 / scale;
    let (min, max) = (samples.min() as f64 / scale, samples.max() as f64 / scale);
    let (median, p95, p99) = (quantile(0.5), quantile(0.95), quantile(0.99));
    let (mean, sd) = (samples.mean() / scale, deviation(samples) / scale);
    write!(
        out,
        r#"{{"min":{min},"max":{max},"median":{median},"p95":{p95},"p99":{p99},"mean":{mean},"#
    )?;
    write!(out, r#""sd":{sd},"within_sd":{},"samples":["#, within(samples))?;
    let count = samples.count().max(1);
    let (mut seen, mut written) = (0_u64, 0_u64);
    for bucket in samples.buckets() {
        seen += bucket.count;
        // Of more than the most, an even selection.
        let due = u128::from(seen) * u128::from(count.min(most)) / u128::from(count);
        let value = bucket.middle().clamp(samples.min(), samples.max()) as f64 / scale;
        while u128::from(written) < due {
            write!(out, "{}{value}", if written > 0 { "," } else { "" })?;
            written += 1;
        }
    }
    out.write_all(b"]}")
}
