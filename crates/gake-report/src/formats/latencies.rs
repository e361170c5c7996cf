//! The table of latencies that people are shown, in whatever format.

use std::borrow::Cow;

use gake_core::record::{Histogram, Latency, LatencyMetric};

/// Its columns: quantiles with their names.
pub(super) const COLUMNS: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// The row that is the headline.
pub(super) const HEADLINE: &str = "response";

/// Its rows: the headline first, and none without a sample.
pub(super) fn rows(latency: &Latency) -> Vec<(&'static str, Cow<'_, Histogram>)> {
    let of = |metric| Cow::Borrowed(latency.of(metric));
    let rows = [
        (HEADLINE, latency.response()),
        ("service", of(LatencyMetric::Service)),
        ("lateness", of(LatencyMetric::Lateness)),
        ("blocked", of(LatencyMetric::Blocked)),
        ("connect", of(LatencyMetric::Connect)),
        ("tls", of(LatencyMetric::Tls)),
        ("first byte", of(LatencyMetric::FirstByte)),
        ("early faults", of(LatencyMetric::FaultResponse)),
    ];
    rows.into_iter().filter(|(_, histogram)| !histogram.is_empty()).collect()
}
