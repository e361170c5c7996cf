//! The outputs of oha (1.16): text, JSON and CSV.

mod json;
mod rates;
#[cfg(test)]
mod tests;
mod text;

use std::fmt::Write as _;

use gake_core::clock::Nanos;
use gake_core::record::Histogram;

use serde::Serialize;

use crate::spread::Spread;

pub use json::json;
pub use rates::OhaRates;
pub use text::{TimeUnit, text};

/// oha's error for a request that the end of `-z` aborted. oha does not count it as a failure.
pub const DEADLINE: &str = "aborted due to deadline";

/// The header line of the CSV.
pub const CSV_HEADER: &str =
    "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n";

/// Percentiles of every distribution, in the order of the text.
const PERCENTILES: [f64; 9] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// The figures of the outputs.
#[derive(Debug)]
pub struct Oha<'a> {
    /// The time from the start to the last response.
    pub total: Nanos,
    /// The latency of every response.
    pub latency: &'a Histogram,
    /// The time to the first byte of every response.
    pub first_byte: &'a Histogram,
    /// The latencies of 2xx responses and of all others, if they are shown separately.
    pub breakdown: Option<&'a [Histogram; 2]>,
    /// The time to open a connection, for requests that opened one.
    pub dial: Spread,
    /// When responses ended.
    pub rates: &'a OhaRates,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// Responses by status code, in order.
    pub statuses: &'a [(u16, u64)],
    /// Requests without a response by cause, in order; [`DEADLINE`] is one.
    pub errors: Vec<(String, u64)>,
}

impl Oha<'_> {
    fn responses(&self) -> u64 {
        self.latency.count()
    }

    /// The share of responses among all requests that ended before the deadline.
    fn success_rate(&self) -> f64 {
        let failed = self.errors.iter().filter(|(cause, _)| cause != DEADLINE);
        let ended = self.responses() + failed.map(|(_, count)| count).sum::<u64>();
        self.responses() as f64 / ended as f64
    }

    fn per_second(&self) -> f64 {
        let errors = self.errors.iter().map(|(_, count)| count).sum::<u64>();
        (self.responses() + errors) as f64 / seconds(self.total)
    }

    fn bytes_per_second(&self) -> f64 {
        self.body_bytes as f64 / seconds(self.total)
    }

    fn bytes_per_response(&self) -> Option<u64> {
        self.body_bytes.checked_div(self.responses())
    }

    /// Names are resolved before the run.
    fn lookup(&self) -> Spread {
        Spread::zeros(self.dial.count())
    }
}

/// Mean, smallest and largest value in seconds; without values NaN, inf and -inf, as in oha.
#[derive(Debug, Clone, Copy, Serialize)]
struct Triple {
    average: f64,
    fastest: f64,
    slowest: f64,
}

impl Triple {
    fn of(latency: &Histogram) -> Self {
        if latency.is_empty() {
            return Self::NONE;
        }
        Self {
            average: latency.mean() / 1e9,
            fastest: seconds(latency.min()),
            slowest: seconds(latency.max()),
        }
    }

    const NONE: Self =
        Self { average: f64::NAN, fastest: f64::INFINITY, slowest: f64::NEG_INFINITY };
}

impl From<Spread> for Triple {
    fn from(spread: Spread) -> Self {
        if spread.count() == 0 {
            return Self::NONE;
        }
        Self {
            average: spread.mean_s(),
            fastest: seconds(spread.min()),
            slowest: seconds(spread.max()),
        }
    }
}

/// The position of a percentile among sorted values, from 0.
fn position(percent: f64, count: u64) -> u64 {
    (percent / 100.0 * count as f64) as u64
}

/// A percentile in seconds; NaN when there is no value.
fn percentile(latency: &Histogram, percent: f64) -> f64 {
    if latency.is_empty() {
        return f64::NAN;
    }
    let count = latency.count();
    // Half a position up, so that rounding cannot yield a neighbour.
    seconds(latency.quantile((position(percent, count) as f64 + 0.5) / count as f64))
}

/// The eleven rows of a histogram, their marks in seconds; NaN when there is no value.
fn rows(latency: &Histogram) -> Vec<(f64, u64)> {
    if latency.is_empty() {
        return vec![(f64::NAN, 0); 11];
    }
    crate::spread::rows(latency).into_iter().map(|(mark, count)| (seconds(mark), count)).collect()
}

/// One response in the CSV. Times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct OhaRow {
    /// The start of the request, from the start of the run.
    pub start: Nanos,
    /// The time to open the connection; 0 if it was open.
    pub dial: Nanos,
    /// The time from its start to the first byte of the response.
    pub first_byte: Nanos,
    /// The time from its start, or from when it was due, to its end.
    pub duration: Nanos,
    /// Bytes of the response's body.
    pub bytes: u64,
    /// The status code of the response.
    pub status: u16,
}

/// Appends a row of the CSV. Names are resolved before the run, so the time for that is 0.
pub fn csv_row(out: &mut String, row: &OhaRow) {
    let [start, dial, first_byte, duration] =
        [row.start, row.dial, row.first_byte, row.duration].map(seconds);
    let (bytes, status) = (row.bytes, row.status);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{start},0,{dial},{first_byte},{duration},{bytes},{status}");
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}
