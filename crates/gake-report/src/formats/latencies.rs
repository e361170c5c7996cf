//! The table of latencies, in every format for people.

use std::borrow::Cow;

use gake_core::record::{Histogram, Latency, Metric};

/// The columns: quantiles with their names.
pub(super) const COLUMNS: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

pub(super) const HEADLINE: &str = "response";

/// The rows with samples, the headline first.
pub(super) fn rows(latency: &Latency) -> Vec<(&'static str, Cow<'_, Histogram>)> {
    let of = |metric| Cow::Borrowed(latency.of(metric));
    let rows = [
        (HEADLINE, latency.response()),
        ("service", of(Metric::Service)),
        ("lateness", of(Metric::Lateness)),
        ("blocked", of(Metric::Blocked)),
        ("connect", of(Metric::Connect)),
        ("tls", of(Metric::Tls)),
        ("first byte", of(Metric::FirstByte)),
        ("early faults", of(Metric::FaultResponse)),
    ];
    rows.into_iter().filter(|(_, histogram)| !histogram.is_empty()).collect()
}
