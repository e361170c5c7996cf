//! What of a script's run agents cannot do.

use gake_core::Load;
use gake_core::spec::RunSpec;
use gake_k6::options::K6Options;
use gake_run::script::ScriptSettings;

/// Why agents cannot run a script with these settings and options; `None` when they can. `addresses`
/// and `segment` are what a command calls the local addresses and the execution segment.
#[must_use]
pub fn unsupported(
    settings: &ScriptSettings,
    options: &K6Options,
    spec: &RunSpec,
    [addresses, segment]: [&str; 2],
) -> Option<String> {
    let is_external = spec.scenarios.iter().any(|one| matches!(one.load, Load::External { .. }));
    let has_segment =
        options.execution_segment.is_some() || options.execution_segment_sequence.is_some();
    let reasons = [
        (!settings.secret_sources.is_empty(), "--secret-source", "secrets stay on this machine"),
        (settings.profile, "--script-profile", "profiles stay where the script runs"),
        (settings.failed_bodies, "--body-errors", "bodies stay where the script runs"),
        (
            !settings.keys.is_empty(),
            "--reconcile",
            "agents do not tell the methods of requests apart",
        ),
        (settings.body_memory.is_some(), "--body-memory", "each takes a quarter of its own memory"),
        (
            !spec.connection.sources.is_empty() || options.local_ips.is_some(),
            addresses,
            "agents have addresses of their own, by gake agent --sources",
        ),
        (has_segment, segment, "each agent has a segment already"),
        (
            is_external,
            "the executor externally-controlled",
            "the number of its users is set by hand",
        ),
    ];
    let (_, what, why) = reasons.into_iter().find(|(is_so, ..)| *is_so)?;
    Some(format!("agents cannot do {what}: {why}"))
}
