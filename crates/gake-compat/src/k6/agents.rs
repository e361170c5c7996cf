//! Agents of a k6 run: what they cannot do, by the names of k6's flags, and what happens to them.

use std::sync::Arc;

use gake_core::spec::RunSpec;
use gake_fleet::FleetListener;
use gake_k6::options::Options;
use gake_k6::test::{LogLevel, Test};
use gake_session::fleet::unsupported;

use super::flags::RunFlags;

/// What k6's flags call what agents have themselves.
const NAMES: [&str; 2] = ["--local-ips", "--execution-segment"];

/// What of a script's run agents cannot do, by name; `None` when they can.
pub(super) fn cannot(flags: &RunFlags, options: &Options, spec: &RunSpec) -> Option<String> {
    if !flags.out.is_empty() {
        let why = "--out: the samples of agents do not travel one by one; use --sink";
        return Some(format!("agents cannot do {why}"));
    }
    unsupported(&flags.settings, options, spec, NAMES)
}

/// Logs what happens to the agents of a run.
pub(super) fn events(flags: &RunFlags, test: &Arc<Test>) -> Option<FleetListener> {
    let test = Arc::clone(test);
    (!flags.quiet).then(|| -> FleetListener {
        Arc::new(move |event| test.log(LogLevel::Warning, &event.text, &[]))
    })
}
