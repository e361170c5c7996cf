//! Summaries compared with k6 1.8.1: `data/summaries.json` has exports and texts of some scripts.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::collections::BTreeMap;
use std::time::Duration;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, SeriesTable, Tags};
use gake_k6::options::{K6Options, Tiers};
use gake_k6::summary::{
    SummaryCheck, SummaryData, SummaryGroup, SummaryInput, SummaryMetric, SummaryMode,
    SummaryScope, export, summary_data,
};
use gake_k6::threshold::{ThresholdResult, Thresholds};
use serde_json::{Map, Value, json};

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    mode: String,
    options: Value,
    args: Vec<String>,
    export: Value,
    text: String,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("data/summaries.json")).unwrap()
}

const KINDS: [(&str, MetricKind, MetricUnit); 12] = [
    ("my_trend", MetricKind::Trend, MetricUnit::Number),
    ("my_time", MetricKind::Trend, MetricUnit::Time),
    ("my_rate", MetricKind::Rate, MetricUnit::Number),
    ("my_gauge", MetricKind::Gauge, MetricUnit::Number),
    ("vus", MetricKind::Gauge, MetricUnit::Number),
    ("vus_max", MetricKind::Gauge, MetricUnit::Number),
    ("checks", MetricKind::Rate, MetricUnit::Number),
    ("http_req_failed", MetricKind::Rate, MetricUnit::Number),
    ("data_sent", MetricKind::Counter, MetricUnit::Bytes),
    ("data_received", MetricKind::Counter, MetricUnit::Bytes),
    ("iteration_duration", MetricKind::Trend, MetricUnit::Time),
    ("group_duration", MetricKind::Trend, MetricUnit::Time),
];

fn kind(metric: &str) -> (MetricKind, MetricUnit) {
    let name = metric.split('{').next().unwrap();
    let known = KINDS.iter().find(|known| known.0 == name).map(|known| (known.1, known.2));
    let other = match name.starts_with("http_req_") {
        true => (MetricKind::Trend, MetricUnit::Time),
        false => (MetricKind::Counter, MetricUnit::Number),
    };
    known.unwrap_or(other)
}

impl Case {
    fn flag(&self, name: &str) -> Option<String> {
        let at = self.args.iter().position(|arg| arg == name)?;
        Some(self.args[at + 1].clone())
    }

    fn options(&self) -> K6Options {
        let mut flags = K6Options::default();
        for (flag, key) in [
            ("--summary-trend-stats", "summaryTrendStats"),
            ("--summary-time-unit", "summaryTimeUnit"),
        ] {
            if let Some(text) = self.flag(flag) {
                flags.set_text(key, &text).unwrap();
            }
        }
        let script = K6Options::read(&self.options).unwrap().options;
        Tiers { script, flags, ..Tiers::default() }.consolidate().unwrap().options
    }

    /// The summary of the export.
    fn data(&self) -> SummaryData {
        let options = self.options();
        let metrics = self.export["metrics"].as_object().unwrap();
        let iterations = |name: &str| metrics["iterations"][name].as_f64().unwrap();
        let mut sorted: BTreeMap<_, _> = metrics.iter().collect();
        let total = SummaryScope {
            metrics: std::mem::take(&mut sorted)
                .into_iter()
                .map(|(name, figures)| self.metric(name, figures, &options))
                .collect(),
            checks: metrics.contains_key("checks").then(|| all_checks(&self.export["root_group"])),
            ..SummaryScope::default()
        };
        SummaryData {
            total,
            root_group: group(&self.export["root_group"]),
            trend_stats: options.summary_trend_stats.clone().unwrap(),
            time_unit: options.summary_time_unit.clone(),
            duration_ms: iterations("count") / iterations("rate") * 1e3,
            ..SummaryData::default()
        }
    }

