//! A k6 run from its command line to its exit code.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_core::metric::Registry;
use gake_core::record::{Ending, Tally};
use gake_core::redact::Names;
use gake_judge::Summary;
use gake_k6::metrics::registry;
use gake_k6::options::Options;
use gake_k6::summary::{SummaryData, SummaryInput, SummaryMode, summary_data};
use gake_k6::test::{LogLevel, LogLine, Test};
use gake_k6::threshold::{ThresholdResults, Thresholds};
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::VuStage;
use gake_k6::work::{REJECTED, stack_text};
use gake_run::script::{LoadedScript, ScriptRecorded, ScriptRun, ScriptRunError};
use gake_run::sink::RunFileSink;
use gake_run::{Beside, Moment, Prepared};
use serde_json::Value;

use super::agents::{self, ForAgents, ScriptAgents};
use super::api::{self, Api, DEFAULT_ADDRESS};
use super::beside::BesideArgs;
use super::flags::RunFlags;
use super::load::{Loaded, Refused, load};
use super::out::{self, Outputs};
use super::{ANY, log};
use crate::cmd::run::conclude;
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::fleet::FleetMaker;
use crate::origin::origin;
use crate::personality::native::Native;
use crate::redaction::usual;
use crate::signals::Signals;

/// Thresholds are judged this often, in seconds.
const THRESHOLDS_EVERY: u64 = 2;

/// What `handleSummary` may take.
const SUMMARY_LIMIT: Duration = Duration::from_secs(120);

/// What k6 says of a run without any whole iteration.
const NO_ITERATION: &str =
    "No script iterations fully finished, consider making the test duration longer";

/// What k6 advises where `setup` took too long.
const SETUP_HINT: &str = "You can increase the time limit via the setupTimeout option";

/// What k6 advises where `teardown` took too long.
const TEARDOWN_HINT: &str = "You can increase the time limit via the teardownTimeout option";

/// What k6 says of the form of before 1.0.
const LEGACY: &str = "The \"legacy\" summary mode has been deprecated, and will be removed by k6 \
                      v2.0. Please, migrate to either \"compact\" or \"full\" as soon as possible.";

/// k6's exit codes.
pub(super) mod code {
    use crate::exit::Exit;

    pub const THRESHOLDS: Exit = Exit::Tool(99);
    pub const SETUP_LATE: Exit = Exit::Tool(100);
    pub const TEARDOWN_LATE: Exit = Exit::Tool(101);
    pub const LATE: Exit = Exit::Tool(102);
    pub const STOPPED: Exit = Exit::Tool(103);
    pub const INVALID: Exit = Exit::Tool(104);
    pub const INTERRUPTED: Exit = Exit::Tool(105);
    pub const EXCEPTION: Exit = Exit::Tool(107);
    pub const ABORTED: Exit = Exit::Tool(108);
    pub const FAILED: Exit = Exit::Tool(110);
}

/// Everything that is known before the run.
struct Ready {
    script: LoadedScript,
    options: Options,
    thresholds: Thresholds,
    run: ScriptRun,
    prepared: Prepared,
    outputs: Option<Outputs>,
    /// The options as they were given.
    given: Options,
    /// What its users see as `__ENV`.
    environment: Vec<(String, String)>,
}

