//! A script's run that another process started, and whose end is this one's.

use std::sync::Arc;

use gake_fleet::{Orphan, OrphanScript};
use gake_run::Beside;
use gake_run::script::{ScriptSettings, ScriptSource};
use gake_run::sink::RunFileSink;
use serde::{Deserialize, Serialize};

use super::api::Api;
use super::flags::RunFlags;
use super::life::{Following, Ready};
use super::load::load_source;
use super::own_outputs::OwnOutputs;
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

/// How the result of a run is shown, as whoever started it wanted it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Showing {
    no_thresholds: bool,
    summary_mode: Option<String>,
    summary_export: Option<String>,
    verbose: bool,
}

impl Showing {
    /// What these flags say of it.
    pub(super) fn of(flags: &RunFlags) -> Self {
        Self {
            no_thresholds: flags.settings.no_thresholds,
            summary_mode: flags.summary_mode.clone(),
            summary_export: flags.summary_export.clone(),
            verbose: flags.verbose,
        }
    }

    /// The same as it stands in the journal of the run.
    pub(super) fn text(&self) -> String {
        // Texts and truth values: this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The flags of a run of an archive that is shown so.
    fn flags(self, args: &AttachArgs) -> Result<RunFlags, String> {
        let flags = RunFlags::read(&["archive.tar".to_owned()])?;
        let flags = flags.ok_or("a script has no options")?;
        let Self { no_thresholds, summary_mode, summary_export, verbose } = self;
        let (quiet, no_color) = (args.output.quiet, args.output.no_color);
        let settings = ScriptSettings { no_thresholds, ..flags.settings };
        Ok(RunFlags { settings, summary_mode, summary_export, verbose, quiet, no_color, ..flags })
    }
}

/// Goes on with the run of a script whose coordinator died, to its `teardown` and summary.
///
/// # Errors
/// Why there is no result.
pub fn attach(
    orphan: Orphan,
    script: OrphanScript,
    args: &AttachArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    check(args)?;
    let OrphanScript { archive, set_up, showing } = script;
    let unreadable = |why: String| Failure::could_not(format!("run {}: {why}", args.run));
    let showing: Showing =
        serde_json::from_str(&showing).map_err(|error| unreadable(error.to_string()))?;
    let flags = showing.flags(args).map_err(unreadable)?;
    let source = ScriptSource::of_archive(&archive).map_err(|e| unreadable(e.to_string()))?;
    let log = log::log(console, None, flags.log_format, flags.verbose).map_err(unreadable)?;
    // Nothing of this machine's environment: its own travelled.
    let loaded = load_source(source, &flags.settings, Arc::clone(&log));
    let ready = match loaded.and_then(|loaded| Ready::new(loaded, &flags, &log, console)) {
        Ok(ready) => ready,
        Err(refused) => return Ok(refused.tell(console)),
    };
    let signals = Signals::for_script().map_err(Failure::signals)?;
    let redactor = redactor(&args.redaction, console)?;
    let interrupt = signals.interrupt();
    let asked = (&args.web, &args.history, &args.output.sinks);
    let (own, mut sinks) = OwnOutputs::start(asked, &ready.prepared, interrupt, console)?;
    if let Some(path) = &args.output.out {
        sinks.push(Box::new(RunFileSink::create(path).map_err(Failure::could_not)?));
    }
    let api = Api::new(Arc::clone(&ready.loaded.script.test), interrupt.clone(), false);
    let beside = Beside {
        sinks,
        interrupt: Some(interrupt),
        users: Some(api.users()),
        origin: origin(&[], &redactor),
        ..Beside::default()
    };
    let agents = ScriptAgents::of_orphan(orphan, &ready.loaded.script.test, &ready.prepared);
    let agents = agents.map_err(|error| unreadable(error.to_string()))?;
    let agents = agents.described_on((!flags.quiet).then_some(console));
    let native = Native::default();
    let following =
        Following { flags: &flags, native: &native, console, api: &api, signals: &signals };
    let agents = RunAgents::Script(Box::new(agents), Some(Box::new(set_up)));
    following.run(&ready, Some(agents), None, beside, own)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_run_is_shown_comes_back() {
        let line = ["--no-thresholds", "--summary-mode=full", "--summary-export=a.json", "s.js"];
        let flags = RunFlags::read(&line.map(str::to_owned)).unwrap().unwrap();
        let read: Showing = serde_json::from_str(&Showing::of(&flags).text()).unwrap();
        assert!(read.no_thresholds && !read.verbose);
        assert_eq!(read.summary_mode.as_deref(), Some("full"));
        assert_eq!(read.summary_export.as_deref(), Some("a.json"));
    }
}
