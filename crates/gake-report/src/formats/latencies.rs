//! The table of latencies, in every format for people.

use std::borrow::Cow;

use gake_core::record::{Histogram, Latency, LatencyMetric};

/// The columns: quantiles with their names.
pub(super) const COLUMNS: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

pub(super) const HEADLINE: &str = "response";

/// The rows with samples, the headline first.
pub(super) fn rows(latency: &Latency) -> Vec<(&'static str, Cow<'_, Histogram>)> {
    let of = |metric| Cow::Borrowed(latency.of(metric));
    let rows = [
        (HEADLINE, latency.response()),
        ("ok only", latency.distinct_ok().map(Cow::Borrowed).unwrap_or_default()),
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
