//! Runs two loads against a server together and prints their counts and p99.
//!
//! `cargo run -p gake-run --example two_loads -- http://localhost:8080/`

use std::time::Duration;

use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};

#[allow(clippy::print_stdout, reason = "an example is a program")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("name a URL")?;
    print!("{}", measured(&url)?);
    Ok(())
}

/// Ten users with 20 iterations each, together with 100 requests a second for one second.
pub fn measured(url: &str) -> Result<String, Box<dyn std::error::Error>> {
    let source = || RequestSource::Url(url.to_owned());
    let users = Load::PerUser { users: 10, iterations: 20 };
    let users = ScenarioSpec { name: "users".to_owned(), ..ScenarioSpec::new(source(), users) };
    let rate = Load::rate(100.0, Duration::from_secs(1));
    let rate = ScenarioSpec { name: "rate".to_owned(), ..ScenarioSpec::new(source(), rate) };
    let mut spec = RunSpec::new(users);
    spec.scenarios.push(rate);
    let run = gake_run::run(&spec)?;
    let line = |scenario: &gake_run::ScenarioRun| {
        let p99 = Duration::from_nanos(scenario.tally.latency.response().quantile(0.99));
        let counts = scenario.tally.counts;
        format!("{}: {} ok, {} failed, p99 {p99:?}\n", scenario.plan.name, counts.ok, counts.failed)
    };
    Ok(run.scenarios.iter().map(line).collect())
}
