//! `gake report`: shows what run files hold.

use gake_judge::{Conclusion, Summary};
use gake_report::{merge_runs, read_run};

use super::show::show;
use crate::cli::ReportArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure};

/// Reads run files, merges them, and shows them like a run that has just ended.
///
/// # Errors
/// When a file cannot be read.
pub fn run(args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    let mut runs = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let (run, warnings) = read_run(path)
            .map_err(|error| Failure::could_not(format!("{}: {error}", path.display())))?;
        for warning in warnings {
            console.warn(&format!("{}: {warning}", path.display()));
        }
        runs.push(run);
    }
    let run = merge_runs(runs).ok_or_else(|| Failure::usage("there is no file to report"))?;
    let summary = Summary::new(run, &args.slo);
    show(&summary, args.format, args.no_color, console)?;
    Ok(match summary.verdict.conclusion() {
        Conclusion::Done => Exit::Done,
        Conclusion::Invalid => Exit::Invalid,
        Conclusion::ObjectiveFailed => Exit::ObjectiveFailed,
    })
}
