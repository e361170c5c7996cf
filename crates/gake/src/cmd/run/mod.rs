//! `gake run`: plan, fire, record, judge, show.

mod abort;
mod live;

use std::path::Path;

use gake_core::record::Ending;
use gake_judge::{Conclusion, Summary};
use gake_lab::{Lab, LabConfig};

use super::show::Results;
use crate::cli::RunArgs;
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use crate::files;
use crate::load::{Job, Outputs, Prepared, Watching, record};
use crate::signals::Signals;
use abort::Abort;
use live::Live;

/// The target that is a lab in this process.
const DEMO: &str = "demo";

/// Runs a load test.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let descriptors = descriptors::raise();
    let (lab, target) = target(args)?;
    let prepared = Prepared::new(args, &target)?;
    files::distinct(args.output.files(), [Path::new(&args.target)])?;
    let results = Results::create(args.output.results(), args.output.no_color, console)?;
    let mut watching = Watching::start(&args.watch, &args.judge.slo)?;
    let (outputs, log) = Outputs::create(&args.output, &prepared.plan)?;
    if !args.output.quiet {
        prepared.announce(args, descriptors, console);
    }
    let signals = Signals::watch().map_err(Failure::signals)?;
    let mut live = Live::new(args, console, &prepared.plan);
    let abort = Abort::new(args, &prepared.plan);
    let job = Job {
        plan: &prepared.plan,
        wire: &prepared.wire,
        seed: args.load.seed,
        started_unix_ns: outputs.started_unix_ns,
        log,
    };
    let recorded = record(job, Some(&signals), &mut watching, outputs, |moment, _, watched| {
        live.show(console, moment.second, moment.asked);
        abort.check(moment.so_far, moment.second, watched)
    })?;
    live.clear();
    if let Some(lab) = lab {
        lab.shutdown();
    }
    for loss in &recorded.losses {
        console.warn(loss);
    }
    let summary = Summary::new(recorded.run, &args.judge.slo);
    results.show(&summary, console, &|_| Ok(()))?;
    Ok(exit(&summary, signals.came(), console))
}

/// What is loaded, and the lab that is when it is the demo; it lives as long as it is kept.
///
/// # Errors
/// When the lab cannot be started.
pub fn target(args: &RunArgs) -> Result<(Option<Lab>, String), Failure> {
    if args.target != DEMO {
        return Ok((None, args.target.clone()));
    }
    let lab = Lab::start(LabConfig::default())
        .map_err(|error| Failure::could_not(format!("the demo server: {error}")))?;
    let url = format!("http://{}/fast", lab.addr());
    Ok((Some(lab), url))
}

/// The exit code of a run with a summary. An interrupt wins, since the figures are of a part; a
/// run in which nothing was answered could not be done; then what the verdict says.
fn exit(summary: &Summary, interrupted: bool, console: &Console) -> Exit {
    let run = &summary.run;
    if let Ending::Aborted(_) = run.ending {
        return Exit::ObjectiveFailed;
    }
    if interrupted {
        return Exit::Interrupted;
    }
    if run.tally.counts.sent > 0 && run.tally.statuses().is_empty() {
        let most = run.tally.faults().iter().max_by_key(|(_, count)| *count);
        let why = most.map_or_else(|| "every request was cut".to_owned(), |(f, _)| f.to_string());
        console.error(&format!("nothing was answered: {why}"));
        return Exit::CouldNot;
    }
    match summary.verdict.conclusion() {
        Conclusion::Done => Exit::Done,
        Conclusion::Invalid => Exit::Invalid,
        Conclusion::ObjectiveFailed => Exit::ObjectiveFailed,
    }
}
