//! The steps of action.yml, run as a runner of GitHub's Actions runs them.

#![allow(clippy::unwrap_used)] // the helpers are tests too

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gake_packaging::{archive, tarball};
use serde_json::{Value, json};
use tempfile::TempDir;

mod common;

type Texts = BTreeMap<String, String>;

/// A runner with its folders; the workspace stays from one job to the next, as a cache does.
struct Runner {
    dir: TempDir,
    archive: PathBuf,
}

/// How a job ended.
struct Ended {
    is_success: bool,
    outputs: Texts,
    /// Other actions that the steps used, with their inputs.
    used: Vec<(String, Value)>,
    summary: String,
    log: String,
}

/// A job while it runs.
struct Job<'a> {
    runner: &'a Runner,
    inputs: Texts,
    /// Outputs of steps, by `steps.ID.outputs.NAME`.
    outputs: Texts,
    is_success: bool,
    log: String,
}

impl Runner {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["workspace", "temp"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let archive = archive::write(&common::contents(dir.path()), dir.path()).unwrap();
        Self { dir, archive }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs the action with inputs.
    fn run(&self, inputs: &[(&str, &str)]) -> Ended {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = fs::read_to_string(root.join("action.yml")).unwrap();
        let action: Value = serde_saphyr::from_str(&text).unwrap();
        let declared = action["inputs"].as_object().unwrap();
        let default = |input: &Value| input["default"].as_str().unwrap_or_default().to_owned();
        let mut all: Texts =
            declared.iter().map(|(name, input)| (name.clone(), default(input))).collect();
        all.insert("archive".to_owned(), self.archive.display().to_string());
        for (name, value) in inputs {
            assert!(declared.contains_key(*name), "no input {name}");
            all.insert((*name).to_owned(), (*value).to_owned());
        }
        for file in ["path", "summary"] {
            fs::write(self.path(file), "").unwrap();
        }
        let mut job = Job {
            runner: self,
            inputs: all,
            outputs: Texts::new(),
            is_success: true,
            log: String::new(),
        };
        let mut used = Vec::new();
        for step in action["runs"]["steps"].as_array().unwrap() {
            let condition = step["if"].as_str().unwrap_or("${{ success() }}");
            let always = condition.contains("always()");
            if (!job.is_success && !always) || job.expand(condition) != "true" {
                continue;
            }
            match step["uses"].as_str() {
                Some(name) => used.push((name.to_owned(), job.expand_all(&step["with"]))),
                None => job.shell(step, root),
            }
        }
        let outputs = action["outputs"].as_object().unwrap().iter();
        let outputs = outputs
            .map(|(name, output)| (name.clone(), job.expand(output["value"].as_str().unwrap())))
            .collect();
        let summary = fs::read_to_string(self.path("summary")).unwrap();
        Ended { is_success: job.is_success, outputs, used, summary, log: job.log }
    }
}

impl Job<'_> {
    /// A step in the shell.
    fn shell(&mut self, step: &Value, root: &Path) {
        assert_eq!(step["shell"], "bash");
        let file = |name: &str| self.runner.path(name);
        let added = fs::read_to_string(file("path")).unwrap();
        let path = added.lines().rev().map(str::to_owned).chain(std::env::var("PATH"));
        fs::write(file("output"), "").unwrap();
        let mut bash = Command::new("bash");
        bash.args([
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            step["run"].as_str().unwrap(),
        ])
        .current_dir(file("workspace"))
        .env("PATH", path.collect::<Vec<_>>().join(":"))
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_ACTION_PATH", root)
        .env("GITHUB_OUTPUT", file("output"))
        .env("GITHUB_PATH", file("path"))
        .env("GITHUB_SERVER_URL", format!("file://{}", file("server").display()))
        .env("GITHUB_STEP_SUMMARY", file("summary"))
        .env("RUNNER_TEMP", file("temp"));
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, self.expand(value.as_str().unwrap()));
        }
        let out = bash.output().unwrap();
        self.log += &String::from_utf8_lossy(&[out.stdout, out.stderr].concat());
        self.is_success &= out.status.success();
        let id = step["id"].as_str().unwrap_or_default();
        for line in fs::read_to_string(file("output")).unwrap().lines() {
            let (name, value) = line.split_once('=').unwrap();
            self.outputs.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
    }

    fn expand_all(&self, with: &Value) -> Value {
        let with = with.as_object().unwrap().iter();
        with.map(|(key, value)| (key.clone(), Value::String(self.expand(value.as_str().unwrap()))))
            .collect()
    }

    /// Replaces the expressions in a text.
    fn expand(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once("${{") else { return text.to_owned() };
        let (expression, after) = rest.split_once("}}").unwrap();
        format!("{before}{}{}", self.value(expression.trim()), self.expand(after))
    }

    /// The value of an expression, of the kinds that the action has.
    fn value(&self, expression: &str) -> String {
        if let Some((a, b)) = expression.split_once("&&") {
            return (self.value(a.trim()) == "true" && self.value(b.trim()) == "true").to_string();
        }
        for (operator, equal) in [("==", true), ("!=", false)] {
            if let Some((a, b)) = expression.split_once(operator) {
                let b = b.trim().trim_matches('\'');
                return ((self.value(a.trim()) == b) == equal).to_string();
            }
        }
        let known = match expression {
            "always()" => Some("true".to_owned()),
            "success()" => Some(self.is_success.to_string()),
            "github.action_repository" => Some("owner/gake".to_owned()),
            "github.run_id" => Some("7".to_owned()),
            _ => None,
        };
        known.unwrap_or_else(|| match expression.strip_prefix("inputs.") {
            Some(name) => self.inputs[name].clone(),
            None => self.outputs.get(expression).cloned().unwrap_or_default(),
        })
    }
}

