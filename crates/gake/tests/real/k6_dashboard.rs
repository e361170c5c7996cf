//! Grafana dashboard 2587, which k6's users watch: the query of every panel gives from gake's points
//! what it gives from k6's.
//!
//! What k6 1.8.1 gave is written down here; with `GAKE_K6_LIVE=PATH` the real one runs beside
//! (`cargo xtask k6 --live`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::sinks::{Server, fetch};
use crate::support::*;

/// Users, iterations, and the shortest response in milliseconds.
const USERS: f64 = 2.0;
const ITERATIONS: u64 = 30;
const SHORTEST: f64 = 50.0;

/// Every tenth iteration counts in `errors`, which 2587 has a panel for.
const SCRIPT: &str = "
import http from 'k6/http';
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';
const errors = new Counter('errors');
export const options = { vus: 2, iterations: 30 };
export default () => {
  const isBad = exec.scenario.iterationInTest % 10 === 0;
  const answer = http.get(`${__ENV.URL}/delay/50ms`);
  check(answer, { 'is good': () => !isBad, 'is 200': (one) => one.status === 200 });
  if (isBad) errors.add(1);
  sleep(0.25);
};
";

/// Values that break careless writers of lines, another one in each iteration.
const HOSTILE: &str = r#"
import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
const mine = new Counter('mine');
const hostile = 'a,b=c d\n"e",injected=1 2\ninjected value=1\r\ninjected,x=y value=1 \\';
export const options = { iterations: 20, tags: { all: hostile } };
export default () => {
  const answer = http.get(`${__ENV.URL}/fast`, { tags: { name: hostile, [hostile]: 'key' } });
  check(answer, { [hostile]: true });
  mine.add(1, { own: `${hostile}${__ITER}\\`, surrogate: '\ud800', empty: '', nul: 'a\u0000b' });
};
"#;

/// What the dashboard is repeated for.
const MEASUREMENTS: [&str; 7] = [
    "http_req_duration",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_looking_up",
    "http_req_receiving",
    "http_req_sending",
    "http_req_waiting",
];

/// The numbers that a query gives, by the tags of its series.
type Answer = BTreeMap<String, Vec<f64>>;

/// A database with the points of a run.
struct Points<'a> {
    influxdb: &'a Server,
    database: &'a str,
}

impl Points<'_> {
    fn ask(&self, query: &str) -> Answer {
        let query = query.replace("$timeFilter", "time > now() - 10m").replace("$__interval", "1s");
        let url = format!("http://127.0.0.1:{}/query", self.influxdb.port);
        let form = [format!("db={}", self.database), format!("q={query}")];
        let answer = fetch(&url, &form.each_ref().map(String::as_str)).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let numbers = |series: &Value| {
            let rows = series["values"].as_array().unwrap().iter();
            rows.filter_map(|row| row[1].as_f64()).collect()
        };
        let series = answer["results"][0]["series"].as_array().cloned().unwrap_or_default();
        series.iter().map(|one| (one["tags"].to_string(), numbers(one))).collect()
    }

    /// A query without tags: its numbers.
    fn numbers(&self, query: &str) -> Vec<f64> {
        self.ask(query).into_values().flatten().collect()
    }

    fn one(&self, query: &str) -> Option<f64> {
        let numbers = self.numbers(query);
        assert!(numbers.len() <= 1, "{query}: {numbers:?}");
        numbers.first().copied()
    }

    /// The panel of a figure of a measurement.
    fn figure(&self, figure: &str, measurement: &str) -> Option<f64> {
        self.one(&format!("SELECT {figure} FROM {measurement} WHERE $timeFilter"))
    }

    /// The panels of the first row, and how many points the heat map of each measurement has.
    fn counts(&self) -> BTreeMap<String, f64> {
        let by_time = "WHERE $timeFilter GROUP BY time($__interval)";
        let mut counts = BTreeMap::new();
        let users =
            self.numbers(&format!("SELECT mean(\"value\") FROM \"vus\" {by_time} fill(none)"));
        let most = users.iter().copied().fold(0.0, f64::max);
        counts.insert("Virtual Users".to_owned(), most);
        let requests =
            self.numbers(&format!("SELECT sum(\"value\") FROM \"http_reqs\" {by_time} fill(null)"));
        counts.insert("Requests per Second".to_owned(), requests.iter().sum());
        let errors =
            self.numbers(&format!("SELECT count(\"value\") FROM \"errors\" {by_time} fill(none)"));
        counts.insert("Errors Per Second".to_owned(), errors.iter().sum());
        let checks =
            format!("SELECT sum(\"value\") FROM \"checks\" {by_time}, \"check\" fill(none)");
        for (tags, numbers) in self.ask(&checks) {
            counts.insert(format!("Checks Per Second {tags}"), numbers.iter().sum());
        }
        for measurement in MEASUREMENTS {
            let points =
                self.numbers(&format!("SELECT \"value\" FROM {measurement} WHERE $timeFilter"));
            counts.insert(measurement.to_owned(), points.len() as f64);
        }
        counts
    }

    /// The names of all measurements.
    fn measurements(&self) -> Vec<String> {
        let url = format!("http://127.0.0.1:{}/query", self.influxdb.port);
        let database = format!("db={}", self.database);
        let answer = fetch(&url, &[&database, "q=SHOW MEASUREMENTS"]).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["results"][0]["series"][0]["values"].as_array().unwrap();
        rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect()
    }

    /// That the panels of time agree with each other and with a time that no response can beat.
    fn check_times(&self, name: &str) {
        // The time until the last byte of a request was seen to be written is not waited.
        for (measurement, shortest) in [("http_req_duration", SHORTEST), ("http_req_waiting", 0.0)]
        {
            let of = |figure: &str| self.figure(figure, measurement).unwrap();
            let min =
                format!("SELECT min(\"value\") FROM {measurement} WHERE $timeFilter and value > 0");
            let figures = [
                self.one(&min).unwrap(),
                of("median(\"value\")"),
                of("percentile(\"value\", 90)"),
                of("percentile(\"value\", 95)"),
                of("max(\"value\")"),
            ];
            assert!(figures.is_sorted() && figures[0] >= shortest, "{name}: {figures:?}");
            let mean = of("mean(\"value\")");
            assert!((figures[0]..=figures[4]).contains(&mean), "{name}: {mean} {figures:?}");
            // The lines over time hold the same: no second is above the run's worst.
            for figure in ["max(\"value\")", "percentile(\"value\", 95)"] {
                let line = self.numbers(&format!(
                    "SELECT {figure} FROM /^{measurement}$/ WHERE $timeFilter and value > 0 \
                     GROUP BY time($__interval) fill(none)"
                ));
                let most = line.iter().copied().fold(0.0, f64::max);
                assert!(line.len() >= 3 && most <= figures[4], "{name}: {figure} {line:?}");
            }
        }
    }
}

