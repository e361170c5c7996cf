//! The scripts of `crates/gake/tests/k6`, run by the real k6.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use xtask::command;

/// Names the real k6 that is to run beside gake.
const LIVE: &str = "GAKE_K6_LIVE";

/// Names the k6 whose runs are recorded, or compared with what is recorded.
const PEER: &str = "GAKE_K6";

/// The version that it says it is.
pub fn version(k6: &Path) -> String {
    let output = Command::new(k6).arg("version").output();
    let said = output.map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    said.lines().next().unwrap_or("of unknown version").trim().to_owned()
}

/// The k6 that the environment names.
pub fn peer() -> Result<String> {
    let Ok(k6) = std::env::var(PEER) else {
        bail!("name a k6 2.2 or newer in {PEER}: the cases are recorded with 2.2");
    };
    Ok(k6)
}

/// Runs the task.
pub fn main(args: &[String]) -> Result<()> {
    let (variable, part) = match args {
        [one, part @ ..] if one == "--record" => ("GAKE_K6_RECORD", part),
        [one, part @ ..] if one == "--live" => (LIVE, part),
        [] => bail!("say --record, --live, --fuzz MINUTES or --soak MINUTES"),
        other => bail!("unknown arguments: {}", other.join(" ")),
    };
    let part = match part {
        [] => None,
        [part] => Some(("GAKE_K6_CASES", part.as_str())),
        [_, other @ ..] => bail!("unknown arguments: {}", other.join(" ")),
    };
    let k6 = peer()?;
    let mut variables = vec![(variable, k6.as_str())];
    variables.extend(part);
    let test = "scripts_run_as_k6_runs_them";
    command::run_with("cargo", &["test", "-p", "gake", "--test", "k6", test], &variables)?;
    if variable == LIVE && variables.len() == 1 {
        let panels = "the_panels_of_dashboard_2587";
        command::run_with("cargo", &["test", "-p", "gake", "--test", "real", panels], &variables)?;
    }
    Ok(())
}
