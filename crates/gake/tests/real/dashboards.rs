//! Dashboards: every query of every panel, asked of the real database, gives the run's figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::sinks::{Server, fetch};
use crate::support::*;

/// The numbers that a query returns, by the name of the series in the response.
type Answer = BTreeMap<String, Vec<f64>>;

/// What the queries of a dashboard give, by panel and legend.
struct Answers(BTreeMap<(String, String), Answer>);

impl Answers {
    fn of(source: &str, ask: impl Fn(&Value) -> Answer) -> Self {
        let printed = ran(&["dashboard", "grafana", "--source", source]);
        assert_eq!(printed.code, Some(0), "{printed:?}");
        let dashboard: Value = serde_json::from_str(&printed.stdout).unwrap();
        let mut answers = BTreeMap::new();
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            for target in panel["targets"].as_array().unwrap() {
                let legend = target["alias"].as_str().or(target["legendFormat"].as_str()).unwrap();
                let answer = ask(target);
                assert!(!answer.is_empty(), "{title}: nothing for {target}");
                answers.insert((title.to_owned(), legend.to_owned()), answer);
            }
        }
        Self(answers)
    }

    fn at(&self, title: &str, legend: &str) -> &Answer {
        &self.0[&(title.to_owned(), legend.to_owned())]
    }

    /// The only number of a query.
    fn one(&self, title: &str, legend: &str) -> f64 {
        let answer = self.at(title, legend);
        let numbers: Vec<f64> = answer.values().flatten().copied().collect();
        assert_eq!(numbers.len(), 1, "{title}, {legend}: {answer:?}");
        numbers[0]
    }

    fn sum(&self, title: &str, legend: &str) -> f64 {
        self.at(title, legend).values().flatten().sum()
    }

    /// What both dashboards say of a whole run.
    fn check_whole(&self, run: &Json, times_in: f64) {
        for field in ["sent", "ok", "failed", "unfinished", "dropped"] {
            let reported = self.one("Requests of the run", field);
            assert_eq!(reported as u64, run.count(&format!("requests.{field}")), "{field}");
        }
        for name in ["p50", "p90", "p95", "p99", "p99.9"] {
            let reported = self.one("Response time of the run", name);
            let own = run.at("latency_ns.response")[name].as_f64().unwrap() * 1e-9 / times_in;
            assert!((reported / own - 1.0).abs() < 1e-6, "{name}: {reported} {own}");
        }
        let level = ["valid", "suspect", "invalid"]
            .iter()
            .position(|word| *word == run.text("verdict.validity"));
        assert_eq!(Some(self.one("Verdict", "verdict") as usize), level, "{}", run.at("verdict"));
        let objectives = ["met", "missed"].map(|state| self.one("Objectives", state) as u64);
        assert_eq!(objectives, [1, 1]);
    }
}

/// A run with ok responses, failing statuses and time-outs, over four seconds.
fn run(folder: &Path, sink: &str) -> Json {
    let lab = lab();
    let targets = folder.join("targets.http");
    let routes =
        ["/fast", "/status/503", "/hang"].map(|route| format!("GET {}\n", url(&lab, route)));
    fs::write(&targets, routes.join("\n")).unwrap();
    let flags = "-r 90 -d 4s --timeout 300ms --slo p50<10s --slo p99<1us -o json --sink";
    let args = [&["run", targets.to_str().unwrap()], &*words(flags), &[sink]].concat();
    let ran = ran(&args);
    // Objectives are missed; a busy machine makes it invalid.
    assert!(matches!(ran.code, Some(99 | 3)), "{ran:?}");
    assert!(!ran.stderr.contains("missing"), "{ran:?}");
    lab.shutdown();
    ran.json()
}