/// `k6 run`.
///
/// # Errors
/// When a file or stream of gake's own cannot be used.
pub fn run(
    flags: &RunFlags,
    own: &BesideArgs,
    native: &Native,
    console: &Console,
) -> Result<Exit, Failure> {
    let maker = FleetMaker::of_script(&own.fleet)?;
    descriptors::raise();
    let mut ready = match ready(flags, maker.is_some(), console) {
        Ok(ready) => ready,
        Err(Refused { why, exit, log: Some(log) }) => {
            let hint = ("hint", "script exception".to_owned());
            let fields = if exit == code::EXCEPTION { vec![hint] } else { Vec::new() };
            log(&LogLine { level: LogLevel::Error, message: why, fields });
            return Ok(exit);
        }
        Err(Refused { why, exit, log: None }) => {
            console.error(&why);
            return Ok(exit);
        }
    };
    let signals = Signals::watch().map_err(Failure::signals)?;
    let maker = maker.map(|maker| maker.interrupted_by(signals.interrupt()));
    let redactor = usual(Names::default())?;
    let (own, mut sinks) = own.start(&ready.prepared, signals.interrupt(), console)?;
    if let Some(path) = native.run_file() {
        sinks.push(Box::new(RunFileSink::create(&path).map_err(Failure::could_not)?));
    }
    let interrupt = signals.interrupt();
    let is_paused = ready.options.paused == Some(true);
    let api = Api::new(Arc::clone(&ready.script.test), interrupt.clone(), is_paused);
    if let Err(why) = serve(&api, flags, is_paused) {
        console.error(&why);
        return Ok(ANY);
    }
    api.await_resumption();
    if is_paused && interrupt.came() {
        for wrong in ready.outputs.take().map(Outputs::finish).unwrap_or_default() {
            console.warn(&wrong);
        }
        return Ok(if api.has_stopped() { code::STOPPED } else { code::INTERRUPTED });
    }
    let beside = Beside {
        sinks,
        interrupt: Some(interrupt),
        users: Some(api.users()),
        origin: origin(&[], &redactor),
        ..Beside::default()
    };
    let mut agents = match ready.agents(maker.as_ref(), flags, console) {
        Ok(agents) => agents,
        Err(why) => {
            console.error(&why);
            return Ok(if signals.came() { code::INTERRUPTED } else { ANY });
        }
    };
    let shown = ready.shown(flags, console);
    let mut is_tainted = false;
    let each = |moment: &Moment<'_>| {
        let second = moment.second.second;
        let elapsed = Duration::from_nanos(second * SECOND);
        let judge = || shown.thresholds.judge(&moment.so_far.tally().series, elapsed, false);
        let results =
            (!shown.thresholds.is_empty() && second.is_multiple_of(THRESHOLDS_EVERY)).then(judge);
        is_tainted = results.as_ref().map_or(is_tainted, |results| results.message().is_some());
        api.second(second, is_tainted, || {
            shown.data(moment.so_far.tally(), elapsed, &judge(), None).for_script()
        });
        results
            .filter(|results| results.aborts)
            .map(|results| results.message().unwrap_or_default())
    };
    let (script, run, prepared) = (&ready.script, &ready.run, &ready.prepared);
    let recorded = match &mut agents {
        Some(agents) => script.run_elsewhere(run, prepared, agents, beside, each),
        None => script.run(run, prepared, beside, each),
    };
    let fleet = agents.and_then(ScriptAgents::finish);
    api.end();
    for wrong in ready.outputs.take().map(Outputs::finish).unwrap_or_default() {
        console.warn(&wrong);
    }
    let test = &ready.script.test;
    match recorded {
        Ok(recorded) => {
            let how = (signals.came(), api.has_stopped());
            let (exit, summary) = finish(&ready, flags, recorded, how, native, console)?;
            let exit = match &fleet {
                Some(fleet) => conclude(fleet, flags.quiet, exit, console),
                None => exit,
            };
            own.finish(&summary, exit, console)
        }
        Err(error) => {
            say(test, &error);
            Ok(if signals.came() { code::INTERRUPTED } else { exit_of(&error) })
        }
    }
}

/// Reads everything that says what is to be run.
fn ready(flags: &RunFlags, has_agents: bool, console: &Console) -> Result<Ready, Refused> {
    let log = log::log(console, flags.log_output.as_deref(), flags.verbose)
        .map_err(|why| Refused { why, exit: ANY, log: None })?;
    let loaded = load(flags, Arc::clone(&log))?;
    let Loaded { script, options, run, thresholds, outs, given, environment, .. } = loaded;
    let refused = |why: String| Refused { why, exit: ANY, log: Some(Arc::clone(&log)) };
    if let Some(why) = agents::cannot(flags, &options).filter(|_| has_agents) {
        return Err(refused(why));
    }
    let prepared = script.prepare(&run).map_err(|error| refused(error.to_string()))?;
    let outputs = out::start(&flags.out, &options, &outs).map_err(refused)?;
    if let Some(outputs) = &outputs {
        let _ = script.test.system_tags.set(options.system_tags.clone().unwrap_or_default());
        let _ = script.test.tap.set(Arc::clone(&outputs.tap));
    }
    Ok(Ready { script, options, thresholds, run, prepared, outputs, given, environment })
}

