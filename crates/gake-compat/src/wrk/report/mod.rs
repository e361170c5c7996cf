//! The output of wrk and wrk2. Times are in microseconds, and from 0.85 of the next unit on a
//! number is shown in that unit.

mod omission;
mod units;

use std::fmt::Write;
use std::time::Duration;

use gake_core::record::Histogram;

use crate::spectrum::{in_microseconds, levels};
pub use omission::backfilled;
use units::{binary, padded, seconds, time};
pub use units::{metric, scan_count, scan_time};

/// Nanoseconds in a microsecond.
const US: f64 = 1e3;

/// Nanoseconds in a millisecond.
const MS: f64 = 1e6;

/// The line between wrk2's tables.
const RULE: &str = "----------------------------------------------------------\n";

/// The counts of `Socket errors`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketErrors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Incomplete responses.
    pub read: u64,
    /// Requests that could not be written.
    pub write: u64,
    /// Requests that took longer than the time-out.
    pub timeout: u64,
}

/// The latency distribution in addition to the thread stats.
#[derive(Debug, Clone, Copy)]
pub enum Distribution<'a> {
    /// Nothing.
    None,
    /// wrk's four percentiles.
    Percentiles,
    /// wrk2's percentiles and spectrum, also of the uncorrected latency if there is one.
    Spectrum(Option<&'a Histogram>),
}

#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// Latencies in nanoseconds.
    pub latency: &'a Histogram,
    /// Samples of the requests a second of one thread.
    pub rates: &'a Histogram,
    /// The latency distribution to show.
    pub distribution: Distribution<'a>,
    /// Responses.
    pub requests: u64,
    /// Bytes read.
    pub bytes: u64,
    pub runtime: Duration,
    /// The counts of errors.
    pub errors: SocketErrors,
    /// Responses with a status over 399.
    pub bad_statuses: u64,
}

/// The two lines before the run.
pub fn opening(url: &str, duration: Duration, threads: usize, connections: usize) -> String {
    format!(
        "Running {} test @ {url}\n  {threads} threads and {connections} connections\n",
        seconds(duration.as_secs_f64())
    )
}

/// The whole output after the run.
pub fn closing(figures: &Figures<'_>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(figures, &mut text);
    text
}

fn write(figures: &Figures<'_>, out: &mut String) -> std::fmt::Result {
    let latency = figures.latency;
    writeln!(out, "  Thread Stats{:>6}{:>11}{:>8}{:>12}", "Avg", "Stdev", "Max", "+/- Stdev")?;
    stats(out, "Latency", latency, |nanos| time(nanos / US))?;
    stats(out, "Req/Sec", figures.rates, metric)?;
    match figures.distribution {
        Distribution::None => {}
        Distribution::Percentiles => {
            writeln!(out, "  Latency Distribution")?;
            for percent in [50.0, 75.0, 90.0, 99.0] {
                let value = latency.quantile(percent / 100.0) as f64;
                writeln!(out, "{percent:>7.0}%{}", padded(&time(value / US), 10))?;
            }
        }
        Distribution::Spectrum(uncorrected) => {
            spectrum(out, latency, "Recorded Latency")?;
            if let Some(uncorrected) = uncorrected {
                out.push('\n');
                let what = "Uncorrected Latency (measured without taking delayed starts into \
                            account)";
                spectrum(out, uncorrected, what)?;
            }
        }
    }
    totals(figures, out)
}

fn totals(figures: &Figures<'_>, out: &mut String) -> std::fmt::Result {
    let Figures { requests, bytes, runtime, errors, bad_statuses, .. } = *figures;
    let runtime = runtime.as_secs_f64();
    let read = binary(bytes as f64);
    writeln!(out, "  {requests} requests in {}, {read}B read", time(runtime * 1e6))?;
    if errors != SocketErrors::default() {
        let SocketErrors { connect, read, write, timeout } = errors;
        writeln!(
            out,
            "  Socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}"
        )?;
    }
    if bad_statuses > 0 {
        writeln!(out, "  Non-2xx or 3xx responses: {bad_statuses}")?;
    }
    let a_second = |total: u64| if runtime > 0.0 { total as f64 / runtime } else { 0.0 };
    writeln!(out, "Requests/sec: {:>9.2}", a_second(requests))?;
    writeln!(out, "Transfer/sec: {:>10}B", binary(a_second(bytes)))
}

/// A line of the thread stats: mean, standard deviation, maximum, and the share of samples within
/// one standard deviation of the mean.
fn stats(
    out: &mut String,
    name: &str,
    samples: &Histogram,
    unit: impl Fn(f64) -> String,
) -> std::fmt::Result {
    let (mean, stdev) = (samples.mean(), stdev(samples));
    let [average, deviation, max] = [(mean, 8), (stdev, 10), (samples.max() as f64, 9)]
        .map(|(value, width)| padded(&unit(value), width));
    let low = (mean - stdev).max(0.0).ceil() as u64;
    let within = samples.count_between(low, (mean + stdev) as u64);
    // wrk does not divide without samples.
    let share = match samples.count() {
        0 => format!("{:>8}", "-nan"),
        count => format!("{:>8.2}", within as f64 / count as f64 * 100.0),
    };
    writeln!(out, "    {name:<10}{average}{deviation}{max}{share}%")
}

/// The standard deviation of a sample whose mean was estimated.
pub fn stdev(samples: &Histogram) -> f64 {
    let count = samples.count() as f64;
    if count < 2.0 { 0.0 } else { samples.stddev() * (count / (count - 1.0)).sqrt() }
}

/// wrk2's percentiles and HdrHistogram's table, in milliseconds.
fn spectrum(out: &mut String, latency: &Histogram, what: &str) -> std::fmt::Result {
    writeln!(out, "  Latency Distribution (HdrHistogram - {what})")?;
    for percent in [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0] {
        let value = latency.quantile(percent / 100.0) as f64;
        writeln!(out, "{percent:>7.3}%{}", padded(&time(value / US), 10))?;
    }
    let micros = in_microseconds(latency);
    writeln!(out, "\n  Detailed Percentile spectrum:")?;
    let head = ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"];
    writeln!(out, "{:>12} {:>12} {:>12} {:>12}\n", head[0], head[1], head[2], head[3])?;
    for level in levels(&micros) {
        let (value, quantile) = (level.value as f64 / 1e3, level.quantile);
        let inverse = 1.0 / (1.0 - quantile);
        writeln!(out, "{value:>12.3} {quantile:>12.6} {:>12} {inverse:>12.2}", level.count)?;
    }
    let (mean, stdev) = (latency.mean() / MS, latency.stddev() / MS);
    let (max, count) = (latency.max() as f64 / MS, latency.count());
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {stdev:>12.3}]")?;
    writeln!(out, "#[Max     = {max:>12.3}, Total count    = {count:>12}]")?;
    // The shape of a histogram of microseconds up to a day with three digits.
    writeln!(out, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", 27, 2048)?;
    out.push_str(RULE);
    Ok(())
}

#[cfg(test)]
mod tests;
