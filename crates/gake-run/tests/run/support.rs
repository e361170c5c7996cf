//! A server, and specs that load it.

use std::time::Duration;

use gake_lab::{Lab, LabConfig};
use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};

pub fn lab() -> Lab {
    Lab::start(LabConfig::default()).unwrap()
}

pub fn url(lab: &Lab, path: &str) -> RequestSource {
    RequestSource::Url(format!("http://{}{path}", lab.addr()))
}

/// `requests` of one user.
pub fn counted(lab: &Lab, requests: u64) -> RunSpec {
    let load = Load::closed(1);
    let scenario =
        ScenarioSpec { requests: Some(requests), ..ScenarioSpec::new(url(lab, "/fast"), load) };
    RunSpec::new(scenario)
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
