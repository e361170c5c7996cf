//! `gake run`: plan, fire, record, judge, show.

mod asks;
mod drive;
mod live;
mod outputs;
mod plan;

use std::sync::Arc;

use gake_core::plan::Plan;
use gake_core::record::Ending;
use gake_judge::{Conclusion, Summary};
use gake_lab::{Lab, LabConfig};
use gake_wire::Wire;

use super::show::show;
use crate::cli::RunArgs;
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};
use outputs::Outputs;

/// The target that is a lab in this process.
const DEMO: &str = "demo";

/// Descriptors that are not connections: the standard streams, timers, files, the lab's own.
const OTHER_DESCRIPTORS: u64 = 64;

/// Runs a load test.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let descriptors = descriptors::raise();
    let lab = if args.target == DEMO { Some(start_lab()?) } else { None };
    let target = match &lab {
        Some(lab) => format!("http://{}/fast", lab.addr()),
        None => args.target.clone(),
    };
    let sent = asks::asks(&args.request, &target)?;
    let scheme_assumed = sent.scheme_assumed;
    let settings = plan::settings(&args.load, &args.connection)?;
    let (resolver, tls) = plan::ways(&args.connection)?;
    let wire = Wire::prepare(&sent.asks, &resolver, &tls, settings)
        .map_err(|error| asks::wire_failure(error, &sent))?;
    let plan = Arc::new(plan::plan(args, sent.name, &wire)?);
    let outputs = Outputs::create(&args.output, &plan)?;
    announce(args, console, &plan, &wire, (scheme_assumed, descriptors));
    let driven = drive::drive(args, console, &plan, Arc::new(wire), outputs)?;
    if let Some(lab) = lab {
        lab.shutdown();
    }
    let summary = Summary::new(driven.run, &args.judge.slo);
    show(&summary, args.output.format, args.output.no_color, console)?;
    Ok(exit(&summary, driven.interrupted, console))
}

fn start_lab() -> Result<Lab, Failure> {
    Lab::start(LabConfig::default())
        .map_err(|error| Failure::could_not(format!("the demo server: {error}")))
}

/// Says what will be done, and what will probably get in its way.
fn announce(
    args: &RunArgs,
    console: &Console,
    plan: &Plan,
    wire: &Wire,
    (scheme_assumed, descriptors): (bool, u64),
) {
    if args.output.quiet {
        return;
    }
    if scheme_assumed {
        console.note(&format!("{} has no scheme: http is assumed", args.target));
    }
    for note in &wire.notes {
        console.note(note);
    }
    let connections = plan.connections + plan.idle_connections;
    if connections as u64 + OTHER_DESCRIPTORS > descriptors {
        console.warn(&format!(
            "{connections} connections need more than the {descriptors} file descriptors of this \
             process; those over it will fail as no_descriptors (raise `ulimit -Hn`)"
        ));
    }
    console.note(&plan.to_string());
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
