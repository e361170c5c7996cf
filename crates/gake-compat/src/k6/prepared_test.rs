//! Preparation of a run.

use std::sync::Arc;
use std::time::Duration;

use gake_core::metric::{Registry, SeriesTable};
use gake_k6::metrics::registry;
use gake_k6::options::K6Options;
use gake_k6::summary::{SummaryData, SummaryInput, summary_data};
use gake_k6::test::ScriptLog;
use gake_k6::threshold::{ThresholdResults, Thresholds};
use gake_run::ResolvedRun;
use gake_run::script::ConfiguredScript;
use gake_session::fleet::{AgentScript, FleetMaker};
use gake_session::proxy;
use gake_session::run::{Reconciliation, RunAgents, assemble};
use gake_session::script::{environment, log};
use gake_session::{Console, Failure};
use serde_json::Value;

use super::ANY;
use super::agents::{self, ResultDisplay};
use super::flags::RunFlags;
use super::load::{LoadRefusal, load};
use super::out::{self, OutSettings, Outputs};

/// A run that is prepared and not started.
pub(super) struct PreparedTest {
    pub(super) loaded: ConfiguredScript,
    pub(super) prepared: ResolvedRun,
    pub(super) outputs: Option<Outputs>,
    /// The rows before the run, if they are compared.
    pub(super) rows: Option<Reconciliation>,
}

/// Loads the script and prepares its run.
pub(super) fn prepare(
    flags: &RunFlags,
    has_agents: bool,
    console: &Console,
) -> Result<PreparedTest, LoadRefusal> {
    let (mut loaded, log) = load_with_log(flags, console)?;
    let why = agents::cannot(flags, &loaded.options, &loaded.run.spec);
    if let Some(why) = why.filter(|_| has_agents) {
        return Err(LoadRefusal { why, exit: ANY, log: Some(log) });
    }
    if !has_agents && let Err(failure) = proxy::use_environment(&mut loaded.run.spec.connection) {
        let why = failure.to_string();
        return Err(LoadRefusal { why, exit: ANY, log: Some(log) });
    }
    PreparedTest::new(loaded, flags, &log, console)
}

/// The script and its log.
pub(super) fn load_with_log(
    flags: &RunFlags,
    console: &Console,
) -> Result<(ConfiguredScript, ScriptLog), LoadRefusal> {
    let log = log::log(console, flags.log_output.as_deref(), flags.log_format, flags.verbose)
        .map_err(|why| LoadRefusal { why, exit: ANY, log: None })?;
    let log = match flags.settings.options.console_output.as_deref() {
        None | Some("") => log,
        Some(path) => log::with_console_file(Arc::clone(&log), path, flags.log_format)
            .map_err(|why| LoadRefusal { why, exit: ANY, log: Some(log) })?,
    };
    Ok((load(flags, Arc::clone(&log))?, log))
}

impl PreparedTest {
    /// Prepares the run of a loaded script.
    ///
    /// # Errors
    /// When the run cannot be prepared, or an output cannot be started.
    pub(super) fn new(
        loaded: ConfiguredScript,
        flags: &RunFlags,
        log: &ScriptLog,
        console: &Console,
    ) -> Result<Self, LoadRefusal> {
        let ConfiguredScript { script, options, run, .. } = &loaded;
        let outs = OutSettings::of(&environment(), script.test.settings().features);
        let refused = |why: String| LoadRefusal { why, exit: ANY, log: Some(Arc::clone(log)) };
        let prepared = script.prepare(run).map_err(|error| refused(error.to_string()))?;
        let outputs = out::start(&flags.out, options, &outs, console).map_err(refused)?;
        // The summary and thresholds know no other tags, either.
        let _ = script.test.system_tags.set(options.system_tags.clone().unwrap_or_default());
        if let Some(outputs) = &outputs {
            let _ = script.test.tap.set(Arc::clone(&outputs.tap));
        }
        Ok(Self { loaded, prepared, outputs, rows: None })
    }

    /// The agents that will run it, if this process does not.
    pub(super) fn agents<'a>(
        &'a self,
        maker: Option<&'a FleetMaker>,
        flags: &RunFlags,
        console: &'a Console,
    ) -> Result<Option<RunAgents<'a>>, Failure> {
        let scripts = [AgentScript {
            is_verbose: flags.verbose,
            showing: ResultDisplay::of(flags).text(),
            ..AgentScript::new(&self.loaded, &flags.settings)
        }];
        let what = (&self.loaded.run.spec, scripts.as_slice());
        assemble(maker, what, &self.prepared, flags.quiet, console)
    }

    /// The additional input of its summary.
    pub(super) fn summary_context<'a>(
        &'a self,
        flags: &RunFlags,
        console: &'a Console,
    ) -> SummaryContext<'a> {
        SummaryContext {
            metrics: registry(&self.loaded.script.metrics),
            thresholds: &self.loaded.thresholds,
            options: &self.loaded.options,
            no_color: flags.no_color || disables_colour(),
            console,
        }
    }
}

/// Whether the environment disables colours.
fn disables_colour() -> bool {
    let environment = environment();
    let is_set = |name: &str| environment.contains_key(name);
    is_set("NO_COLOR") || environment.get("K6_NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// The input of a summary in addition to the recorded figures.
pub(super) struct SummaryContext<'a> {
    pub(super) metrics: Registry,
    pub(super) thresholds: &'a Thresholds,
    pub(super) options: &'a K6Options,
    pub(super) no_color: bool,
    pub(super) console: &'a Console,
}

impl SummaryContext<'_> {
    pub(super) fn data(
        &self,
        series: &SeriesTable,
        elapsed: Duration,
        results: &ThresholdResults,
        setup_data: Option<&Value>,
    ) -> SummaryData {
        summary_data(&SummaryInput {
            series,
            metrics: &self.metrics,
            thresholds: self.thresholds,
            results,
            options: self.options,
            elapsed,
            setup_data,
            no_color: self.no_color,
            is_stdout_terminal: self.console.out_is_terminal(),
            is_stderr_terminal: self.console.live(),
        })
    }
}
