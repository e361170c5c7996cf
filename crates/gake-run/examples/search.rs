//! Finds the capacity of a server that it starts itself.
//!
//! `cargo run -p gake-run --example search`

use std::error::Error;
use std::time::Duration;

use gake_lab::{Lab, LabConfig};
use gake_run::search::{CapacityOptions, CapacityResult, capacity};
use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};

#[allow(clippy::print_stdout, reason = "an example is a program")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", found()?);
    Ok(())
}

/// The capacity of a server with two threads that take 20 ms for a request: 100 a second.
pub fn found() -> Result<String, Box<dyn Error>> {
    let service = Some("const:20ms".parse()?);
    let lab = Lab::start(LabConfig { threads: Some(2), service, ..LabConfig::default() })?;
    let url = RequestSource::Url(format!("http://{}/fast", lab.addr()));
    let mut spec = RunSpec::new(ScenarioSpec::new(url, Load::closed(1)));
    spec.objectives.push("p99<50ms".to_owned());
    let mut options = CapacityOptions::default();
    options.search.budget = Duration::from_secs(20);
    let report = capacity(&spec, &options, |_| ())?;
    lab.shutdown();
    Ok(match report.result.found {
        CapacityResult::Capacity(rate) => {
            format!("{:.0}/s ({:.0} to {:.0})", rate.capacity, rate.low, rate.high)
        }
        other => format!("{other:?} after {} steps", report.steps.len()),
    })
}
