//! Order of a run's own metrics, of which the first are compared.

/// Metrics of every k6 script that summarise a run.
const JUDGING: [&str; 5] =
    ["checks", "dropped_iterations", "http_req_duration", "http_req_failed", "iteration_duration"];

/// Metrics of every k6 script that are details of these, or follow from the load.
const DETAILS: [&str; 13] = [
    "data_received",
    "data_sent",
    "group_duration",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
    "http_reqs",
    "iterations",
    "vus",
    "vus_max",
];

/// The sort key of a metric: those that a script defines come first.
pub(super) fn rank(metric: &str) -> u8 {
    match metric {
        name if JUDGING.contains(&name) => 1,
        name if DETAILS.contains(&name) => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_own_metrics_come_first() {
        let mut names = ["vus", "checks", "checkout_time", "http_reqs", "zeal"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, ["checkout_time", "zeal", "checks", "vus", "http_reqs"]);
    }
}