impl Ended {
    fn used(&self, action: &str) -> Option<&Value> {
        self.used.iter().find(|(name, _)| name.starts_with(action)).map(|(_, with)| with)
    }
}

#[test]
fn a_run_becomes_the_baseline_and_the_next_is_compared_with_it() {
    let runner = Runner::new();
    // Any change matters less than the tolerance: machines of tests are busy.
    let inputs = [
        ("target", "demo"),
        ("args", "-n 300 -c 2 -H 'X-Words: a b'"),
        ("tolerance", "100000%"),
        // 300 requests decide nothing.
        ("baseline-inconclusive", "pass"),
        ("slo", "errors<1%\np99<60s\n"),
        ("baseline", "main"),
        ("save-baseline", "true"),
    ];
    let first = runner.run(&inputs);
    assert!(first.is_success, "{}", first.log);
    assert!(
        first.log.contains("::notice title=gake::no comparison with a baseline"),
        "{}",
        first.log
    );
    assert!(first.summary.contains("| ✅ | `p99<60s` |"), "{}", first.summary);
    assert_eq!(first.outputs["exit-code"], "0");
    let cached = first.used("actions/cache/save").unwrap();
    assert_eq!(*cached, json!({ "path": ".gake", "key": "gake-main-7" }));
    let artifact = first.used("actions/upload-artifact").unwrap();
    let report = Path::new(artifact["path"].as_str().unwrap());
    assert!(report.join("gake.html").is_file() && report.join("gake.json").is_file());

    let second = runner.run(&inputs);
    assert!(second.is_success, "{}", second.log);
    assert!(second.used("actions/cache/restore").is_some());
    assert!(second.summary.contains("this run (#2)"), "{}", second.summary);
}

#[test]
fn a_missed_objective_fails_the_job_and_leaves_its_report() {
    let runner = Runner::new();
    let args = [("target", "demo"), ("args", "-n 20"), ("slo", "p50<1ns"), ("baseline", "main")];
    let ended = runner.run(&[&args[..], &[("save-baseline", "true")]].concat());
    assert!(!ended.is_success);
    assert_eq!(ended.outputs["exit-code"], "99", "{}", ended.log);
    assert!(ended.summary.contains("| ❌ | `p50<1ns` |"), "{}", ended.summary);
    assert!(ended.used("actions/upload-artifact").is_some());
    assert!(ended.used("actions/cache/save").is_none(), "a bad run is no baseline");

    let find = [("target", "demo"), ("command", "find"), ("baseline", "main")];
    let ended = runner.run(&find);
    assert!(!ended.is_success && ended.log.contains("a baseline compares runs"), "{}", ended.log);
}

#[test]
fn a_release_is_downloaded_and_its_sum_compared() {
    let runner = Runner::new();
    let version = gake_packaging::VERSION;
    let release = runner.path("server/owner/gake/releases/download").join(format!("v{version}"));
    fs::create_dir_all(&release).unwrap();
    let name = format!("gake-{version}-{}-unknown-linux-musl.tar.gz", std::env::consts::ARCH);
    let bytes = fs::read(&runner.archive).unwrap();
    let sums = format!("{}  {name}\n", tarball::sha256(&bytes));
    fs::write(release.join("SHA256SUMS"), format!("{}  other\n{sums}", "0".repeat(64))).unwrap();
    fs::write(release.join(&name), &bytes).unwrap();
    let inputs = [("target", "demo"), ("args", "-n 20"), ("archive", ""), ("artifact", "")];
    let ended = runner.run(&inputs);
    assert!(ended.is_success, "{}", ended.log);
    assert!(ended.used.is_empty());

    fs::write(release.join(&name), [&bytes[..], b"x"].concat()).unwrap();
    let ended = runner.run(&inputs);
    assert!(!ended.is_success && ended.outputs["exit-code"].is_empty(), "{}", ended.log);
}
