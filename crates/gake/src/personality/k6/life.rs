//! A k6 run from its command line to its exit code.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gake_core::clock::SECOND;
use gake_core::record::Ending;
use gake_core::redact::Names;
use gake_judge::Summary;
use gake_k6::metrics::registry;
use gake_k6::options::{Consolidated, Options, Tiers, from_environment, validate};
use gake_k6::secrets::Secrets;
use gake_k6::summary::{SummaryData, SummaryInput, SummaryMode, summary_data};
use gake_k6::test::{LogLevel, LogLine, ScriptLog, Test};
use gake_k6::threshold::Thresholds;
use gake_k6::user::script_user::LoadError;
use gake_k6::user::vu::VuStage;
use gake_k6::work::{REJECTED, stack_text};
use gake_run::script::{LoadedScript, ScriptRecorded, ScriptRun, ScriptRunError};
use gake_run::sink::RunFileSink;
use gake_run::{Beside, Prepared};
use serde_json::Value;

use super::beside::BesideArgs;
use super::flags::RunFlags;
use super::out::{self, Outputs};
use super::{ANY, log, network, plan};
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
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
mod code {
    use crate::exit::Exit;

    pub const THRESHOLDS: Exit = Exit::Tool(99);
    pub const SETUP_LATE: Exit = Exit::Tool(100);
    pub const TEARDOWN_LATE: Exit = Exit::Tool(101);
    pub const LATE: Exit = Exit::Tool(102);
    pub const INVALID: Exit = Exit::Tool(104);
    pub const INTERRUPTED: Exit = Exit::Tool(105);
    pub const EXCEPTION: Exit = Exit::Tool(107);
    pub const ABORTED: Exit = Exit::Tool(108);
    pub const FAILED: Exit = Exit::Tool(110);
}

/// Why there is no run.
pub(super) struct Refused {
    pub(super) why: String,
    pub(super) exit: Exit,
    /// Where that is told, once there is a log.
    log: Option<ScriptLog>,
}

/// A script with its options in force.
pub(super) struct Loaded {
    pub(super) script: LoadedScript,
    pub(super) options: Options,
    pub(super) run: ScriptRun,
    thresholds: Thresholds,
    csv_times: Option<String>,
}

