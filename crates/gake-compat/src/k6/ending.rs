//! How the run of a script ends: its summary, and its exit code.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

use gake_core::record::RunEnd;
use gake_judge::Summary;
use gake_k6::duration::GoDuration;
use gake_k6::summary::{SummaryData, SummaryMode};
use gake_k6::test::{LogLevel, Test};
use gake_k6::user::script_user::{SummaryOutputs, SummaryReturn};
use gake_report::{Style, failed_bodies};
use gake_run::RecordedRun;
use gake_run::script::ScriptEnd;
use serde_json::Value;

use super::exit::{code, exit_of, report};
use super::flags::RunFlags;
use super::prepared_test::PreparedTest;
use super::progress;
use super::summary_figures::SummaryFigures;
use crate::NativeResult as Native;
use gake_session::Console;
use gake_session::run::writes;
use gake_session::{Exit, Failure};

/// The default time limit of `handleSummary`.
const SUMMARY_LIMIT: Duration = Duration::from_secs(120);

/// k6's warning about a run without a complete iteration.
const NO_ITERATION: &str =
    "No script iterations fully finished, consider making the test duration longer";

/// k6's warning about the summary's format before 1.0.
const LEGACY: &str = "The \"legacy\" summary mode has been deprecated, and will be removed by k6 \
                      v2.0. Please, migrate to either \"compact\" or \"full\" as soon as possible.";

/// k6's message for a run that its script marked as failed.
const MARKED_AS_FAILED: &str = "test run was marked as failed";

/// Shows the summary; returns the exit code.
///
/// # Errors
/// When a file or stream cannot be written.
pub(super) fn finish(
    ready: &PreparedTest,
    flags: &RunFlags,
    mut recorded: RecordedRun,
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
    let elapsed = test.duration(Duration::from_nanos(run.elapsed));
    let results = ready.loaded.thresholds.judge(&[&run.tally.series], elapsed, true);
    let setup_data: Option<Value> = setup_data.and_then(|json| serde_json::from_str(&json).ok());
    let context = ready.summary_context(flags, console);
    let data = context.data(&run.tally.series, elapsed, &results, setup_data.as_ref());
    let figures = SummaryFigures::new(&data, flags, test);
    // As in k6, an abort in handleSummary comes too late.
    let aborted = test.aborted();
    let changed = show(ready, flags, (&data, &figures), console)?;
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
        && let Err(why) = write(path, figures.exported(changed.as_deref()).as_bytes())
    {
        unsaved(test, &why);
    }
    let crossed = match &run.ending {
        RunEnd::Aborted(message) => Some(message.clone()),
        _ => results.message(),
    };
    let aborted_by_threshold = matches!(run.ending, RunEnd::Aborted(_));
    let is_ended = interrupted || aborted_by_threshold || aborted.is_some();
    progress::last(flags, &ready.loaded.options, test, (elapsed, is_ended), console)?;
    let mut summary = Summary::new(recorded.run, &[]);
    let is_reconciled = rows.as_ref().is_none_or(|found| found.met);
    summary.verdict.objectives.extend(rows);
    native.show(&summary, console)?;
    for error in [&setup, &teardown].into_iter().filter_map(|stage| stage.as_ref().err()) {
        report(test, error);
    }
    let is_cut = interrupted || aborted_by_threshold || aborted.is_some();
    let is_whole = setup.is_ok() && !is_cut;
    if is_whole && test.counters.completed() == 0 {
        test.log(LogLevel::Warning, NO_ITERATION, &[]);
    }
    if let Some(abort) = aborted {
        test.log(LogLevel::Error, &abort.reason, &[]);
        return Ok((if is_stopped { code::STOPPED } else { code::ABORTED }, summary));
    }
    if let Some(error) = setup.as_ref().err().or(teardown.as_ref().err()) {
        return Ok((exit_of(error), summary));
    }
    // As in k6, the first of these conditions that holds is why the test ended.
    if interrupted {
        return Ok((code::INTERRUPTED, summary));
    }
    if let Some(message) = crossed.as_ref().filter(|_| aborted_by_threshold) {
        test.log(LogLevel::Error, message, &[]);
        return Ok((code::THRESHOLDS, summary));
    }
    if test.has_failed() {
        test.log(LogLevel::Error, MARKED_AS_FAILED, &[]);
        return Ok((code::FAILED, summary));
    }
    if let Some(message) = &crossed {
        test.log(LogLevel::Error, message, &[]);
    }
    let is_good = crossed.is_none() && is_reconciled;
    Ok((if is_good { Exit::Done } else { code::THRESHOLDS }, summary))
}

