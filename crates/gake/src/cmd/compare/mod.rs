//! `gake compare`: are two runs different, and with what confidence?

mod alternating;

use std::path::Path;

use gake_judge::compare::Question;
use gake_report::compare::CompareReport;
use gake_text::redact::SecretNames;

use crate::cli::CompareArgs;
use gake_session::Results;
use gake_session::files::distinct;
use gake_session::options::output::files as output_files;
use gake_session::redaction::usual;
use gake_session::{Console, comparison};
use gake_session::{Exit, Failure};

/// Compares two run files, or alternating runs of two sides.
///
/// # Errors
/// When a file cannot be read, or a side cannot be run.
pub fn run(args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    let question = Question { tolerance: args.tolerance, figures: args.figure_names() };
    let outputs = || args.formats.iter().chain(&args.html);
    distinct(output_files(outputs()), [&args.a, &args.b].map(Path::new))?;
    let results = Results::create(outputs(), args.no_color, console)?;
    let redactor = usual(SecretNames::default())?;
    let (comparison, sides, interrupted) = if args.interleave {
        let runs = alternating::run(args, &question, &redactor, console)?;
        (runs.compare(&question), runs.wholes, runs.interrupted)
    } else {
        let (comparison, sides) = comparison::files([&args.a, &args.b], &question, console)?;
        (comparison, sides, false)
    };
    let names = [&args.a, &args.b].map(|name| redactor.text(name));
    let report = CompareReport {
        comparison: &comparison,
        sides: sides.each_ref(),
        names: names.each_ref().map(|name| &**name),
    };
    comparison::put(results, &report, console)?;
    Ok(if interrupted { Exit::Interrupted } else { comparison::exit(&comparison) })
}
