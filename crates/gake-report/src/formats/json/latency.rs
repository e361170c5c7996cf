//! Latencies in JSON.

use gake_core::record::{Histogram, LatencyMetric, Tally};
use serde::Serialize;

/// Latencies in nanoseconds, to three significant digits; `min`, `max` and `mean` are exact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LatencyForm {
    /// Due to last byte, what a user feels: every arrival that was answered, and those that timed
    /// out, were unfinished or dropped as having waited at least as long as they had.
    response: HistogramForm,
    /// The same, of arrivals that met the expectation only.
    ok_response: HistogramForm,
    /// Due to end, of arrivals that a fault ended early; they are not in `response`.
    fault_response: HistogramForm,
    /// First byte written to last byte read, what the server did.
    service: HistogramForm,
    /// Due to fired, the generator's own delay, without the wait for a free connection.
    lateness: HistogramForm,
    /// The wait for a free connection, of arrivals that waited.
    blocked: HistogramForm,
    /// Opening a connection.
    connect: HistogramForm,
    /// The TLS handshake.
    tls: HistogramForm,
    /// First byte written to first byte read.
    first_byte: HistogramForm,
    /// First byte read to last byte read.
    download: HistogramForm,
    /// TCP's smoothed round-trip time, sampled.
    rtt: HistogramForm,
}

impl From<&Tally> for LatencyForm {
    fn from(tally: &Tally) -> Self {
        let of = |metric| HistogramForm::from(tally.latency.of(metric));
        Self {
            response: (&*tally.latency.response()).into(),
            ok_response: of(LatencyMetric::OkResponse),
            fault_response: of(LatencyMetric::FaultResponse),
            service: of(LatencyMetric::Service),
            lateness: of(LatencyMetric::Lateness),
            blocked: of(LatencyMetric::Blocked),
            connect: of(LatencyMetric::Connect),
            tls: of(LatencyMetric::Tls),
            first_byte: of(LatencyMetric::FirstByte),
            download: of(LatencyMetric::Download),
            rtt: of(LatencyMetric::Rtt),
        }
    }
}

/// A histogram's figures, in nanoseconds; all 0 when `count` is 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HistogramForm {
    /// Number of values.
    count: u64,
    /// The smallest.
    min: u64,
    /// The mean.
    mean: f64,
    /// The standard deviation.
    stddev: f64,
    /// The median.
    p50: u64,
    /// 75 % are not above it.
    p75: u64,
    /// 90 % are not above it.
    p90: u64,
    /// 95 % are not above it.
    p95: u64,
    /// 99 % are not above it.
    p99: u64,
    /// 99.9 % are not above it. With fewer than 10,000 values it is the luck of a few.
    #[serde(rename = "p99.9")]
    p99_9: u64,
    /// 99.99 % are not above it. With fewer than 100,000 values it is the luck of a few.
    #[serde(rename = "p99.99")]
    p99_99: u64,
    /// The largest.
    max: u64,
}

impl From<&Histogram> for HistogramForm {
    fn from(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            min: histogram.min(),
            mean: histogram.mean(),
            stddev: histogram.stddev(),
            p50: histogram.quantile(0.5),
            p75: histogram.quantile(0.75),
            p90: histogram.quantile(0.9),
            p95: histogram.quantile(0.95),
            p99: histogram.quantile(0.99),
            p99_9: histogram.quantile(0.999),
            p99_99: histogram.quantile(0.9999),
            max: histogram.max(),
        }
    }
}