/// The log line when what `handleSummary` returned cannot be used.
const UNHANDLED: &str = "failed to handle the end-of-test summary";

/// Shows what `handleSummary` returns, or the summary itself. Returns its argument after the call.
fn show(
    ready: &PreparedTest,
    flags: &RunFlags,
    (data, figures): (&SummaryData, &SummaryFigures),
    console: &Console,
) -> Result<Option<String>, Failure> {
    let mode = match flags.summary_mode.as_deref() {
        None => SummaryMode::Compact,
        Some(name) => SummaryMode::parse(name).unwrap_or_default(),
    };
    if mode == SummaryMode::Disabled {
        return Ok(None);
    }
    let mut changed = None;
    if mode == SummaryMode::Legacy {
        ready.loaded.script.test.log(LogLevel::Warning, LEGACY, &[]);
    }
    if ready.loaded.script.has("handleSummary") {
        let limit = ready.loaded.options.handle_summary_timeout;
        let limit = limit.map_or(SUMMARY_LIMIT, GoDuration::to_std);
        match ready.loaded.script.handle_summary(&figures.argument, limit) {
            Ok(Some(SummaryOutputs { data, outputs })) => {
                changed = Some(data);
                match outputs {
                    SummaryReturn::Nothing => {}
                    SummaryReturn::Outputs(outputs) => {
                        return write_files(outputs, ready, console).map(|()| changed);
                    }
                    SummaryReturn::Wrong => {
                        let why = "handleSummary() should return a map with string keys";
                        let fields = [("error", why)];
                        ready.loaded.script.test.log(LogLevel::Error, UNHANDLED, &fields);
                        return Ok(changed);
                    }
                }
            }
            Ok(None) => {}
            Err(error) => report(&ready.loaded.script.test, &error),
        }
    }
    if !ready.loaded.script.has("handleSummary") {
        // The init code runs for k6's summary, too.
        ready.loaded.script.load_again();
    }
    console.script_result(&data.text(mode))?;
    Ok(changed)
}

/// Writes what `handleSummary` returned. A file that cannot be written is logged; the other files
/// and the exit code stay.
fn write_files(
    outputs: Vec<(String, Result<Vec<u8>, String>)>,
    ready: &PreparedTest,
    console: &Console,
) -> Result<(), Failure> {
    let mut failures = String::new();
    let mut contents = Vec::new();
    for (place, content) in outputs {
        match content {
            Ok(content) => contents.push((place, content)),
            Err(name) => {
                let why = format!(
                    "error handling summary object {place}: invalid type {name}, it needs to be a \
                     string or ArrayBuffer"
                );
                ready.loaded.script.test.log(LogLevel::Error, UNHANDLED, &[("error", &why)]);
                return Ok(());
            }
        }
    }
    for (place, content) in contents {
        match place.as_str() {
            "stdout" => console.script_result(&String::from_utf8_lossy(&content))?,
            "stderr" => console.script_plain(&String::from_utf8_lossy(&content)),
            path => {
                if let Err(why) = write(path, &content) {
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

/// Logs which files of the summary could not be written: the run and its other files stand.
fn unsaved(test: &Test, failures: &str) {
    let why = format!("Could not save some summary information:{failures}");
    test.log(LogLevel::Error, UNHANDLED, &[("error", &why)]);
}

/// Writes a file of the summary. The error is a sentence in k6's words.
fn write(path: &str, content: &[u8]) -> Result<(), String> {
    let created = gake_files::create(Path::new(path), gake_files::Access::Mask);
    created.and_then(|mut file| file.write_all(content)).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::NotFound => "no such file or directory".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        format!("\n\t- could not open '{path}': open {path}: {why}")
    })
}
