//! Panels on Prometheus, in PromQL. Percentiles of the run so far are exact; percentiles of an
//! interval come from histogram buckets.

use super::{DashboardPanel, VERDICTS, Visualization};

fn rate(selector: &str) -> String {
    format!("sum(rate({selector}[$__rate_interval]))")
}

fn by(label: &str, counter: &str) -> String {
    format!("sum by ({label}) (rate({counter}[$__rate_interval]))")
}

/// A percentile of an interval.
fn bucketed(quantile: &str, name: &str) -> String {
    format!("histogram_quantile({quantile}, {})", by("le", &format!("gake_{name}_seconds_bucket")))
}

/// A percentile of the run so far.
fn exact(quantile: &str) -> String {
    format!("max(gake_response_quantile_seconds{{quantile=\"{quantile}\"}})")
}

fn total(outcome: &str) -> String {
    format!("sum(gake_requests_total{{outcome=\"{outcome}\"}})")
}

pub(super) fn panels() -> Vec<DashboardPanel> {
    let mut panels = of_runs();
    panels.extend(over_time());
    panels
}

fn of_runs() -> Vec<DashboardPanel> {
    vec![
        DashboardPanel::new(Visualization::Stat, "Verdict", "short", "Of the last finished run.")
            .width(6)
            .texts(VERDICTS)
            .query("verdict", "max(gake_run_validity)"),
        DashboardPanel::new(
            Visualization::Stat,
            "Objectives",
            "short",
            "Of the last finished run.",
        )
        .width(6)
        .query("met", "sum(gake_run_objectives{state=\"met\"})")
        .query("missed", "sum(gake_run_objectives{state=\"missed\"})"),
        DashboardPanel::new(
            Visualization::Stat,
            "Requests of the run",
            "short",
            "So far: sent = ok + failed + unfinished.",
        )
        .query("sent", "sum(gake_requests_total{outcome!=\"dropped\"})")
        .query("ok", total("ok"))
        .query("failed", total("failed"))
        .query("unfinished", total("unfinished"))
        .query("dropped", total("dropped")),
        DashboardPanel::new(
            Visualization::Stat,
            "Response time of the run",
            "s",
            "Percentiles of the run so far, without bucket error.",
        )
        .width(24)
        .query("p50", exact("0.5"))
        .query("p90", exact("0.9"))
        .query("p95", exact("0.95"))
        .query("p99", exact("0.99"))
        .query("p99.9", exact("0.999")),
    ]
}

fn over_time() -> Vec<DashboardPanel> {
    let ended = "gake_requests_total{outcome=~\"ok|failed\"}";
    vec![
        DashboardPanel::new(
            Visualization::Series,
            "Requests a second",
            "reqps",
            "Asked: planned. Completed: with a response or an error. \
             Goodput: with the expected response.",
        )
        .query("asked", "sum(gake_asked_rate)")
        .query("completed", rate(ended))
        .query("goodput", rate("gake_requests_total{outcome=\"ok\"}"))
        .query("failed", rate("gake_requests_total{outcome=\"failed\"}"))
        .query("dropped", rate("gake_requests_total{outcome=\"dropped\"}")),
        DashboardPanel::new(
            Visualization::Series,
            "Response time",
            "s",
            "Percentiles over time, from histograms: exact to a bucket (1, 2, 5, 10 ...).",
        )
        .query("p50", bucketed("0.5", "response"))
        .query("p90", bucketed("0.9", "response"))
        .query("p99", bucketed("0.99", "response")),
        DashboardPanel::new(
            Visualization::Series,
            "Faults",
            "reqps",
            "Requests without a response, by fault.",
        )
        .query("{{fault}}", by("fault", "gake_faults_total")),
        DashboardPanel::new(Visualization::Series, "Responses", "reqps", "By status.")
            .query("{{status}}", by("status", "gake_responses_total")),
        DashboardPanel::new(
            Visualization::Series,
            "Service time",
            "s",
            "From the first byte written to the last read.",
        )
        .query("p50", bucketed("0.5", "service"))
        .query("p99", bucketed("0.99", "service")),
        DashboardPanel::new(
            Visualization::Series,
            "Lateness",
            "s",
            "The generator's own delay, from due to fired.",
        )
        .query("p99", bucketed("0.99", "lateness")),
        DashboardPanel::new(
            Visualization::Series,
            "In flight and open",
            "short",
            "Requests in flight; connections open.",
        )
        .query("in flight", "sum(gake_in_flight)")
        .query("connections", "sum(gake_connections)"),
        DashboardPanel::new(
            Visualization::Series,
            "Bytes a second",
            "Bps",
            "Heads included, before TLS.",
        )
        .query("in", rate("gake_received_bytes_total"))
        .query("out", rate("gake_sent_bytes_total")),
        DashboardPanel::new(
            Visualization::Series,
            "The target",
            "short",
            "Levels from `--watch` and the machine.",
        )
        .width(24)
        .query("{{level}} ({{source}})", "gake_target"),
    ]
}
