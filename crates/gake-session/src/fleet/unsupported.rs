//! Settings and options of a script's run that agents do not support.

use gake_core::Load;
use gake_core::spec::RunSpec;
use gake_k6::options::K6Options;
use gake_run::script::ScriptSettings;

/// Why agents cannot run a script with these settings and options, if so. `addresses` and `segment`
/// are the command's names for local addresses and the execution segment.
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
    let wants_browser =
        options.scenarios.iter().flatten().any(|(_, scenario)| scenario.wants_browser());
    let reasons = [
        (wants_browser, "k6/browser", "they could not check the targets of its pages"),
        (!settings.secret_sources.is_empty(), "--secret-source", "secrets stay on this machine"),
        (settings.profile, "--script-profile", "profiles stay where the script runs"),
        (settings.failed_bodies, "--body-errors", "bodies stay where the script runs"),
        (!settings.keys.is_empty(), "--reconcile", "agents do not count requests by method"),
        (
            settings.body_memory.is_some(),
            "--body-memory",
            "each agent takes a quarter of its own memory",
        ),
        (
            !spec.connection.sources.is_empty() || options.local_ips.is_some(),
            addresses,
            "agents have their own addresses: gake agent --sources",
        ),
        (has_segment, segment, "each agent already has a segment"),
        (is_external, "the executor externally-controlled", "its number of users is set by hand"),
    ];
    let (_, what, why) = reasons.into_iter().find(|(is_so, ..)| *is_so)?;
    Some(format!("agents do not support {what}: {why}"))
}
