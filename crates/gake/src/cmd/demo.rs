//! The target that is a lab in this process.

use gake_lab::{Lab, LabConfig};

use gake_session::Failure;

/// The name of the target.
const DEMO: &str = "demo";

/// Whether a target is the demo.
pub fn is_demo(named: &str) -> bool {
    named == DEMO
}

/// The target, and the lab if the target is `demo`. Dropping it ends the lab.
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