#[test]
fn influxdbs_panels_give_the_figures_of_the_run() {
    let influxdb = Server::influxdb();
    let folder = tempfile::tempdir().unwrap();
    let json = run(folder.path(), &format!("influxdb=http://127.0.0.1:{}/gake", influxdb.port));
    let url = format!("http://127.0.0.1:{}/query", influxdb.port);
    let answers = Answers::of("influxdb", |target| {
        let query = target["query"].as_str().unwrap();
        let query = query
            .replace("$timeFilter", "time > now() - 10m")
            .replace("$__interval_ms", "1000")
            .replace("$__interval", "1s");
        let answer = fetch(&url, &["db=gake", &format!("q={query}")]).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let series = answer["results"][0]["series"].as_array().cloned().unwrap_or_default();
        let numbers = |one: &Value| {
            let rows = one["values"].as_array().unwrap().iter();
            rows.filter_map(|row| row[1].as_f64()).collect()
        };
        series.iter().map(|one| (one["tags"].to_string(), numbers(one))).collect()
    });
    answers.check_whole(&json, 1e-3);
    // A part of a second holds the row of a second: the sums equal the run's.
    for (legend, field) in [("sent", "sent"), ("goodput", "ok"), ("failed", "failed")] {
        let sum = answers.sum("Requests a second", legend).round();
        assert_eq!(sum as u64, json.count(&format!("requests.{field}")), "{legend}");
    }
    assert_eq!(answers.sum("Requests a second", "asked").round(), 360.0);
    let timeouts = answers.at("Faults", "$tag_fault");
    assert_eq!(timeouts.len(), 1, "{timeouts:?}");
    let faults: u64 =
        json.at("faults").as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(timeouts.values().flatten().sum::<f64>().round() as u64, faults);
    for status in ["200", "503"] {
        let reported =
            &answers.at("Responses", "$tag_status")[&format!("{{\"status\":\"{status}\"}}")];
        assert_eq!(
            reported.iter().sum::<f64>().round() as u64,
            json.count(&format!("status.{status}"))
        );
    }
    let seconds = &answers.at("Response time", "max")["null"];
    let max = seconds.iter().copied().fold(0.0, f64::max);
    assert!((max * 1e6 / json.number("latency_ns.response.max") - 1.0).abs() < 1e-6, "{max}");
}

#[test]
fn prometheus_panels_give_the_figures_of_the_run() {
    let prometheus = Server::prometheus();
    let folder = tempfile::tempdir().unwrap();
    let sink = format!("prometheus-rw=http://127.0.0.1:{}/api/v1/write", prometheus.port);
    let json = run(folder.path(), &sink);
    let url = format!("http://127.0.0.1:{}/api/v1/query", prometheus.port);
    let ask = |query: &str| -> Answer {
        let query = query.replace("$__rate_interval", "1m");
        let answer = fetch(&url, &[&format!("query={query}")]).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let series = answer["data"]["result"].as_array().unwrap();
        let number = |one: &Value| one["value"][1].as_str().unwrap().parse().unwrap();
        series.iter().map(|one| (one["metric"].to_string(), vec![number(one)])).collect()
    };
    // The last figures are of an instant behind the end.
    eventually("the end is there", || !ask("gake_run_validity").is_empty());
    let answers = Answers::of("prometheus", |target| ask(target["expr"].as_str().unwrap()));
    answers.check_whole(&json, 1.0);
    // Prometheus extends what it saw by up to about a sample at each end: of five or more.
    for (legend, fields) in [("goodput", &["ok"][..]), ("completed", &["ok", "failed"])] {
        let reported = answers.one("Requests a second", legend) * 60.0;
        let own: u64 = fields.iter().map(|field| json.count(&format!("requests.{field}"))).sum();
        let share = reported / own as f64;
        assert!((0.99..1.6).contains(&share), "{legend}: {reported} of {own}");
    }
    let timeouts = answers.at("Faults", "{{fault}}");
    assert!(timeouts.len() == 1 && answers.sum("Faults", "{{fault}}") > 0.0, "{timeouts:?}");
    assert_eq!(answers.at("Responses", "{{status}}").len(), 2);
    // A percentile of a histogram lies in the bucket that holds the true one.
    let p50 = answers.one("Response time", "p50");
    let own = json.number("latency_ns.response.p50") / 1e9;
    let bounds = [0.0, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5];
    let at = bounds.iter().rposition(|bound| *bound < own).unwrap();
    assert!((bounds[at]..=bounds[at + 1]).contains(&p50), "{p50} {own}");
}
