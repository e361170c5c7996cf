//! `gake report`: shows what run files hold.

use std::io;
use std::path::{Path, PathBuf};

use gake_core::record::Run;
use gake_judge::{Conclusion, Summary};
use gake_report::{join_files, merge_runs, read_run};

use super::show::Results;
use crate::cli::{ReportArgs, output_files};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::files::distinct;

/// Reads run files, merges them, and shows them like a run that has just ended. Of several files
/// those that cannot be read are told, and the rest is shown.
///
/// # Errors
/// When no file can be read.
pub fn run(args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    let outputs = || args.formats.iter().chain(&args.html);
    distinct(output_files(outputs()), args.files.iter().map(PathBuf::as_path))?;
    let Inputs { files, broken } = read(args, console)?;
    let whole = merge_runs(files.iter().map(|(_, run)| run.clone()).collect())
        .ok_or_else(|| Failure::could_not("none of the files can be read"))?;
    let results = Results::create(outputs(), args.no_color, console)?;
    let summary = Summary::new(whole, &args.slo);
    results.show(&summary, console, &|out| {
        let files: Vec<_> = files.iter().map(|(path, run)| (*path, run)).collect();
        join_files(&summary.run, &files, out).map_err(io::Error::other)
    })?;
    if broken {
        return Ok(Exit::CouldNot);
    }
    Ok(match summary.verdict.conclusion() {
        Conclusion::Done => Exit::Done,
        Conclusion::Invalid => Exit::Invalid,
        Conclusion::ObjectiveFailed => Exit::ObjectiveFailed,
    })
}

/// What could be read.
struct Inputs<'a> {
    files: Vec<(&'a Path, Run)>,
    /// Whether there are files that could not.
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
