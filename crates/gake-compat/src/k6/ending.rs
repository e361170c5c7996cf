//! How the run of a script ends: its summary, and its exit code.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use gake_core::record::Ending;
use gake_judge::Summary;
use gake_k6::summary::{SummaryData, SummaryMode};
use gake_k6::test::{LogLevel, Test};
use gake_report::{Style, failed_bodies};
use gake_run::Recorded;
use gake_run::script::ScriptEnd;
use serde_json::{Map, Value};

use super::exit::{code, exit_of, report};
use super::flags::RunFlags;
use super::ready::Ready;
use crate::NativeResult as Native;
use gake_session::Console;
use gake_session::run::writes;
use gake_session::{Exit, Failure};

/// What `handleSummary` may take.
const SUMMARY_LIMIT: Duration = Duration::from_secs(120);

/// k6's warning of a run without any whole iteration.
const NO_ITERATION: &str =
    "No script iterations fully finished, consider making the test duration longer";

/// k6's warning of the summary's form before 1.0.
const LEGACY: &str = "The \"legacy\" summary mode has been deprecated, and will be removed by k6 \
                      v2.0. Please, migrate to either \"compact\" or \"full\" as soon as possible.";

/// Shows the summary; returns the exit code.
///
/// # Errors
/// When a file or stream cannot be written.
pub(super) fn finish(
    ready: &Ready,
    flags: &RunFlags,
    mut recorded: Recorded,
    (interrupted, is_stopped): (bool, bool),
    native: &Native,
    console: &Console,
) -> Result<(Exit, Summary), Failure> {
    let test = &ready.loaded.script.test;
    // A run of k6 fires one script.
    let end = recorded.scripts.pop().unwrap_or_else(ScriptEnd::void);
    let ScriptEnd { setup_data, setup, teardown } = end;
    for loss in &recorded.losses {
        console.warn(&loss.text);
    }
    let run = &recorded.run;
    let elapsed = Duration::from_nanos(run.elapsed);
    let results = ready.loaded.thresholds.judge(&[&run.tally.series], elapsed, true);
    let setup_data: Option<Value> = setup_data.and_then(|json| serde_json::from_str(&json).ok());
    let shown = ready.shown(flags, console);
    let data = shown.data(&run.tally.series, elapsed, &results, setup_data.as_ref());
    show(ready, flags, &data, console)?;
    if flags.settings.failed_bodies {
        console.result(&failed_bodies(&run.bodies, Style::default()))?;
    }
    let rows = ready.rows.as_ref().map(|rows| writes::judge(rows, &run.tally.series));
    if let Some(found) = &rows {
        console.result(&writes::line(found))?;
    }
    if let Some(profile) = &test.settings().profile {
        console.result(&profile.text())?;
    }
    let is_disabled = flags.summary_mode.as_deref() == Some("disabled");
    if let Some(path) = flags.summary_export.as_ref().filter(|_| !is_disabled)
        && let Err(why) = write(path, &format!("{:#}", data.for_export()))
    {
        unsaved(test, &why);
    }
    let aborted_by_threshold = matches!(run.ending, Ending::Aborted(_));
    let mut summary = Summary::new(recorded.run, &[]);
    let is_reconciled = rows.as_ref().is_none_or(|found| found.met);
    summary.verdict.objectives.extend(rows);
    native.show(&summary, console)?;
    for error in [&setup, &teardown].into_iter().filter_map(|stage| stage.as_ref().err()) {
        report(test, error);
    }
    let is_cut = interrupted || aborted_by_threshold || test.aborted().is_some();
    let is_whole = setup.is_ok() && !is_cut;
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
        (false, false) if !is_reconciled => code::THRESHOLDS,
        (false, false) => Exit::Done,
    };
    Ok((exit, summary))
}

/// The log line when what `handleSummary` returned cannot be used.
const UNHANDLED: &str = "failed to handle the end-of-test summary";

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
        ready.loaded.script.test.log(LogLevel::Warning, LEGACY, &[]);
    }
    if ready.loaded.script.has("handleSummary") {
        let given = data.for_script().to_string();
        match ready.loaded.script.handle_summary(&given, SUMMARY_LIMIT) {
            Ok(returned) => {
                let returned = returned.and_then(|json| serde_json::from_str(&json).ok());
                if let Some(Value::Object(outputs)) = returned {
                    return give(&outputs, ready, console);
                }
                if returned.is_some_and(|returned| !returned.is_null()) {
                    let why = "handleSummary() should return a map with string keys";
                    let fields = [("error", why)];
                    ready.loaded.script.test.log(LogLevel::Error, UNHANDLED, &fields);
                    return Ok(());
                }
            }
            Err(error) => report(&ready.loaded.script.test, &error),
        }
    }
    console.result(&data.text(mode))
}

/// Writes what `handleSummary` returned. A file that cannot be written is no reason to lose the
/// others, or the run's result: it is logged.
fn give(outputs: &Map<String, Value>, ready: &Ready, console: &Console) -> Result<(), Failure> {
    let mut failures = String::new();
    let mut texts = Vec::new();
    for (place, value) in outputs {
        let Value::String(text) = value else {
            let why = format!(
                "error handling summary object {place}: invalid type {}, it needs to be a string \
                 or ArrayBuffer",
                type_in_go(value)
            );
            ready.loaded.script.test.log(LogLevel::Error, UNHANDLED, &[("error", &why)]);
            return Ok(());
        };
        texts.push((place.as_str(), text));
    }
    for (place, text) in texts {
        match place {
            "stdout" => console.coloured_result(text)?,
            "stderr" => console.coloured_plain(text),
            path => {
                if let Err(why) = write(path, text) {
                    failures += &why;
                }
            }
        }
    }
    if !failures.is_empty() {
        unsaved(&ready.loaded.script.test, &failures);
    }
    Ok(())
}

/// Says which files of the summary could not be written: the run and its other files stand.
fn unsaved(test: &Test, failures: &str) {
    let why = format!("Could not save some summary information:{failures}");
    test.log(LogLevel::Error, UNHANDLED, &[("error", &why)]);
}

/// What k6 calls the type of a value.
fn type_in_go(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Writes a file of the summary; why it cannot, in a line of k6's words.
fn write(path: &str, text: &str) -> Result<(), String> {
    let created = gake_files::create(Path::new(path), gake_files::Access::Mask);
    created
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| format!("\n\t- could not open '{path}': {error}"))
}
