//! `cargo xtask experiments`: the whole quick set of `gake experiment`, several times: how long it
//! takes, and which steps were not as theory expects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use xtask::{command, workspace};

const USAGE: &str = "usage: cargo xtask experiments [--runs N] [--only NAME] [--gake PATH]";

/// The whole set may take this long on two cores.
const LIMIT: Duration = Duration::from_mins(6);

/// gake's codes when a step was not as expected, and when it could not be judged.
const NOT_AS_EXPECTED: i32 = 99;
const INVALID: i32 = 3;

/// What is asked for.
struct Asked {
    runs: u32,
    only: Option<String>,
    gake: Option<PathBuf>,
}

/// One experiment of one run.
struct Outcome {
    name: String,
    took: Duration,
    /// What was not as expected: step, figure, seen, theory; steps that are missing or could not be
    /// judged too.
    missed: Vec<String>,
}

/// The task.
pub fn main(args: &[String]) -> Result<()> {
    let asked = parse(args)?;
    let gake = match &asked.gake {
        Some(path) => path.clone(),
        None => {
            command::run("cargo", &["build", "-p", "gake"])?;
            workspace::target_dir()?.join("debug/gake")
        }
    };
    let mut names = names(&gake)?;
    names.retain(|name| asked.only.as_ref().is_none_or(|only| only == name));
    if names.is_empty() {
        bail!("there is no such experiment; `gake experiment` lists them");
    }
    let folder = workspace::target_dir()?.join("experiments");
    fs::create_dir_all(&folder)?;
    let mut missed = 0;
    let mut slow = 0;
    for run in 1..=asked.runs {
        let outcomes: Vec<Outcome> =
            names.iter().map(|name| measure(&gake, name, &folder)).collect::<Result<_>>()?;
        let took: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
        print!("{}", table(run, &outcomes, took));
        missed += outcomes.iter().map(|outcome| outcome.missed.len()).sum::<usize>();
        slow += u32::from(took > LIMIT);
    }
    if missed > 0 || slow > 0 {
        bail!(
            "{missed} steps were not as expected, {slow} of {} runs took over {} s",
            asked.runs,
            LIMIT.as_secs()
        );
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<Asked> {
    let mut asked = Asked { runs: 1, only: None, gake: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.next()) {
            ("--runs", Some(number)) => asked.runs = number.parse().context(USAGE)?,
            ("--only", Some(name)) => asked.only = Some(name.clone()),
            ("--gake", Some(path)) => asked.gake = Some(fs::canonicalize(path).context(USAGE)?),
            _ => bail!(USAGE),
        }
    }
    if asked.runs == 0 {
        bail!("--runs takes a number from 1 up");
    }
    Ok(asked)
}

/// The names in the list of `gake experiment`: its first words up to the empty line.
fn names(gake: &Path) -> Result<Vec<String>> {
    let output = Command::new(gake).arg("experiment").output();
    let output = output.with_context(|| format!("{} could not be started", gake.display()))?;
    Ok(listed(&String::from_utf8_lossy(&output.stdout)))
}

fn listed(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn measure(gake: &Path, name: &str, folder: &Path) -> Result<Outcome> {
    let file = folder.join(format!("{name}.json"));
    let started = Instant::now();
    let status = Command::new(gake)
        .args(["experiment", name, "--quick", "--quiet", "-o"])
        .arg(format!("json={}", file.display()))
        .stdout(Stdio::null())
        .status()?;
    let took = started.elapsed();
    if !matches!(status.code(), Some(0 | INVALID | NOT_AS_EXPECTED)) {
        bail!("gake experiment {name} --quick failed ({status})");
    }
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let json: Value = serde_json::from_str(&text)?;
    Ok(Outcome { name: name.to_owned(), took, missed: missed(&json) })
}

/// The expectations of an experiment that were not met, including steps that could not be
/// judged: a set is green when it has shown every step.
fn missed(json: &Value) -> Vec<String> {
    let steps = json["steps"].as_array().into_iter().flatten();
    let steps = steps.filter(|step| step["as_expected"] != true);
    let missing = (json["complete"] == false).then(|| "steps are missing".to_owned());
    let unmet = steps.flat_map(|step| {
        let expectations = step["expectations"].as_array().into_iter().flatten();
        let unmet = expectations.filter(|one| one["met"] == false);
        let is_judged = !step["as_expected"].is_null();
        unmet.map(move |one| {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            let step = step["name"].as_str().unwrap_or_default();
            let judged = if is_judged { "" } else { " (not judged: the cores were busy)" };
            let (what, seen, theory) = (text("what"), text("seen"), text("theory"));
            format!("{step}: {what} {seen}, theory: {theory}{judged}")
        })
    });
    missing.into_iter().chain(unmet).collect()
}

fn table(run: u32, outcomes: &[Outcome], took: Duration) -> String {
    let mut text = format!("run {run}: {:.0} s\n", took.as_secs_f64());
    for outcome in outcomes {
        let verdict = match outcome.missed.len() {
            0 => "as expected".to_owned(),
            some => format!("{some} not as expected"),
        };
        text +=
            &format!("  {:<16} {:>5.1} s  {verdict}\n", outcome.name, outcome.took.as_secs_f64());
        for missed in &outcome.missed {
            text += &format!("    {missed}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_the_empty_line() {
        let text = "spike  N users\nusers-db  a pool\n\ngake experiment NAME runs one\n";
        assert_eq!(listed(text), ["spike", "users-db"]);
    }

    #[test]
    fn what_theory_did_not_expect_is_named() {
        let json = serde_json::json!({"complete": true, "steps": [
            {"name": "a", "as_expected": false, "expectations": [
                {"what": "ok", "seen": "5", "theory": "6", "met": false}]},
            {"name": "b", "as_expected": true, "expectations": [
                {"what": "ok", "seen": "6", "theory": "6", "met": true}]},
            {"name": "c", "as_expected": null, "expectations": [
                {"what": "ok", "seen": "1", "theory": "6", "met": false}]},
        ]});
        let missed = missed(&json);
        let not_judged = "c: ok 1, theory: 6 (not judged: the cores were busy)";
        assert_eq!(missed, ["a: ok 5, theory: 6", not_judged]);
        let outcome = Outcome { name: "pool".to_owned(), took: Duration::from_secs(2), missed };
        let table = table(1, &[outcome], Duration::from_secs(2));
        assert!(table.contains("2 not as expected\n    a: ok 5"), "{table}");
    }
}