/// Shows the summary, and says how it went.
fn finish(
    ready: &Ready,
    flags: &RunFlags,
    recorded: ScriptRecorded,
    (interrupted, is_stopped): (bool, bool),
    native: &Native,
    console: &Console,
) -> Result<(Exit, Summary), Failure> {
    let test = &ready.script.test;
    let ScriptRecorded { recorded, setup_data, setup, teardown } = recorded;
    for loss in &recorded.losses {
        console.warn(&loss.text);
    }
    let run = &recorded.run;
    let elapsed = Duration::from_nanos(run.elapsed);
    let results = ready.thresholds.judge(&run.tally.series, elapsed, true);
    let setup_data: Option<Value> = setup_data.and_then(|json| serde_json::from_str(&json).ok());
    let shown = ready.shown(flags, console);
    let data = shown.data(&run.tally, elapsed, &results, setup_data.as_ref());
    show(ready, flags, &data, console)?;
    if let Some(profile) = &test.settings().profile {
        console.result(&profile.text())?;
    }
    let is_disabled = flags.summary_mode.as_deref() == Some("disabled");
    if let Some(path) = flags.summary_export.as_ref().filter(|_| !is_disabled) {
        write(path, &format!("{:#}", data.for_export()))?;
    }
    let aborted_by_threshold = matches!(run.ending, Ending::Aborted(_));
    let summary = Summary::new(recorded.run, &[]);
    native.show(&summary, console)?;
    for error in [&setup, &teardown].into_iter().filter_map(|stage| stage.as_ref().err()) {
        say(test, error);
    }
    let is_whole = setup.is_ok() && test.aborted().is_none() && !interrupted;
    if is_whole && test.levels.completed() == 0 {
        test.log(LogLevel::Warning, NO_ITERATION, &[]);
    }
    if let Some(abort) = test.aborted() {
        test.log(LogLevel::Error, &abort.reason, &[]);
        return Ok((if is_stopped { code::STOPPED } else { code::ABORTED }, summary));
    }
    if let Some(error) = setup.as_ref().err().or(teardown.as_ref().err()) {
        return Ok((exit_of(error), summary));
    }
    if let Some(message) = results.message() {
        test.log(LogLevel::Error, &message, &[]);
    }
    let exit = match (interrupted, results.message().is_some() || aborted_by_threshold) {
        (true, _) => code::INTERRUPTED,
        (false, true) => code::THRESHOLDS,
        (false, false) if test.has_failed() => code::FAILED,
        (false, false) => Exit::Done,
    };
    Ok((exit, summary))
}

/// Serves the API where the flags say, if they say it. If the default address is
/// taken, the run goes on without the API.
fn serve(api: &Arc<Api>, flags: &RunFlags, is_paused: bool) -> Result<(), String> {
    let asked = flags.address.as_deref();
    let default = flags.serves_by_default.then_some(DEFAULT_ADDRESS);
    let Some(address) = asked.or(default).filter(|address| !address.is_empty()) else {
        return match is_paused {
            true => {
                Err("a paused run needs --address HOST:PORT, through which it is resumed"
                    .to_owned())
            }
            false => Ok(()),
        };
    };
    match api::start(api, address, asked.is_some() || is_paused) {
        Err(error) if asked.is_some() || is_paused => {
            Err(format!("--address {address}: cannot listen there: {error}"))
        }
        _ => Ok(()),
    }
}

/// What a summary needs besides what was recorded.
struct Shown<'a> {
    metrics: Registry,
    thresholds: &'a Thresholds,
    options: &'a Options,
    no_color: bool,
    console: &'a Console,
}

impl Ready {
    /// The agents that are to run it, if it is not this process.
    fn agents<'a>(
        &'a self,
        maker: Option<&'a FleetMaker>,
        flags: &'a RunFlags,
        console: &'a Console,
    ) -> Result<Option<ScriptAgents<'a>>, String> {
        let Some(maker) = maker else { return Ok(None) };
        let (given, environment) = (&self.given, self.environment.as_slice());
        let script = ForAgents { script: &self.script, given, environment, flags };
        ScriptAgents::find(maker, &script, (&self.run, &self.prepared), console).map(Some)
    }

    fn shown<'a>(&'a self, flags: &RunFlags, console: &'a Console) -> Shown<'a> {
        Shown {
            metrics: registry(&self.script.metrics),
            thresholds: &self.thresholds,
            options: &self.options,
            no_color: flags.no_color || !console.colour_out(),
            console,
        }
    }
}

