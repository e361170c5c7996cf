//! Panels on InfluxDB, in InfluxQL. Each row is of one second: rates over longer intervals are
//! means, and percentiles, which cannot be averaged, are shown as they are.

use super::{DashboardPanel, VERDICTS, Visualization};

pub(super) const EVENTS: &str = "SELECT \"title\", \"text\" FROM \"gake_events\" WHERE $timeFilter";

/// The mean of a field of all requests in each interval.
fn rate(field: &str) -> String {
    format!(
        "SELECT mean(\"{field}\") FROM \"gake_requests\" WHERE \"name\" = '' AND $timeFilter \
         GROUP BY time($__interval) fill(null)"
    )
}

/// A field of a latency in each second.
fn time(metric: &str, field: &str) -> String {
    format!(
        "SELECT \"{field}\" FROM \"gake_latency\" WHERE \"metric\" = '{metric}' AND \"name\" = '' \
         AND $timeFilter"
    )
}

/// The last value of a field of a finished run.
fn last(measurement: &str, field: &str, only: &str) -> String {
    format!("SELECT last(\"{field}\") FROM \"{measurement}\" WHERE {only}$timeFilter")
}

/// Counts by a tag, per second.
fn counted(measurement: &str, tag: &str) -> String {
    format!(
        "SELECT sum(\"count\") * 1000.0 / $__interval_ms FROM \"{measurement}\" WHERE $timeFilter \
         GROUP BY time($__interval), \"{tag}\" fill(0)"
    )
}

pub(super) fn panels() -> Vec<DashboardPanel> {
    let mut panels = of_runs();
    panels.extend(over_time());
    panels
}

fn of_runs() -> Vec<DashboardPanel> {
    let all = "\"name\" = '' AND ";
    let response = "\"metric\" = 'response' AND \"name\" = '' AND ";
    let total = |field| last("gake_run_requests", field, all);
    let whole = |field| last("gake_run_latency", field, response);
    vec![
        DashboardPanel::new(Visualization::Stat, "Verdict", "short", "Of the last finished run.")
            .width(6)
            .texts(VERDICTS)
            .query("verdict", last("gake_run_verdict", "level", "")),
        DashboardPanel::new(
            Visualization::Stat,
            "Objectives",
            "short",
            "Of the last finished run.",
        )
        .width(6)
        .query("met", last("gake_run_verdict", "met", ""))
        .query("missed", last("gake_run_verdict", "missed", "")),
        DashboardPanel::new(
            Visualization::Stat,
            "Requests of the run",
            "short",
            "Of the last finished run: sent = ok + failed + unfinished.",
        )
        .query("sent", total("sent"))
        .query("ok", total("ok"))
        .query("failed", total("failed"))
        .query("unfinished", total("unfinished"))
        .query("dropped", total("dropped")),
        DashboardPanel::new(
            Visualization::Stat,
            "Response time of the run",
            "ms",
            "Percentiles of the whole last run, not derived from its seconds.",
        )
        .width(24)
        .query("p50", whole("p50"))
        .query("p90", whole("p90"))
        .query("p95", whole("p95"))
        .query("p99", whole("p99"))
        .query("p99.9", whole("p999"))
        .query("max", whole("max")),
    ]
}

fn over_time() -> Vec<DashboardPanel> {
    vec![
        DashboardPanel::new(
            Visualization::Series,
            "Requests a second",
            "reqps",
            "Asked: planned. Sent: those that left. Goodput: with the expected response.",
        )
        .query("asked", rate("asked"))
        .query("sent", rate("fired"))
        .query("goodput", rate("ok"))
        .query("failed", rate("failed"))
        .query("dropped", rate("dropped")),
        DashboardPanel::new(
            Visualization::Series,
            "Response time",
            "ms",
            "Percentiles of each second, from the instant a request was due to its last byte.",
        )
        .query("p50", time("response", "p50"))
        .query("p90", time("response", "p90"))
        .query("p99", time("response", "p99"))
        .query("max", time("response", "max")),
        DashboardPanel::new(
            Visualization::Series,
            "Faults",
            "reqps",
            "Requests without a response, by fault.",
        )
        .query("$tag_fault", counted("gake_faults", "fault")),
        DashboardPanel::new(Visualization::Series, "Responses", "reqps", "By status.")
            .query("$tag_status", counted("gake_statuses", "status")),
        DashboardPanel::new(
            Visualization::Series,
            "Service time",
            "ms",
            "From the first byte written to the last read.",
        )
        .query("p50", time("service", "p50"))
        .query("p99", time("service", "p99"))
        .query("max", time("service", "max")),
        DashboardPanel::new(
            Visualization::Series,
            "Lateness",
            "ms",
            "The generator's own delay, from due to fired.",
        )
        .query("p99", time("lateness", "p99"))
        .query("max", time("lateness", "max")),
        DashboardPanel::new(
            Visualization::Series,
            "In flight and open",
            "short",
            "Requests in flight; connections open.",
        )
        .query("in flight", rate("in_flight"))
        .query("connections", rate("connections")),
        DashboardPanel::new(
            Visualization::Series,
            "Bytes a second",
            "Bps",
            "Heads included, before TLS.",
        )
        .query("in", rate("bytes_in"))
        .query("out", rate("bytes_out")),
        DashboardPanel::new(
            Visualization::Series,
            "The target",
            "short",
            "Levels from `--watch` and the machine.",
        )
        .width(24)
        .query(
            "$tag_level ($tag_source)",
            "SELECT mean(\"value\") FROM \"gake_target\" WHERE $timeFilter \
                 GROUP BY time($__interval), \"level\", \"source\" fill(null)",
        ),
    ]
}
