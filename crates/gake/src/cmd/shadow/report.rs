//! `gake shadow report` and `gake shadow convert`.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use gake_files::Access;
use gake_report::{Format, html};
use gake_shadow::compare::judge::{ShadowReport, judge};
use gake_shadow::compare::{file, show};
use gake_shadow::traffic::gakerec::{RecordingHead, RecordingWriter};
use gake_shadow::traffic::{Traffic, gor};
use gake_text::units::plural;

use super::page::shown;
use super::taps::rules;
use crate::cli::{ConvertArgs, ShadowReportArgs};
use gake_session::Console;
use gake_session::Results;
use gake_session::files::distinct;
use gake_session::options::ResultFormat;
use gake_session::options::output::files as output_files;
use gake_session::redaction;
use gake_session::{Exit, Failure};

/// Judges comparison files, and shows the reports.
///
/// # Errors
/// When a file cannot be read.
pub fn report(args: &ShadowReportArgs, console: &Console) -> Result<Exit, Failure> {
    let outputs = || args.formats.iter().chain(&args.html);
    distinct(output_files(outputs()), args.files.iter().chain(&args.rules).map(PathBuf::as_path))?;
    let results = Results::private(outputs(), true, console)?;
    let redactor = redaction::redactor(&args.redaction, console)?;
    let rules = rules(&args.rules)?;
    let mut comparisons = Vec::new();
    for path in &args.files {
        let mut read = file::read(path).map_err(|error| match error {
            file::ComparisonFileError::Read(error) => Failure::could_not(error),
            error => Failure::could_not(format!("{}: {error}", path.display())),
        })?;
        read.iter_mut().for_each(|comparison| comparison.redact(&redactor));
        comparisons.extend(read);
    }
    let terms = args.terms.terms();
    let joined = file::join(comparisons);
    let reports: Vec<_> = joined.iter().map(|one| judge(one, &rules, terms)).collect();
    results.put(console, |format, _| {
        Ok(match format {
            ResultFormat::Summary(Format::Json) => serde_json::to_string_pretty(&reports)? + "\n",
            ResultFormat::Summary(Format::Html) => {
                let page = |rows| reports.iter().map(|report| shown(report, rows)).collect();
                html::shadow::<serde_json::Value>(page)
            }
            _ => text(&reports),
        }
        .into_bytes())
    })?;
    Ok(exit(&reports))
}

/// The exit code: whether there are differences.
pub fn exit(reports: &[ShadowReport]) -> Exit {
    if reports.iter().any(|report| report.differs) { Exit::ObjectiveFailed } else { Exit::Done }
}

/// Reports to read.
pub fn text(reports: &[ShadowReport]) -> String {
    reports.iter().map(show::text).collect::<Vec<_>>().join("\n")
}

/// Writes a recording in another format.
///
/// # Errors
/// When the input cannot be read, or the output not be written.
pub fn convert(args: &ConvertArgs, console: &Console) -> Result<Exit, Failure> {
    let about = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::could_not(format!("{}: {error}", path.display()))
    };
    distinct([args.output.as_path()], [args.input.as_path()])?;
    let mut traffic = Traffic::open(&args.input).map_err(|error| about(&args.input, &error))?;
    // The start of a foreign recording is known once its first request is read.
    let first = traffic.next();
    let started_unix_ns = traffic.started_unix_ns();
    let requests = first.into_iter().chain(traffic.by_ref());
    let kind = args.output.extension().and_then(|extension| extension.to_str());
    let redactor = redaction::redactor_with(&args.redaction, args.secrets, console)?;
    let create = || {
        let created = gake_files::create(&args.output, Access::Owner);
        created.map_err(|error| about(&args.output, &error))
    };
    let mut records = 0;
    match kind {
        Some("gor") => {
            let mut out = gor::GorWriter::new(BufWriter::new(create()?), started_unix_ns, redactor);
            for record in requests {
                let record = record.map_err(|error| about(&args.input, &error))?;
                out.write(record).map_err(|error| about(&args.output, &error))?;
                records += 1;
            }
            out.flush().map_err(|error| about(&args.output, &error))?;
        }
        Some("gakerec") => {
            let head = RecordingHead { started_unix_ns };
            let mut out = RecordingWriter::create(&args.output, head, redactor, usize::MAX)
                .map_err(|error| about(&args.output, &error))?;
            for record in requests {
                let record = record.map_err(|error| about(&args.input, &error))?;
                out.write(record).map_err(|error| about(&args.output, &error))?;
                records += 1;
            }
            out.flush().map_err(|error| about(&args.output, &error))?;
        }
        _ => {
            return Err(Failure::usage(format!(
                "{}: a recording is written as .gakerec or .gor",
                args.output.display()
            )));
        }
    }
    for note in traffic.notes() {
        console.note(&note);
    }
    let (output, name) = (args.output.display(), traffic.format().name());
    console.note(&format!("{output}: {} of {name}", plural(records, "request")));
    Ok(Exit::Done)
}
