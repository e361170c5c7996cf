//! The scripts of `crates/gake/tests/k6`, run by the real k6.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::command;

/// Where `go install go.k6.io/k6@v1.8.1` puts it.
fn installed() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let go = std::env::var_os("GOPATH").map_or_else(|| home.join("go"), PathBuf::from);
    go.join("bin/k6")
}

/// Runs the task.
pub fn main(args: &[String]) -> Result<()> {
    let (variable, part) = match args {
        [one, part @ ..] if one == "--record" => ("GAKE_K6_RECORD", part),
        [one, part @ ..] if one == "--live" => ("GAKE_K6_LIVE", part),
        [] => bail!("say --record or --live"),
        other => bail!("unknown arguments: {}", other.join(" ")),
    };
    let part = match part {
        [] => None,
        [part] => Some(("GAKE_K6_CASES", part.as_str())),
        [_, other @ ..] => bail!("unknown arguments: {}", other.join(" ")),
    };
    let k6 = installed();
    if !k6.is_file() {
        bail!("{} is not there: go install go.k6.io/k6@v1.8.1", k6.display());
    }
    let k6 = k6.display().to_string();
    let mut variables = vec![(variable, k6.as_str())];
    variables.extend(part);
    let test = "scripts_run_as_k6_runs_them";
    command::run_with("cargo", &["test", "-p", "gake", "--test", "k6", test], &variables)?;
    Ok(())
}