impl Shown<'_> {
    fn data(
        &self,
        tally: &Tally,
        elapsed: Duration,
        results: &ThresholdResults,
        setup_data: Option<&Value>,
    ) -> SummaryData {
        summary_data(&SummaryInput {
            series: &tally.series,
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

/// Shows what `handleSummary` returns, or the summary itself.
fn show(
    ready: &Ready,
    flags: &RunFlags,
    data: &SummaryData,
    console: &Console,
) -> Result<(), Failure> {
    let mode = match flags.summary_mode.as_deref() {
        None => SummaryMode::Compact,
        Some(name) => SummaryMode::parse(name).unwrap_or_default(),
    };
    if mode == SummaryMode::Disabled {
        return Ok(());
    }
    if mode == SummaryMode::Legacy {
        ready.script.test.log(LogLevel::Warning, LEGACY, &[]);
    }
    if ready.script.has("handleSummary") {
        let given = data.for_script().to_string();
        match ready.script.handle_summary(&given, SUMMARY_LIMIT) {
            Ok(returned) => {
                let returned = returned.and_then(|json| serde_json::from_str(&json).ok());
                if let Some(Value::Object(outputs)) = returned {
                    return outputs.iter().try_for_each(|(place, text)| {
                        let text = match text {
                            Value::String(text) => text.clone(),
                            other => other.to_string(),
                        };
                        match place.as_str() {
                            "stdout" => console.result(&text),
                            "stderr" => {
                                console.plain(&text);
                                Ok(())
                            }
                            path => write(path, &text),
                        }
                    });
                }
                if returned.is_some_and(|returned| !returned.is_null()) {
                    let why = "handleSummary() should return a map with string keys";
                    let fields = [("error", why)];
                    let what = "failed to handle the end-of-test summary";
                    ready.script.test.log(LogLevel::Error, what, &fields);
                    return Ok(());
                }
            }
            Err(error) => say(&ready.script.test, &error),
        }
    }
    console.result(&data.text(mode))
}

fn write(path: &str, text: &str) -> Result<(), Failure> {
    let written = gake_files::create(Path::new(path), gake_files::Access::Mask)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::could_not(format!("{path} cannot be written: {error}")))
}

/// An error as k6 tells it.
pub(super) fn told(error: &ScriptRunError) -> String {
    match error {
        ScriptRunError::Load(LoadError::Thrown(exception) | LoadError::Syntax(exception))
        | ScriptRunError::Thrown { exception, .. } => stack_text(exception),
        ScriptRunError::Rejected(exception) => format!("{REJECTED}{}", stack_text(exception)),
        other => other.to_string(),
    }
}

fn say(test: &Test, error: &ScriptRunError) {
    let hint = match error {
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => Some("script exception"),
        ScriptRunError::Late { stage: VuStage::Setup, .. } => Some(SETUP_HINT),
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => Some(TEARDOWN_HINT),
        _ => None,
    };
    let fields: Vec<(&str, &str)> = hint.map(|hint| ("hint", hint)).into_iter().collect();
    test.log(LogLevel::Error, &told(error), &fields);
}

pub(super) fn exit_of(error: &ScriptRunError) -> Exit {
    match error {
        ScriptRunError::Load(LoadError::NoMemory(_))
        | ScriptRunError::Run(_)
        | ScriptRunError::SetupData(_)
        | ScriptRunError::Rejected(_) => ANY,
        ScriptRunError::Load(LoadError::Aborted(_)) => code::ABORTED,
        ScriptRunError::Load(_) | ScriptRunError::Thrown { .. } => code::EXCEPTION,
        ScriptRunError::Late { stage: VuStage::Setup, .. } => code::SETUP_LATE,
        ScriptRunError::Late { stage: VuStage::Teardown, .. } => code::TEARDOWN_LATE,
        ScriptRunError::Late { .. } => code::LATE,
        ScriptRunError::NoFunction(_) => code::INVALID,
    }
}