    fn metric(&self, name: &str, figures: &Value, options: &K6Options) -> SummaryMetric {
        let (kind, contains) = kind(name);
        let values = figures.as_object().unwrap().iter().filter_map(|(name, value)| {
            let is_share = kind == MetricKind::Rate && name == "value";
            let name = if is_share { "rate" } else { name };
            Some((name.to_owned(), value.as_f64()?))
        });
        let asked = options.thresholds.iter().flatten().find(|asked| asked.0 == name);
        let thresholds = asked.into_iter().flat_map(|asked| asked.1).map(|asked| {
            let source = asked.expression.clone();
            let failed = figures["thresholds"][&source].as_bool().unwrap();
            let aggregation = source.split(['<', '>', '=']).next().unwrap().to_owned();
            // Of percentiles that are not shown, one value is between the largest two.
            let figure = figures["max"].as_f64().unwrap_or(0.0);
            ThresholdResult { source, aggregation, figure, ok: !failed }
        });
        SummaryMetric {
            name: name.to_owned(),
            kind,
            contains,
            values: values.collect(),
            thresholds: thresholds.collect(),
        }
    }
}

/// Checks in the order in which the scripts make them.
const CHECKS_MADE: [&str; 9] = ["ok", "not ok", "a", "top", "deep", "fine", "x", "y", "b"];

fn checks(group: &Value) -> Vec<SummaryCheck> {
    let mut checks: Vec<SummaryCheck> = group["checks"]
        .as_object()
        .unwrap()
        .values()
        .map(|check| SummaryCheck {
            name: check["name"].as_str().unwrap().to_owned(),
            path: check["path"].as_str().unwrap().to_owned(),
            passes: check["passes"].as_u64().unwrap(),
            fails: check["fails"].as_u64().unwrap(),
        })
        .collect();
    checks.sort_by_key(|check| CHECKS_MADE.iter().position(|name| *name == check.name));
    checks
}

fn all_checks(group: &Value) -> Vec<SummaryCheck> {
    let inner = group["groups"].as_object().unwrap().values().flat_map(all_checks);
    checks(group).into_iter().chain(inner).collect()
}

fn group(group_data: &Value) -> SummaryGroup {
    SummaryGroup {
        name: group_data["name"].as_str().unwrap().to_owned(),
        path: group_data["path"].as_str().unwrap().to_owned(),
        checks: checks(group_data),
        groups: group_data["groups"].as_object().unwrap().values().map(group).collect(),
    }
}

/// All lines but the percentile that k6 does not export.
fn comparable(text: &str) -> Vec<&str> {
    text.split('\n').filter(|line| !line.contains("p(99.5)=")).collect()
}

#[test]
fn compact_and_legacy_summaries_are_those_of_k6_to_the_byte() {
    // Which of two scenarios made the first check is chance.
    for case in cases().iter().filter(|case| case.mode != "full" && case.name != "scenarios") {
        let text = case.data().text(SummaryMode::parse(&case.mode).unwrap());
        let (made, expected) = (comparable(&text), comparable(&case.text));
        assert_eq!(made, expected, "{} {}:\n{text}", case.name, case.mode);
    }
}

/// The samples of a script, with k6's tags.
struct Recorded {
    metrics: Registry,
    series: SeriesTable,
}

impl Recorded {
    fn new() -> Self {
        Self { metrics: Registry::default(), series: SeriesTable::default() }
    }

    fn add(&mut self, metric: &str, tags: &[(&str, &str)], value: f64) {
        let (kind, unit) = kind(metric);
        let definition = Definition { name: metric.to_owned(), kind, unit };
        let metric = self.metrics.define(definition).unwrap();
        let series = self.series.intern(&metric, &Tags::new(tags.iter().copied()));
        self.series.add(series, value, 0);
    }

    fn data(&self, case: &Case) -> SummaryData {
        let options = case.options();
        let iterations = &case.export["metrics"]["iterations"];
        let [count, rate] = ["count", "rate"].map(|name| iterations[name].as_f64().unwrap());
        let elapsed = Duration::from_secs_f64(count / rate);
        let thresholds = options.thresholds.clone().unwrap_or_default();
        let thresholds = Thresholds::new(&thresholds, &self.metrics).unwrap();
        let results = thresholds.judge(&[&self.series], elapsed, true);
        summary_data(&SummaryInput {
            series: &self.series,
            metrics: &self.metrics,
            thresholds: &thresholds,
            results: &results,
            options: &options,
            elapsed,
            setup_data: None,
            no_color: true,
            is_stdout_terminal: false,
            is_stderr_terminal: false,
        })
    }
}

