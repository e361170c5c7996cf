//! `gake report`: shows run files.

use std::io;
use std::path::{Path, PathBuf};

use gake_core::record::Run;
use gake_judge::Summary;
use gake_report::{Format, html, join_files, merge_runs, read_run};

use crate::cli::ReportArgs;
use gake_session::Console;
use gake_session::Results;
use gake_session::files::distinct;
use gake_session::options::OutputSpec;
use gake_session::options::ResultFormat;
use gake_session::options::output::files as output_files;
use gake_session::{Exit, Failure};

/// Reads run files, merges them, and shows them like a run that has just ended. Of several files
/// unreadable ones are reported, and the rest is shown.
///
/// # Errors
/// When no file can be read.
pub fn run(args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    let outputs = || args.formats.iter().chain(&args.html);
    let page = |output: &OutputSpec| output.format == ResultFormat::Summary(Format::Html);
    if args.over.is_some() && !outputs().any(page) {
        return Err(Failure::usage(
            "--over lays a run under the charts of a page: add --html FILE",
        ));
    }
    distinct(output_files(outputs()), args.files.iter().chain(&args.over).map(PathBuf::as_path))?;
    let Inputs { files, broken } = read(args, console)?;
    let whole = merge_runs(files.iter().map(|(_, run)| run.clone()).collect())
        .ok_or_else(|| Failure::could_not("none of the files can be read"))?;
    let results = Results::create(outputs(), args.no_color, console)?;
    let summary = judged(whole, args, console);
    let over = args.over.as_deref().map(|path| behind(path, console)).transpose()?;
    results.put(console, |format, style| {
        let mut text = Vec::new();
        match (format, &over) {
            (ResultFormat::Hlog, _) => {
                let files: Vec<_> = files.iter().map(|(path, run)| (*path, run)).collect();
                join_files(&summary.run, &files, &mut text).map_err(io::Error::other)?;
            }
            (ResultFormat::Summary(Format::Html), Some((name, over))) => {
                let page = html::run_over(&summary, name, over);
                text.extend_from_slice(page.as_bytes());
            }
            (ResultFormat::Summary(format), _) => {
                gake_report::write(&summary, format, style, &mut text)?;
            }
        }
        Ok(text)
    })?;
    if broken {
        return Ok(Exit::CouldNot);
    }
    Ok(console.conclude(&summary.verdict))
}

/// The run drawn behind the charts, and its name.
fn behind(path: &Path, console: &Console) -> Result<(String, Summary), Failure> {
    let (run, warnings) = read_run(path)
        .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
    for warning in warnings {
        console.warn(&format!("{}: {warning}", path.display()));
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok((name, Summary::as_recorded(run).0))
}

/// The verdict: on the given objectives, else on the runs' own. Objectives that this version does
/// not understand are reported and left out.
fn judged(run: Run, args: &ReportArgs, console: &Console) -> Summary {
    if !args.slo.is_empty() {
        return Summary::new(run, &args.slo);
    }
    let (summary, unread) = Summary::as_recorded(run);
    for error in unread {
        console.warn(&format!("in the run file: {error}"));
    }
    summary
}

/// The readable files.
struct Inputs<'a> {
    files: Vec<(&'a Path, Run)>,
    /// Whether some files were unreadable.
    broken: bool,
}

fn read<'a>(args: &'a ReportArgs, console: &Console) -> Result<Inputs<'a>, Failure> {
    let mut inputs = Inputs { files: Vec::with_capacity(args.files.len()), broken: false };
    for path in &args.files {
        match read_run(path) {
            Ok((run, warnings)) => {
                for warning in warnings {
                    console.warn(&format!("{}: {warning}", path.display()));
                }
                inputs.files.push((path.as_path(), run));
            }
            Err(error) => {
                let sentence = format!("{}: {error}", path.display());
                if args.files.len() == 1 {
                    return Err(Failure::could_not(sentence));
                }
                console.error(&format!("{sentence}; the others are shown without it"));
                inputs.broken = true;
            }
        }
    }
    Ok(inputs)
}