/// Everything that is known before the run.
struct Ready {
    script: LoadedScript,
    options: Options,
    thresholds: Thresholds,
    run: ScriptRun,
    prepared: Prepared,
    outputs: Option<Outputs>,
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
    descriptors::raise();
    let mut ready = match ready(flags, console) {
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
    let redactor = usual(Names::default())?;
    let (own, mut sinks) = own.start(&ready.prepared, signals.interrupt(), console)?;
    if let Some(path) = native.run_file() {
        sinks.push(Box::new(RunFileSink::create(&path).map_err(Failure::could_not)?));
    }
    let beside = Beside {
        sinks,
        interrupt: Some(signals.interrupt()),
        origin: origin(&[], &redactor),
        ..Beside::default()
    };
    let thresholds = &ready.thresholds;
    let recorded = ready.script.run(&ready.run, &ready.prepared, beside, |moment| {
        let second = moment.second.second;
        if thresholds.is_empty() || second % THRESHOLDS_EVERY != 0 {
            return None;
        }
        let elapsed = Duration::from_nanos(second * SECOND);
        let results = thresholds.judge(&moment.so_far.tally().series, elapsed, false);
        results.aborts.then(|| results.message().unwrap_or_default())
    });
    for wrong in ready.outputs.take().map(Outputs::finish).unwrap_or_default() {
        console.warn(&wrong);
    }
    let test = &ready.script.test;
    match recorded {
        Ok(recorded) => {
            let (exit, summary) = finish(&ready, flags, recorded, signals.came(), native, console)?;
            own.finish(&summary, exit, console)
        }
        Err(error) => {
            say(test, &error);
            Ok(exit_of(&error))
        }
    }
}

/// Reads everything that says what is to be run.
fn ready(flags: &RunFlags, console: &Console) -> Result<Ready, Refused> {
    let log = log::log(console, flags.log_output.as_deref(), flags.verbose)
        .map_err(|why| Refused { why, exit: ANY, log: None })?;
    let Loaded { script, options, run, thresholds, csv_times } = load(flags, Arc::clone(&log))?;
    let refused = |why: String| Refused { why, exit: ANY, log: Some(Arc::clone(&log)) };
    let prepared = script.prepare(&run).map_err(|error| refused(error.to_string()))?;
    let outputs = out::start(&flags.out, &options, csv_times.as_deref()).map_err(refused)?;
    if let Some(outputs) = &outputs {
        let _ = script.test.system_tags.set(options.system_tags.clone().unwrap_or_default());
        let _ = script.test.tap.set(Arc::clone(&outputs.tap));
    }
    Ok(Ready { script, options, thresholds, run, prepared, outputs })
}

/// Loads the script, and joins the options of all tiers.
pub(super) fn load(flags: &RunFlags, log: ScriptLog) -> Result<Loaded, Refused> {
    let told_to = Arc::clone(&log);
    let refused = |why: String, exit: Exit| Refused { why, exit, log: Some(Arc::clone(&told_to)) };
    let system: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut environment = if flags.system_environment { system.clone() } else { BTreeMap::new() };
    environment.extend(flags.environment.clone());
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let (path, text) = source(&flags.script).map_err(|why| refused(why, ANY))?;
    let secrets = Secrets::read(&flags.secret_sources, |path| std::fs::read_to_string(path))
        .map_err(|why| refused(why, ANY))?;
    let script = LoadedScript::load(&path, Some(text), environment.clone(), secrets, log)
        .map_err(|error| refused(told(&error), exit_of(&error)))?;
    let invalid = |why: String| refused(why, code::INVALID);
    let Consolidated { options, warnings } =
        consolidated(&script, flags, &system).map_err(invalid)?;
    for warning in warnings {
        script.test.log(LogLevel::Warning, &warning, &[]);
    }
    validate(&options, &|name| script.has(name)).map_err(|error| invalid(error.to_string()))?;
    let none = BTreeMap::new();
    let asked = options.thresholds.as_ref().filter(|_| !flags.no_thresholds).unwrap_or(&none);
    let thresholds = Thresholds::new(asked, &registry(&script.metrics))
        .map_err(|error| invalid(error.to_string()))?;
    if let Some(why) = network::wrong_ttl(&options) {
        return Err(refused(why, ANY));
    }
    let mut run = plan::script_run(&options, &path).map_err(invalid)?;
    run.spec.seed = flags.seed.unwrap_or(run.spec.seed);
    for warning in network::warnings(&options) {
        script.test.log(LogLevel::Warning, &warning, &[]);
    }
    let mut settings = plan::user_settings(&options, environment).map_err(invalid)?;
    settings.seed = flags.seed;
    // Set once, before any user runs.
    let _ = script.test.settings.set(settings);
    let shown = serde_json::to_string(&options.shown_to_scripts()).unwrap_or_default();
    let _ = script.test.options.set(shown);
    let csv_times = system.get("K6_CSV_TIME_FORMAT").cloned();
    Ok(Loaded { script, options, run, thresholds, csv_times })
}

/// The script's absolute path, and its text.
fn source(script: &str) -> Result<(PathBuf, Vec<u8>), String> {
    if script == "-" {
        let mut text = Vec::new();
        let read = std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text);
        read.map_err(|error| format!("the script on stdin cannot be read: {error}"))?;
        return Ok((PathBuf::from("/-"), text));
    }
    let cannot = |error: std::io::Error| {
        format!("The moduleSpecifier \"{script}\" couldn't be found on local disk: {error}")
    };
    let path = std::path::absolute(script).map_err(cannot)?;
    let text = std::fs::read(&path).map_err(cannot)?;
    Ok((path, text))
}

/// The options of all tiers.
fn consolidated(
    script: &LoadedScript,
    flags: &RunFlags,
    environment: &BTreeMap<String, String>,
) -> Result<Consolidated, String> {
    let mut unknown = None;
    let mut read = |text: &str| -> Result<Options, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let read = Options::read(&value).map_err(|error| error.to_string())?;
        unknown = unknown.take().or(read.unknown);
        Ok(read.options)
    };
    let file = match flags.config.as_ref().or_else(|| environment.get("K6_CONFIG")) {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            read(&text)?
        }
        None => Options::default(),
    };
    let own = script.options.as_deref().map_or_else(|| Ok(Options::default()), &mut read)?;
    let tiers = Tiers {
        file,
        script: own,
        environment: from_environment(environment).map_err(|error| error.to_string())?,
        flags: flags.options.clone(),
    };
    let consolidated = tiers.consolidate().map_err(|error| error.to_string())?;
    if let Some(unknown) = unknown {
        let what = "There were unknown fields in the options exported in the script";
        let why = format!("json: unknown field {unknown:?}");
        script.test.log(LogLevel::Warning, what, &[("error", &why)]);
    }
    Ok(consolidated)
}

/// Shows the summary, and says how it went.
fn finish(
    ready: &Ready,
    flags: &RunFlags,
    recorded: ScriptRecorded,
    interrupted: bool,
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
    let metrics = registry(&ready.script.metrics);
    let data = summary_data(&SummaryInput {
        series: &run.tally.series,
        metrics: &metrics,
        thresholds: &ready.thresholds,
        results: &results,
        options: &ready.options,
        elapsed,
        setup_data: setup_data.as_ref(),
        no_color: flags.no_color || !console.colour_out(),
        is_stdout_terminal: console.out_is_terminal(),
        is_stderr_terminal: console.live(),
    });
    show(ready, flags, &data, console)?;
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
        return Ok((code::ABORTED, summary));
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

fn exit_of(error: &ScriptRunError) -> Exit {
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