/// The samples of the script of the case "groups".
fn of_groups(iteration_ms: f64) -> Recorded {
    let mut recorded = Recorded::new();
    let mut add = |metric: &str, group: &str, extra: &[(&str, &str)], value: f64| {
        let mut tags = vec![("scenario", "default"), ("group", group)];
        tags.extend_from_slice(extra);
        recorded.add(metric, &tags, value);
    };
    add("checks", "", &[("check", "top")], 1.0);
    add("my_trend", "::g::h", &[], 3.0);
    add("checks", "::g::h::i", &[("check", "deep")], 0.0);
    add("checks", "::g::h::i", &[("check", "fine")], 1.0);
    add("my_trend", "::g", &[("a", "b")], 4.0);
    add("my_counter", "::g", &[], 2.0);
    add("checks", "::z", &[("check", "x")], 0.0);
    add("my_rate", "::z", &[], 1.0);
    add("my_gauge", "::z", &[], 3.0);
    for (group, ns) in [("::g::h::i", 1e5), ("::g::h", 2e5), ("::g", 3e5), ("::z", 1e5)] {
        add("group_duration", group, &[], ns);
    }
    add("iteration_duration", "", &[], iteration_ms * 1e6);
    add("iterations", "", &[], 1.0);
    add("data_sent", "", &[], 0.0);
    add("data_received", "", &[], 0.0);
    recorded
}

#[test]
fn groups_are_shown_as_k6_shows_them() {
    for case in cases().iter().filter(|case| case.name == "groups" && case.mode != "legacy") {
        let lasted = case.export["metrics"]["iteration_duration"]["avg"].as_f64().unwrap();
        let text = of_groups(lasted).data(case).text(SummaryMode::parse(&case.mode).unwrap());
        assert_eq!(text, case.text, "{}:\n{text}", case.mode);
    }
}

/// Lines without durations of iterations and their alignment, sorted: the order of two scenarios is
/// random.
fn without_times(text: &str) -> Vec<String> {
    let lines = text.split('\n').filter(|line| !line.contains("iteration_duration"));
    let mut lines: Vec<_> =
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    lines
}

#[test]
fn scenarios_are_shown_as_k6_shows_them() {
    let mut recorded = Recorded::new();
    for (scenario, metric, tags, value) in [
        ("one", "my_trend", vec![], 3.0),
        ("one", "checks", vec![("check", "x")], 1.0),
        ("two", "my_trend", vec![], 9.0),
        ("two", "my_trend", vec![], 9.0),
        ("two", "my_counter", vec![("group", "::gg")], 2.0),
        ("two", "checks", vec![("check", "y"), ("group", "::gg")], 0.0),
        ("two", "checks", vec![("check", "y"), ("group", "::gg")], 0.0),
        ("one", "iterations", vec![], 1.0),
        ("two", "iterations", vec![], 2.0),
        ("one", "iteration_duration", vec![], 1e6),
        ("two", "iteration_duration", vec![], 1e6),
        ("one", "data_sent", vec![], 0.0),
        ("two", "data_sent", vec![], 0.0),
        ("one", "data_received", vec![], 0.0),
        ("two", "data_received", vec![], 0.0),
    ] {
        let mut all = vec![("scenario", scenario)];
        if !tags.iter().any(|tag| tag.0 == "group") {
            all.push(("group", ""));
        }
        all.extend(tags);
        recorded.add(metric, &all, value);
    }
    for case in cases().iter().filter(|case| case.name == "scenarios" && case.mode != "legacy") {
        let text = recorded.data(case).text(SummaryMode::parse(&case.mode).unwrap());
        assert_eq!(without_times(&text), without_times(&case.text), "{}:\n{text}", case.mode);
    }
}

