//! Runs a script with a k6 and returns the outcome without what differs from run to run.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::normal;
use crate::soak::Owned;

/// A run that takes longer is ended.
const LIMIT: Duration = Duration::from_secs(30);

/// Statistics of trends that do not depend on how percentiles are kept.
const STATS: &str = "avg,min,max,count";

/// The lines of an outcome by field.
pub type Outcome = Vec<(&'static str, Vec<String>)>;

/// Runs the script at `path` with `program`, whose arguments begin with `first`.
pub fn observe(program: &Path, first: &[&str], path: &Path, url: &str) -> Result<Outcome> {
    let folder = path.parent().context("the script has no folder")?;
    let export = folder.join("export.json");
    let _ = fs::remove_file(&export);
    let mut command = Command::new(program);
    command
        .args(first)
        .args([
            "run",
            "--quiet",
            "--no-usage-report",
            "--no-color",
            "--address",
            "",
            "--user-agent",
            "fuzz",
        ])
        .args(["--summary-trend-stats", STATS, "--summary-export"])
        .arg(&export)
        .args(["-e", &format!("URL={url}")])
        .arg(path)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", folder)
        .env("TZ", "UTC")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(fs::File::create(folder.join("stdout"))?)
        .stderr(fs::File::create(folder.join("stderr"))?);
    let mut child = Owned(command.spawn().with_context(|| program.display().to_string())?);
    let started = Instant::now();
    let exit = loop {
        match child.0.try_wait()? {
            Some(status) => break status.to_string(),
            None if started.elapsed() > LIMIT => break "ended after the time limit".to_owned(),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let masked = |name: &str| -> Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(folder.join(name))?.read_to_end(&mut bytes)?;
        Ok(normal::without_places(&bytes, path, url))
    };
    let mut log: Vec<String> = masked("stderr")?.lines().filter_map(normal::log_line).collect();
    log.sort();
    let export = fs::read_to_string(&export).unwrap_or_default();
    let export: Value = serde_json::from_str(&export).unwrap_or(Value::Null);
    let metrics = export["metrics"].as_object().into_iter().flatten();
    let metrics = metrics.map(|(name, figures)| normal::metric(name, figures));
    Ok(vec![
        ("exit", vec![exit]),
        ("log", log),
        ("stdout", normal::printed(&masked("stdout")?)),
        ("metrics", metrics.map(|(name, figures)| format!("{name} {figures}")).collect()),
        ("groups", vec![export["root_group"].to_string()]),
    ])
}

/// The names of the fields that differ, and the lines of one outcome only.
pub fn differences(k6: &Outcome, gake: &Outcome) -> Vec<(&'static str, String)> {
    let fields = k6.iter().zip(gake).filter(|(k6, gake)| k6 != gake);
    fields
        .map(|((field, k6), (_, gake))| {
            (*field, format!("{}{}", only(k6, gake, "k6  "), only(gake, k6, "gake")))
        })
        .collect()
}

fn only(lines: &[String], others: &[String], whose: &str) -> String {
    let mut others: Vec<&String> = others.iter().collect();
    let mut text = String::new();
    for line in lines {
        match others.iter().position(|other| *other == line) {
            Some(at) => drop(others.swap_remove(at)),
            None => text += &format!("    {whose} {line}\n"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_the_lines_of_one_only() {
        let outcome = |lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
            vec![("exit", vec!["0".to_owned()]), ("log", lines)]
        };
        let same = differences(&outcome(&["a", "b"]), &outcome(&["a", "b"]));
        assert!(same.is_empty());
        let found = differences(&outcome(&["a", "b", "b"]), &outcome(&["b", "c"]));
        let text = "    k6   a\n    k6   b\n    gake c\n".to_owned();
        assert_eq!(found, [("log", text)]);
    }
}
