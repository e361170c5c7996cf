//! Continues a script's run that another process started.

use std::sync::Arc;

use gake_fleet::{Orphan, OrphanScript};
use gake_run::RunOptions;
use gake_run::script::UnloadedScript;
use gake_run::sink::RunFileSink;

use super::agents::ResultDisplay;
use super::api::Api;
use super::lifecycle::RunContext;
use super::load::load_source;
use super::native_outputs::NativeOutputs;
use super::prepared_test::PreparedTest;
use crate::NativeResult as Native;
use gake_session::Console;
use gake_session::Signals;
use gake_session::fleet::ScriptAgents;
use gake_session::options::AttachArgs;
use gake_session::origin::origin;
use gake_session::redaction::redactor;
use gake_session::run::RunAgents;
use gake_session::script::log;
use gake_session::{Exit, Failure};

/// Continues the run of a script whose coordinator died, up to its `teardown` and summary.
///
/// # Errors
/// When there is no result.
pub fn attach(
    orphan: Orphan,
    script: OrphanScript,
    args: &AttachArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    check(args)?;
    let OrphanScript { archive, set_up, showing } = script;
    let unreadable = |why: String| Failure::could_not(format!("run {}: {why}", args.run));
    let showing: ResultDisplay =
        serde_json::from_str(&showing).map_err(|error| unreadable(error.to_string()))?;
    let flags = showing.flags(args).map_err(unreadable)?;
    let source = UnloadedScript::of_archive(&archive).map_err(|e| unreadable(e.to_string()))?;
    let log = log::log(console, None, flags.log_format, flags.verbose).map_err(unreadable)?;
    // This machine's environment is not read: the run brings its own.
    let loaded = load_source((&flags.script, source), &flags.settings, Arc::clone(&log));
    let ready = match loaded.and_then(|loaded| PreparedTest::new(loaded, &flags, &log, console)) {
        Ok(ready) => ready,
        Err(refusal) => return Ok(refusal.report(console)),
    };
    let signals = Signals::for_script().map_err(Failure::signals)?;
    let redactor = redactor(&args.redaction, console)?;
    let interrupt = signals.interrupt();
    let requested = (&args.web, &args.history, &args.output.sinks);
    let (own, mut sinks) = NativeOutputs::start(requested, &ready.prepared, interrupt, console)?;
    if let Some(path) = &args.output.out {
        sinks.push(Box::new(RunFileSink::create(path).map_err(Failure::could_not)?));
    }
    let api = Api::new(Arc::clone(&ready.loaded.script.test), interrupt.clone(), false);
    let options = RunOptions {
        sinks,
        interrupt: Some(interrupt),
        users: Some(api.users()),
        origin: origin(&[], &redactor),
        ..RunOptions::default()
    };
    let agents = ScriptAgents::of_orphan(orphan, &ready.prepared);
    let agents = agents.map_err(|error| unreadable(error.to_string()))?;
    let agents = agents.described_on((!flags.quiet).then_some(console));
    let native = Native::default();
    let context =
        RunContext { flags: &flags, native: &native, console, api: &api, signals: &signals };
    let agents = RunAgents::Script(Box::new(agents), Some(Box::new(set_up)));
    context.run(&ready, Some(agents), None, options, own)
}

/// Refuses the flags for results that a script's run does not have.
fn check(args: &AttachArgs) -> Result<(), Failure> {
    let output = &args.output;
    let others = output.results().next().is_some() || output.log.is_some() || output.tui;
    if others || output.verbose {
        return Err(Failure::usage(format!(
            "run {} is a script's, which has k6's summary: leave out --format, --html, --log, \
             --verbose and --tui",
            args.run
        )));
    }
    Ok(())
}
