//! Latencies of a run in JSON.

use gake_core::record::{Histogram, LatencyMetric, Tally};
use serde::Serialize;

/// Latencies in nanoseconds, to three significant digits; `min`, `max` and `mean` are exact.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LatencyJson {
    /// Due to last byte, as a user feels it: every response, and as lower bounds the arrivals that
    /// timed out, were unfinished or dropped.
    response: HistogramJson,
    /// `response` of arrivals that met the expectation.
    ok_response: HistogramJson,
    /// Due to end of arrivals that a fault ended early, which `response` excludes.
    fault_response: HistogramJson,
    /// First byte written to last byte read: the server's time.
    service: HistogramJson,
    /// Due to fired: the generator's own delay, without the wait for a connection.
    lateness: HistogramJson,
    /// The wait for a free connection, of arrivals that waited.
    blocked: HistogramJson,
    /// Opening a connection.
    connect: HistogramJson,
    /// The TLS handshake.
    tls: HistogramJson,
    /// First byte written to first byte read.
    first_byte: HistogramJson,
    /// First byte read to last byte read.
    download: HistogramJson,
    /// TCP's smoothed round-trip time, sampled.
    rtt: HistogramJson,
}

impl From<&Tally> for LatencyJson {
    fn from(tally: &Tally) -> Self {
        let of = |metric| HistogramJson::from(tally.latency.of(metric));
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

/// The figures of a histogram, in nanoseconds; all 0 when `count` is 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct HistogramJson {
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
    p75: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    /// With fewer than 10,000 values it depends on a few.
    #[serde(rename = "p99.9")]
    p99_9: u64,
    /// With fewer than 100,000 values it depends on a few.
    #[serde(rename = "p99.99")]
    p99_99: u64,
    /// The largest.
    max: u64,
}

impl From<&Histogram> for HistogramJson {
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