#[test]
fn scripts_are_given_the_data_of_k6() {
    let case = cases().into_iter().find(|case| case.name == "groups").unwrap();
    let data = of_groups(0.25).data(&case);
    let given: Value = serde_json::from_str(&data.for_script()).unwrap();
    assert_eq!(given["metrics"]["my_trend{a:b}"]["values"]["avg"], json!(4));
    assert_eq!(given["metrics"]["my_trend{a:b}"]["thresholds"], json!({ "avg>0": { "ok": true } }));
    let rate = json!({
        "type": "rate", "contains": "default", "values": { "rate": 0.5, "passes": 2, "fails": 2 },
    });
    assert_eq!(given["metrics"]["checks"], rate);
    assert_eq!(given["root_group"]["groups"][0]["groups"][0]["name"], json!("h"));
    assert_eq!(given["root_group"]["checks"][0]["path"], json!("::top"));
    assert_eq!(given["options"]["noColor"], json!(true));
    assert_eq!(given.get("setup_data"), None, "undefined without a setup");
    // Equal to k6's export, except for times.
    let exported: Value = serde_json::from_str(&export(&data.for_script()).unwrap()).unwrap();
    assert_eq!(exported["root_group"], case.export["root_group"]);
    let without = |metrics: &Value| -> Map<String, Value> {
        let metrics = metrics.as_object().unwrap().iter();
        let metrics = metrics.filter(|metric| !metric.0.ends_with("_duration"));
        metrics.map(|(name, figures)| (name.clone(), without_rate(figures))).collect()
    };
    let names = |metrics: &Value| metrics.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&exported["metrics"]), names(&case.export["metrics"]));
    assert_eq!(without(&exported["metrics"]), without(&case.export["metrics"]));
}

/// Figures without rates.
fn without_rate(figures: &Value) -> Value {
    let figures = figures.as_object().unwrap().iter();
    figures
        .filter(|figure| figure.0 != "rate")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

/// Lines that k6 printed on a terminal.
#[test]
fn a_terminal_gets_colours() {
    let mut recorded = Recorded::new();
    recorded.add("checks", &[("check", "a"), ("group", "")], 1.0);
    recorded.add("checks", &[("check", "b"), ("group", "")], 0.0);
    recorded.add("my_gauge", &[], 3.0);
    recorded.add("my_trend", &[], 1.0);
    recorded.add("my_trend", &[("q", "r")], 4.0);
    let mut case = cases().remove(0);
    case.options = json!({
        "thresholds": { "my_trend": ["avg<0"], "my_trend{q:r}": ["avg>0"] },
        "summaryTrendStats": ["avg", "p(95)"],
    });
    let mut data = recorded.data(&case);
    (data.no_color, data.is_stdout_terminal) = (false, true);
    let compact = data.text(SummaryMode::Compact).replace('\x1b', "^");
    for line in [
        "  █ ^[1mTHRESHOLDS^[0m ",
        "    ^[31m✗^[0m ^[37m'avg<0'^[0m ^[37mavg^[0m=^[36m2.5^[0m",
        "      ^[32m✓^[0m ^[37m'avg>0'^[0m ^[37mavg^[0m=^[36m4^[0m",
        "    checks_failed^[2;37m......:^[0m ^[36m50.00%^[0m ^[2;36m1 out of 2^[0m",
        "    ^[32m✓ a^[0m",
        "    ^[31m✗ b^[0m",
        "      ^[31m↳  0% — ✓ 0 / ✗ 1^[0m",
        "    ^[1mCUSTOM^[0m",
        "    my_gauge^[2;37m....:^[0m ^[36m3^[0m ^[2;36mmin=3^[0m ^[2;36mmax=3^[0m",
        "    my_trend^[2;37m....:^[0m avg=^[36m2.5^[0m p(95)=^[36m3.85^[0m",
        "      { q:r }^[2;37m...:^[0m avg=^[36m4^[0m   p(95)=^[36m4^[0m   ",
    ] {
        assert!(compact.lines().any(|one| one == line), "{line} of {compact}");
    }
    let legacy = data.text(SummaryMode::Legacy).replace('\x1b', "^");
    for line in [
        "^[32m     ✓ a^[0m",
        "^[31m     ✗ b",
        "      ↳  0% — ✓ 0 / ✗ 1^[0m",
        "     my_gauge^[2m....:^[0m ^[36m3^[0m      ^[36;2mmin=3^[0m      ^[36;2mmax=3^[0m",
        "   ^[31m✗^[0m my_trend^[2m....:^[0m avg=^[36m2.5^[0m p(95)=^[36m3.85^[0m",
        "     ^[32m✓^[0m { q:r }^[2m...:^[0m avg=^[36m4^[0m   p(95)=^[36m4^[0m   ",
    ] {
        assert!(legacy.lines().any(|one| one == line), "{line} of {legacy}");
    }
}
