//! Compares run files and prints the comparison.

use std::path::Path;

use gake_core::record::Run;
use gake_judge::compare::{
    CompareOptions, ComparedRun, Comparison, ComparisonOutcome, FigureSelection, RunMetrics,
    RunObservations, compare,
};
use gake_report::compare::{CompareReport, json, markdown, text};
use gake_report::{Format, ReadError, RunSeconds, html, read_run};

use crate::options::ResultFormat;
use crate::{Console, Exit, Failure, Results};

/// Compares two run files.
///
/// # Errors
/// When a file cannot be read, or lacks a requested figure.
pub fn files(
    names: [&str; 2],
    question: &CompareOptions,
    console: &Console,
) -> Result<(Comparison, [Run; 2]), Failure> {
    let (a, b) = (read(names[0], console)?, read(names[1], console)?);
    let figures = figures(question, [&a, &b].map(known))?;
    let (a, b) = (sample(names[0], a, &figures)?, sample(names[1], b, &figures)?);
    Ok((compare(&a, &b, &figures, question), [a.run, b.run]))
}

/// Prints a comparison and writes it to files.
///
/// # Errors
/// When it cannot be written.
pub fn put(results: Results, report: &CompareReport<'_>, console: &Console) -> Result<(), Failure> {
    results.put(console, |format, style| {
        let text = match format {
            ResultFormat::Summary(Format::Json) => json(report)?,
            ResultFormat::Summary(Format::Markdown) => markdown(report),
            ResultFormat::Summary(Format::Html) => html::compare(report),
            _ => text(report, style),
        };
        Ok(text.into_bytes())
    })
}

/// The exit code of a comparison.
pub fn exit(comparison: &Comparison) -> Exit {
    match comparison.outcome {
        ComparisonOutcome::Worse => Exit::ObjectiveFailed,
        ComparisonOutcome::Inconclusive | ComparisonOutcome::Different => Exit::Invalid,
        ComparisonOutcome::Better | ComparisonOutcome::NoDifference => Exit::Done,
    }
}

fn known(run: &Run) -> RunMetrics<'_> {
    RunMetrics { plan: &run.plan, series: &run.tally.series }
}

/// The figures to compare.
///
/// # Errors
/// When the runs lack one of them.
pub fn figures(
    question: &CompareOptions,
    runs: [RunMetrics<'_>; 2],
) -> Result<FigureSelection, Failure> {
    FigureSelection::of(question, runs)
        .map_err(|error| Failure::usage(format!("--figures: {error}")))
}

fn unread(name: &str, error: &ReadError) -> Failure {
    let hint = if name.contains("://") { "; to run it, add --interleave" } else { "" };
    Failure::could_not(format!("{name}: {error}{hint}"))
}

fn read(name: &str, console: &Console) -> Result<Run, Failure> {
    let (run, warnings) = read_run(Path::new(name)).map_err(|error| unread(name, &error))?;
    for warning in warnings {
        console.warn(&format!("{name}: {warning}"));
    }
    Ok(run)
}

/// Second pass over a run file: it counts against quantiles of the whole run.
fn sample(name: &str, run: Run, figures: &FigureSelection) -> Result<ComparedRun, Failure> {
    let wrong = |error| unread(name, &error);
    let mut observations = RunObservations::new(&run, figures);
    let mut seconds = RunSeconds::open(Path::new(name)).map_err(wrong)?;
    while let Some(second) = seconds.next_second().map_err(wrong)? {
        observations.add(second.at, second.asked, &second.tally, &second.scenarios);
    }
    Ok(ComparedRun { run, observations })
}