/// Runs the script, and gives what `--summary-export` wrote.
fn ran_script(mut command: Command, folder: &Path, url: &str, out: &str) -> Value {
    let export = folder.join("summary.json");
    command
        .args(["run", "--quiet", "--no-usage-report", "--out", out, "-e", &format!("URL={url}")])
        .args(["--summary-trend-stats", "avg,min,med,max,p(90),p(95)", "--summary-export"])
        .arg(&export)
        .arg(folder.join("s.js"))
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_str(&fs::read_to_string(&export).unwrap()).unwrap()
}

/// What k6 1.8.1 gives.
fn expected() -> BTreeMap<String, f64> {
    let all = ITERATIONS as f64;
    let named =
        |check: &str| format!("Checks Per Second {}", serde_json::json!({ "check": check }));
    let mut counts: BTreeMap<String, f64> =
        MEASUREMENTS.map(|measurement| (measurement.to_owned(), all)).into();
    // k6 has not reported this for years, and the panel is empty.
    counts.insert("http_req_looking_up".to_owned(), 0.0);
    counts.extend([
        ("Virtual Users".to_owned(), USERS),
        ("Requests per Second".to_owned(), all),
        ("Errors Per Second".to_owned(), all / 10.0),
        (named("is good"), all * 0.9),
        (named("is 200"), all),
    ]);
    counts
}

#[test]
fn the_panels_of_dashboard_2587_give_what_k6_would_have_given() {
    let influxdb = Server::influxdb();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), SCRIPT).unwrap();
    let lab = lab();
    let url = format!("http://{}", lab.addr());
    let out = |database: &str| format!("influxdb=http://127.0.0.1:{}/{database}", influxdb.port);
    let summary = ran_script(gake(&["as", "k6"]), folder.path(), &url, &out("gake"));
    let own = Points { influxdb: &influxdb, database: "gake" };
    own.check_times("gake");
    assert_eq!(own.counts(), expected());
    // The panels say what the summary says.
    let duration = &summary["metrics"]["http_req_duration"];
    for (figure, key) in [("mean", "avg"), ("median", "med"), ("max", "max")] {
        let panel = own.figure(&format!("{figure}(\"value\")"), "http_req_duration").unwrap();
        let in_summary = duration[key].as_f64().unwrap();
        assert!((panel / in_summary - 1.0).abs() < 1e-3, "{figure}: {panel} {in_summary}");
    }
    let points = own.measurements();
    if let Some(k6) = std::env::var_os("GAKE_K6_LIVE") {
        ran_script(Command::new(k6), folder.path(), &url, &out("k6"));
        let k6 = Points { influxdb: &influxdb, database: "k6" };
        k6.check_times("k6");
        assert_eq!(own.counts(), k6.counts());
        assert_eq!(points, k6.measurements());
    }
    lab.shutdown();
}

#[test]
fn a_hostile_tag_of_a_script_reaches_no_database_unescaped() {
    let influxdb = Server::influxdb();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), HOSTILE).unwrap();
    let lab = lab();
    let url = format!("http://{}", lab.addr());
    let out = format!("influxdb=http://127.0.0.1:{}/gake", influxdb.port);
    ran_script(gake(&["as", "k6"]), folder.path(), &url, &out);
    let points = Points { influxdb: &influxdb, database: "gake" };
    let measurements = points.measurements();
    assert!(!measurements.iter().any(|name| name.contains("injected")), "{measurements:?}");
    for name in ["http_reqs", "mine", "checks"] {
        let sum = points.one(&format!("SELECT sum(value) FROM {name}"));
        assert_eq!(sum, Some(20.0), "{name}");
    }
    let own = points.ask("SELECT count(value) FROM mine GROUP BY own");
    assert_eq!(own.len(), 20, "each value is its own: {own:?}");
    lab.shutdown();
}
