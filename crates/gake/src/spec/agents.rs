//! Scripts on agents: what of a run they cannot do, by the names of flags, and what they are given.

use gake_core::Load;
use gake_core::spec::{RequestSource, RunSpec};
use gake_run::LoadedRequests;
use gake_run::script::{ConfiguredScript, ONE_SCRIPT};
use gake_session::Failure;
use gake_session::fleet::AgentScript;

use crate::cli::RunArgs;

/// How the result of a script's run on agents is shown: the result of gake itself.
pub const SHOWING: &str = "gake run";

/// Why agents do not count the bodies of failed responses of a script.
pub const BODY_ERRORS: &str = "--body-errors: bodies stay where the script runs";

/// Refuses what agents cannot do of a run with scripts, before anything starts: of the `flags` that
/// are given, each with its reason, and of what the scripts themselves ask for.
///
/// # Errors
/// What they cannot do.
pub fn check(
    flags: &[(bool, &str)],
    spec: &RunSpec,
    loaded: &LoadedRequests,
) -> Result<(), Failure> {
    let scripts: Vec<_> = loaded.scripts().collect();
    let Some(script) = scripts.first() else { return Ok(()) };
    if scripts.len() > 1
        || !spec.scenarios.iter().all(|one| matches!(one.source, RequestSource::Script(_)))
    {
        return Err(Failure::usage(ONE_SCRIPT));
    }
    let options = &script.options;
    let has_segment =
        options.execution_segment.is_some() || options.execution_segment_sequence.is_some();
    let is_external = |load: &Load| matches!(load, Load::External { .. });
    let own = [
        (
            !spec.connection.sources.is_empty() || options.local_ips.is_some(),
            "--interface: agents have addresses of their own, by gake agent --sources",
        ),
        (has_segment, "the option executionSegment: each agent has a segment already"),
        (
            spec.scenarios.iter().any(|one| is_external(&one.load)),
            "the executor externally-controlled: the number of its users is set by hand",
        ),
    ];
    match flags.iter().chain(&own).find(|(is_so, _)| *is_so) {
        Some((_, why)) => Err(Failure::usage(format!("agents cannot do {why}"))),
        None => Ok(()),
    }
}

/// The flags of `gake run` that agents cannot honour for a script.
pub fn refused(args: &RunArgs) -> [(bool, &'static str); 4] {
    [
        (args.script.script_profile, "--script-profile: profiles stay where the script runs"),
        (args.request.body_errors, BODY_ERRORS),
        (
            args.judge.reconcile.is_some(),
            "--reconcile: agents do not tell the methods of requests apart",
        ),
        (
            args.script.body_memory.is_some(),
            "--body-memory: each takes a quarter of its own memory",
        ),
    ]
}

/// A script as agents are given it.
pub fn script<'a>(args: &'a RunArgs, script: &'a ConfiguredScript) -> AgentScript<'a> {
    AgentScript {
        variables: args.script.env.iter().map(|(name, _)| name.as_str()).collect(),
        seed: args.load.seed,
        is_verbose: args.output.verbose,
        showing: SHOWING.to_owned(),
        ..AgentScript::of(script)
    }
}
