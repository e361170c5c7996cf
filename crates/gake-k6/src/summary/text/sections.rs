//! The sections of a summary and their metrics.

use crate::summary::{SummaryMetric, SummaryScope};

const SECTIONS: [&str; 8] =
    ["CUSTOM", "HTTP", "EXECUTION", "NETWORK", "BROWSER", "WEB_VITALS", "GRPC", "WEBSOCKET"];

/// Metrics that the summary shows elsewhere.
const SKIPPED: [&str; 2] = ["checks", "group_duration"];

/// HTTP metrics of the compact mode.
const COMPACT_HTTP: [&str; 3] = ["http_req_duration", "http_req_failed", "http_reqs"];

/// Additional HTTP metrics of the full mode.
const FULL_HTTP: [&str; 6] = [
    "http_req_blocked",
    "http_req_connecting",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
];

const EXECUTION: [&str; 5] =
    ["vus", "vus_max", "iterations", "iteration_duration", "dropped_iterations"];

/// The section of a metric, if any.
fn section(metric: &str, is_full: bool) -> Option<&'static str> {
    // As in k6, prefixes decide: a script's `vus_busy` belongs to EXECUTION.
    let begins = |names: &[&str]| names.iter().any(|name| metric.starts_with(name));
    match () {
        () if begins(&SKIPPED) || (!is_full && begins(&FULL_HTTP)) => None,
        () if begins(&COMPACT_HTTP) || begins(&FULL_HTTP) => Some("HTTP"),
        () if begins(&EXECUTION) => Some("EXECUTION"),
        () if begins(&["data_sent", "data_received"]) => Some("NETWORK"),
        () if begins(&["browser_web_vital_"]) => Some("WEB_VITALS"),
        () if begins(&["browser_"]) => Some("BROWSER"),
        () if begins(&["grpc_"]) => Some("GRPC"),
        () if begins(&["ws_"]) => Some("WEBSOCKET"),
        () => Some("CUSTOM"),
    }
}

/// The sections of a scope that have metrics.
pub(super) fn of(scope: &SummaryScope, is_full: bool) -> Vec<(&'static str, Vec<&SummaryMetric>)> {
    let with = |name: &'static str| {
        let metrics = scope.metrics.iter();
        let metrics = metrics.filter(|metric| section(metric.parts().0, is_full) == Some(name));
        (name, metrics.collect::<Vec<_>>())
    };
    SECTIONS.map(with).into_iter().filter(|section| !section.1.is_empty()).collect()
}
