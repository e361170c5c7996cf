//! Which metrics a summary shows, and under which heading.

use crate::summary::{SummaryMetric, SummaryScope};

const SECTIONS: [&str; 7] =
    ["CUSTOM", "HTTP", "EXECUTION", "NETWORK", "BROWSER", "WEBSOCKET", "GRPC"];

/// What the compact form shows of HTTP.
const COMPACT_HTTP: [&str; 3] = ["http_req_duration", "http_req_failed", "http_reqs"];

const EXECUTION: [&str; 5] =
    ["vus", "vus_max", "iterations", "iteration_duration", "dropped_iterations"];

/// The section of a metric; none for what other parts of the summary say.
fn section(metric: &str, is_full: bool) -> Option<&'static str> {
    match metric {
        "checks" | "group_duration" => None,
        "data_sent" | "data_received" => Some("NETWORK"),
        name if EXECUTION.contains(&name) => Some("EXECUTION"),
        name if name.starts_with("http_req") => {
            (is_full || COMPACT_HTTP.contains(&name)).then_some("HTTP")
        }
        name if name.starts_with("browser_") => Some("BROWSER"),
        name if name.starts_with("ws_") => Some("WEBSOCKET"),
        name if name.starts_with("grpc_") => Some("GRPC"),
        _ => Some("CUSTOM"),
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
