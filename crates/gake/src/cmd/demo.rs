//! The target that is a lab in this process.

use gake_lab::{Lab, LabConfig};

use gake_session::Failure;

/// What it is called.
const DEMO: &str = "demo";

/// Whether a target is the demo.
pub fn is_demo(named: &str) -> bool {
    named == DEMO
}

/// What is loaded, and the lab that is when it is the demo; it lives as long as it is kept.
///
/// # Errors
/// When the lab cannot be started.
pub fn target(named: &str, config: LabConfig) -> Result<(Option<Lab>, String), Failure> {
    if !is_demo(named) {
        return Ok((None, named.to_owned()));
    }
    let lab = Lab::start(config)
        .map_err(|error| Failure::could_not(format!("the demo server: {error}")))?;
    let url = format!("http://{}/fast", lab.addr());
    Ok((Some(lab), url))
}
