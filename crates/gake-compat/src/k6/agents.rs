//! Agents of a k6 run: what they are given, and what they cannot do, by the names of k6's flags.

use std::sync::Arc;

use gake_fleet::FleetListener;
use gake_k6::options::{Executor, Options};
use gake_k6::test::{LogLevel, Test};
use gake_run::script::LoadedScript;
use gake_session::fleet::AgentScript;

use super::flags::RunFlags;

/// What of a script's run agents cannot do, by name; `None` when they can.
pub(super) fn cannot(flags: &RunFlags, options: &Options) -> Option<String> {
    let is_external = options
        .scenarios
        .iter()
        .flatten()
        .any(|(_, scenario)| scenario.executor == Executor::ExternallyControlled);
    let has_segment =
        options.execution_segment.is_some() || options.execution_segment_sequence.is_some();
    let reasons = [
        (
            !flags.out.is_empty(),
            "--out: the samples of agents do not travel one by one; use --sink",
        ),
        (!flags.secret_sources.is_empty(), "--secret-source: secrets stay on this machine"),
        (flags.script_profile, "--script-profile: profiles stay where the script runs"),
        (flags.body_errors, "--body-errors: bodies stay where the script runs"),
        (
            flags.reconcile.is_some(),
            "--reconcile: agents do not tell the methods of requests apart",
        ),
        (flags.body_memory.is_some(), "--body-memory: each takes a quarter of its own memory"),
        (
            options.local_ips.is_some(),
            "--local-ips: agents have addresses of their own, by gake agent --sources",
        ),
        (has_segment, "--execution-segment: each agent has a segment already"),
        (is_external, "the executor externally-controlled: the number of its users is set by hand"),
    ];
    let (_, why) = reasons.into_iter().find(|(is_so, _)| *is_so)?;
    Some(format!("agents cannot do {why}"))
}

/// A script as agents are given it, with its options as they were given and its `__ENV`.
pub(super) fn agent_script<'a>(
    flags: &'a RunFlags,
    script: &'a LoadedScript,
    given: &'a Options,
    environment: &'a [(String, String)],
) -> AgentScript<'a> {
    AgentScript {
        script,
        given,
        environment,
        variables: flags.environment.keys().map(String::as_str).collect(),
        seed: flags.seed,
        is_verbose: flags.verbose,
        has_other_load: false,
        showing: String::new(),
    }
}

/// Logs what happens to the agents of a run.
pub(super) fn events(flags: &RunFlags, test: &Arc<Test>) -> Option<FleetListener> {
    let test = Arc::clone(test);
    (!flags.quiet).then(|| -> FleetListener {
        Arc::new(move |event| test.log(LogLevel::Warning, &event.text, &[]))
    })
}
