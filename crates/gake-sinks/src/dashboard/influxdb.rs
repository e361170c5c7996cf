//! Panels on InfluxDB, in InfluxQL. Rows are of one second each: rates over longer pieces are
//! means of them, and percentiles are shown as they are, for they cannot be averaged.

use super::{Panel, VERDICTS, View};

/// Begin and end of runs.
pub(super) const EVENTS: &str = "SELECT \"title\", \"text\" FROM \"gake_events\" WHERE $timeFilter";

/// The mean of a field of all requests, a piece of time each.
fn rate(field: &str) -> String {
    format!(
        "SELECT mean(\"{field}\") FROM \"gake_requests\" WHERE \"name\" = '' AND $timeFilter \
         GROUP BY time($__interval) fill(null)"
    )
}

/// A field of a time, second by second.
fn time(metric: &str, field: &str) -> String {
    format!(
        "SELECT \"{field}\" FROM \"gake_latency\" WHERE \"metric\" = '{metric}' AND \"name\" = '' \
         AND $timeFilter"
    )
}

/// The last value of a field of a run that is over.
fn last(measurement: &str, field: &str, only: &str) -> String {
    format!("SELECT last(\"{field}\") FROM \"{measurement}\" WHERE {only}$timeFilter")
}

/// Counts by a tag, a second.
fn counted(measurement: &str, tag: &str) -> String {
    format!(
        "SELECT sum(\"count\") * 1000.0 / $__interval_ms FROM \"{measurement}\" WHERE $timeFilter \
         GROUP BY time($__interval), \"{tag}\" fill(0)"
    )
}

pub(super) fn panels() -> Vec<Panel> {
    let mut panels = of_runs();
    panels.extend(over_time());
    panels
}

/// Single numbers.
fn of_runs() -> Vec<Panel> {
    let all = "\"name\" = '' AND ";
    let response = "\"metric\" = 'response' AND \"name\" = '' AND ";
    let total = |field| last("gake_run_requests", field, all);
    let whole = |field| last("gake_run_latency", field, response);
    vec![
        Panel::new(View::Stat, "Verdict", "short", "Of the last finished run.")
            .width(6)
            .texts(VERDICTS)
            .query("verdict", last("gake_run_verdict", "level", "")),
        Panel::new(View::Stat, "Objectives", "short", "Of the last finished run.")
            .width(6)
            .query("met", last("gake_run_verdict", "met", ""))
            .query("missed", last("gake_run_verdict", "missed", "")),
        Panel::new(
            View::Stat,
            "Requests of the run",
            "short",
            "Of the last finished run: sent = ok + failed + unfinished.",
        )
        .query("sent", total("sent"))
        .query("ok", total("ok"))
        .query("failed", total("failed"))
        .query("unfinished", total("unfinished"))
        .query("dropped", total("dropped")),
        Panel::new(
            View::Stat,
            "Response time of the run",
            "ms",
            "Percentiles of the whole last run, which those of its seconds do not give.",
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

/// What changes over time.
fn over_time() -> Vec<Panel> {
    vec![
        Panel::new(
            View::Series,
            "Requests a second",
            "reqps",
            "Asked: due by the plan. Sent: as they left. Goodput: ended ok.",
        )
        .query("asked", rate("asked"))
        .query("sent", rate("fired"))
        .query("goodput", rate("ok"))
        .query("failed", rate("failed"))
        .query("dropped", rate("dropped")),
        Panel::new(
            View::Series,
            "Response time",
            "ms",
            "Percentiles of each second, from the instant a request was due to its last byte.",
        )
        .query("p50", time("response", "p50"))
        .query("p90", time("response", "p90"))
        .query("p99", time("response", "p99"))
        .query("max", time("response", "max")),
        Panel::new(View::Series, "Faults", "reqps", "Requests without a response, by fault.")
            .query("$tag_fault", counted("gake_faults", "fault")),
        Panel::new(View::Series, "Responses", "reqps", "By status.")
            .query("$tag_status", counted("gake_statuses", "status")),
        Panel::new(
            View::Series,
            "Service time",
            "ms",
            "From the first byte written to the last read.",
        )
        .query("p50", time("service", "p50"))
        .query("p99", time("service", "p99"))
        .query("max", time("service", "max")),
        Panel::new(View::Series, "Lateness", "ms", "The generator's own delay, from due to fired.")
            .query("p99", time("lateness", "p99"))
            .query("max", time("lateness", "max")),
        Panel::new(
            View::Series,
            "In flight and open",
            "short",
            "Requests in flight; connections open.",
        )
        .query("in flight", rate("in_flight"))
        .query("connections", rate("connections")),
        Panel::new(View::Series, "Bytes a second", "Bps", "Heads included, before TLS.")
            .query("in", rate("bytes_in"))
            .query("out", rate("bytes_out")),
        Panel::new(View::Series, "The target", "short", "What `--watch` and the machine say.")
            .width(24)
            .query(
                "$tag_level ($tag_source)",
                "SELECT mean(\"value\") FROM \"gake_target\" WHERE $timeFilter \
                 GROUP BY time($__interval), \"level\", \"source\" fill(null)",
            ),
    ]
}
