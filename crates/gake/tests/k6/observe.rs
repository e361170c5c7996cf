//! Runs a script with a tool and returns the outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::case::Case;
use crate::{normal, points};

/// What runs scripts.
pub enum Tool {
    /// gake as k6.
    Gake,
    /// The real one.
    K6(PathBuf),
}

/// The outcome of a script, without what differs from run to run.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub exit: i32,
    /// Lines of the log, sorted: their order is chance where several users write.
    pub console: Vec<String>,
    /// What was printed.
    pub stdout: Vec<String>,
    /// Figures by metric, where they are no matter of time.
    pub metrics: Map<String, Value>,
    /// The groups with their checks.
    pub groups: Value,
    /// What `--out json` wrote.
    pub points: Vec<String>,
}

/// A difference.
#[derive(Debug)]
pub struct Difference {
    /// What differs: a field of [`Observed`].
    pub field: &'static str,
    expected: String,
    seen: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    k6:   {}\n    gake: {}", self.field, self.expected, self.seen)
    }
}

/// What trends show, with the number of samples, which does not depend on time.
const STATS: &str = "avg,min,med,max,p(90),p(95),count";

impl Tool {
    /// Runs a case against the server at `url`, and the one at `tls_url`.
    pub fn observe(&self, case: &Case, url: &str, tls_url: &str) -> Observed {
        let scratch = tempfile::tempdir().unwrap();
        let export = scratch.path().join("export.json");
        let points = scratch.path().join("points.json");
        let mut command = match self {
            Self::Gake => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_gake"));
                command.args(["as", "k6"]);
                command
            }
            Self::K6(path) => Command::new(path),
        };
        command.args(["run", "--quiet", "--no-usage-report", "--no-color", "--address", ""]);
        // Not where the script's own choice is what it is about.
        if !["summaryTrendStats", "test.options", "--summary-mode", "handleSummary"]
            .iter()
            .any(|own| case.text.contains(own))
        {
            command.args(["--summary-trend-stats", STATS]);
        }
        let output = command
            .arg("--summary-export")
            .arg(&export)
            .args(["--out", &format!("json={}", points.display())])
            .args(["-e", &format!("URL={url}"), "-e", &format!("TLS_URL={tls_url}")])
            .args(&case.args)
            .arg(&case.path)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", scratch.path())
            .envs(&case.env)
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let export: Value = std::fs::read_to_string(&export)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or(Value::Null);
        let masked = |bytes: &[u8]| normal::without_places(bytes, &case.path, url);
        let mut console: Vec<String> =
            masked(&output.stderr).lines().filter_map(normal::log_line).collect();
        console.sort();
        let metrics = export["metrics"].as_object().into_iter().flatten();
        Observed {
            exit: output.status.code().unwrap_or(-1),
            console,
            stdout: normal::printed(&masked(&output.stdout)),
            metrics: metrics.map(|(name, figures)| normal::metric(name, figures)).collect(),
            groups: export["root_group"].clone(),
            points: points::points(&masked(&std::fs::read(&points).unwrap_or_default())),
        }
    }
}

impl Observed {
    /// Where `seen` is not the same.
    pub fn differences(&self, seen: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        let mut compare = |field, same: bool, expected: String, seen: String| {
            if !same {
                differences.push(Difference { field, expected, seen });
            }
        };
        compare("exit", self.exit == seen.exit, self.exit.to_string(), seen.exit.to_string());
        let (expected, lines) = only_in(&self.console, &seen.console);
        compare("console", self.console == seen.console, expected, lines);
        let (expected, lines) = only_in(&self.stdout, &seen.stdout);
        compare("stdout", self.stdout == seen.stdout, expected, lines);
        let (mine, theirs) = (Value::from(self.metrics.clone()), Value::from(seen.metrics.clone()));
        let names: BTreeMap<&String, ()> =
            self.metrics.keys().chain(seen.metrics.keys()).map(|name| (name, ())).collect();
        let of = |metrics: &Map<String, Value>| {
            let differs = |name: &&&String| {
                let (a, b) = (self.metrics.get(**name), seen.metrics.get(**name));
                !a.zip(b).is_some_and(|(a, b)| is_close(a, b))
            };
            let shown = names.keys().filter(differs);
            shown
                .map(|name| format!("{name}={}", metrics.get(*name).unwrap_or(&Value::Null)))
                .collect::<Vec<_>>()
                .join(" ")
        };
        compare("metrics", is_close(&mine, &theirs), of(&self.metrics), of(&seen.metrics));
        let groups = self.groups == seen.groups;
        compare("groups", groups, self.groups.to_string(), seen.groups.to_string());
        let (expected, lines) = only_in(&self.points, &seen.points);
        compare("points", self.points == seen.points, expected, lines);
        differences
    }
}

/// Lines of one and not of the other.
fn only_in(a: &[String], b: &[String]) -> (String, String) {
    let without = |these: &[String], those: &[String]| {
        let mut those = those.to_vec();
        let rest = these.iter().filter(|line| match those.iter().position(|one| one == *line) {
            Some(at) => {
                those.swap_remove(at);
                false
            }
            None => true,
        });
        rest.cloned().collect::<Vec<_>>().join("\n          ")
    };
    (without(a, b), without(b, a))
}

/// Whether two values are the same, numbers to 0.1 %.
fn is_close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs().max(b.abs()) / 1_000.0
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_close(a, b)))
        }
        _ => a == b,
    }
}
