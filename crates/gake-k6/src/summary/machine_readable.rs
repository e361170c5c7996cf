//! The summary of `--new-machine-readable-summary`: a list of metrics with typed values.

use gake_core::metric::{CHECKS, MetricKind};

use super::json::number;
use super::ordered::OrderedJson;
use super::text::by_name;
use super::{SummaryCheck, SummaryData, SummaryMetric};
use crate::out::timestamp;
use crate::values::contains;

/// The version of the form.
const SCHEMA: &str = "1.0.0";

/// Metrics that no section of the summary has.
const OMITTED: [&str; 2] = [CHECKS, "group_duration"];

/// What such a summary says about the run besides its figures.
#[derive(Debug, Clone, Copy)]
pub struct SummaryOrigin<'a> {
    /// The text of the script, which k6 writes where its name belongs.
    pub script: &'a str,
    /// The version of k6.
    pub version: &'a str,
    /// When it was made, in Unix nanoseconds.
    pub unix_ns: i128,
}

impl SummaryData {
    /// The summary as JSON: the argument of `handleSummary` and, after the call, the content of
    /// `--summary-export`.
    #[must_use]
    pub fn machine_readable(&self, origin: SummaryOrigin<'_>) -> String {
        let metrics = self.total.metrics.iter();
        let metrics = metrics.filter(|metric| !OMITTED.contains(&metric.parts().0));
        let checks = self.total.checks.as_deref().map(|checks| self.checks_json(checks));
        let results = [
            ("checks", checks.unwrap_or_else(|| OrderedJson::object([]))),
            ("metrics", OrderedJson::List(metrics.map(metric_json).collect())),
        ];
        let summary = OrderedJson::object([
            (
                "config",
                OrderedJson::object([
                    ("duration", number(self.duration_ms / 1e3)),
                    ("execution", OrderedJson::text("local")),
                    ("script", OrderedJson::text(origin.script)),
                ]),
            ),
            (
                "metadata",
                OrderedJson::object([
                    ("generated_at", OrderedJson::Text(timestamp(origin.unix_ns))),
                    ("k6_version", OrderedJson::text(origin.version)),
                ]),
            ),
            ("results", OrderedJson::object(results)),
            ("version", OrderedJson::text(SCHEMA)),
        ]);
        // Cannot fail: keys are strings.
        serde_json::to_string(&summary).unwrap_or_default()
    }

    /// The totals of checks as metrics, and each check.
    fn checks_json(&self, checks: &[SummaryCheck]) -> OrderedJson {
        let all = self.total.metrics.iter().find(|metric| metric.name == CHECKS);
        let count = |name| all.and_then(|metric| metric.value(name)).unwrap_or(0.0);
        let (passes, fails) = (count("passes"), count("fails"));
        let total = passes + fails;
        let share = |name: &str, matches: f64| {
            let rate = if total > 0.0 { matches / total } else { 0.0 };
            member(name, "rate", "default", rate_json(matches, rate, total))
        };
        let count = OrderedJson::object([("count", number(total))]);
        let metrics = vec![
            member("checks_total", "counter", "default", count),
            share("checks_failed", fails),
            share("checks_succeeded", passes),
        ];
        let checks = by_name(checks);
        let results = checks.iter().map(|check| {
            OrderedJson::object([
                ("fails", OrderedJson::Number(check.fails.into())),
                ("name", OrderedJson::text(&check.name)),
                ("passes", OrderedJson::Number(check.passes.into())),
            ])
        });
        OrderedJson::object([
            ("metrics", OrderedJson::List(metrics)),
            ("results", OrderedJson::List(results.collect())),
        ])
    }
}

/// The content of `--summary-export` for such a summary after the call of `handleSummary`; `None`
/// if it is not JSON.
#[must_use]
pub fn export_machine_readable(data: &str) -> Option<String> {
    serde_json::from_str::<OrderedJson>(data).ok().map(|data| data.pretty())
}

fn member(name: &str, kind: &str, contains: &str, values: OrderedJson) -> OrderedJson {
    OrderedJson::object([
        ("contains", OrderedJson::text(contains)),
        ("name", OrderedJson::text(name)),
        ("type", OrderedJson::text(kind)),
        ("values", values),
    ])
}

fn rate_json(matches: f64, rate: f64, total: f64) -> OrderedJson {
    OrderedJson::object([
        ("matches", number(matches)),
        ("rate", number(rate)),
        ("total", number(total)),
    ])
}

fn metric_json(metric: &SummaryMetric) -> OrderedJson {
    let value = |name| metric.value(name).unwrap_or(0.0);
    let values = match metric.kind {
        MetricKind::Counter => OrderedJson::object([("count", number(value("count")))]),
        MetricKind::Gauge => {
            OrderedJson::object(["max", "min", "value"].map(|name| (name, number(value(name)))))
        }
        MetricKind::Rate => {
            let (passes, fails) = (value("passes"), value("fails"));
            rate_json(passes, value("rate"), passes + fails)
        }
        // Other statistics than these have no place in the form.
        MetricKind::Trend => {
            let named = [
                ("avg", "avg"),
                ("max", "max"),
                ("med", "med"),
                ("min", "min"),
                ("p90", "p(90)"),
                ("p95", "p(95)"),
            ];
            let shown = |(name, stat)| Some((name, number(metric.value(stat)?)));
            OrderedJson::object(named.into_iter().filter_map(shown))
        }
    };
    member(&metric.name, metric.kind.name(), contains(metric.contains), values)
}
