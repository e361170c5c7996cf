//! `gake run`: plan, fire, record, judge, show.

mod asks;
mod drive;
mod live;
mod plan;

use std::sync::Arc;

use gake_core::plan::Plan;
use gake_judge::{Conclusion, Summary};
use gake_lab::{Lab, LabConfig};
use gake_wire::Wire;

use crate::cli::RunArgs;
use crate::console::Console;
use crate::descriptors;
use crate::exit::{Exit, Failure};

/// The target that is a lab in this process.
const DEMO: &str = "demo";

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
    let settings = plan::settings(&args.load, &args.connection)?;
    let (resolver, tls) = plan::ways(&args.connection)?;
    let wire = Wire::prepare(&sent.asks, &resolver, &tls, settings)
        .map_err(|error| asks::wire_failure(error, &sent))?;
    let plan = Arc::new(plan::plan(args, sent.name, &wire)?);
    announce(args, console, &plan, &wire, descriptors);
    let outputs = drive::Outputs::create(args, &plan)?;
    let driven = drive::drive(args, console, &plan, Arc::new(wire), outputs)?;
    let summary = Summary::new(driven.run, &args.judge.slo);
    let shown = show(args, console, &summary);
    if let Some(lab) = lab {
        lab.shutdown();
    }
    shown?;
    Ok(exit(&summary, driven.interrupted, console))
}

fn start_lab() -> Result<Lab, Failure> {
    Lab::start(LabConfig::default())
        .map_err(|error| Failure::could_not(format!("the demo server: {error}")))
}

/// Says what will be done, and what will probably get in its way.
fn announce(args: &RunArgs, console: &Console, plan: &Plan, wire: &Wire, descriptors: u64) {
    if args.output.quiet {
        return;
    }
    for note in &wire.notes {
        console.note(note);
    }
    let needed = plan.connections as u64 + plan.idle_connections as u64 + 32;
    if needed > descriptors {
        console.warn(&format!(
            "{} connections need more than the {descriptors} file descriptors of this process; \
             those over it will fail as no_descriptors (raise `ulimit -Hn`)",
            plan.connections + plan.idle_connections
        ));
    }
    console.note(&plan.to_string());
}

fn show(_args: &RunArgs, console: &Console, summary: &Summary) -> Result<(), Failure> {
    let run = &summary.run;
    let r = run.tally.latency.response();
    console.result(&format!(
        "{:?}\nwarm {:?}\nasked {:?} measured {} sending {} elapsed {}\np50 {} p95 {} p99 {} max {}\nlate p50 {} p99 {}\n{:?} {:?}\n{:?}\n{:?}\n",
        run.tally.counts, run.warmup.sent, run.asked_rate, run.measured, run.sending, run.elapsed,
        r.quantile(0.5), r.quantile(0.95), r.quantile(0.99), r.max(),
        run.tally.latency.of(gake_core::record::Metric::Lateness).quantile(0.5),
        run.tally.latency.of(gake_core::record::Metric::Lateness).quantile(0.99),
        run.tally.statuses(), run.tally.faults(), run.generator, summary.verdict,
    ))
}

/// The exit code of a run with a summary. An interrupt wins, since the figures are of a part; then
/// what the verdict says; a run in which nothing was answered could not be done.
fn exit(summary: &Summary, interrupted: bool, console: &Console) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    let tally = &summary.run.tally;
    if tally.counts.sent > 0 && tally.statuses().is_empty() {
        let most = tally.faults().iter().max_by_key(|(_, count)| *count);
        if let Some((fault, _)) = most {
            console.error(&format!("nothing was answered: {fault}"));
        }
        return Exit::CouldNot;
    }
    match summary.verdict.conclusion() {
        Conclusion::Done => Exit::Done,
        Conclusion::Invalid => Exit::Invalid,
        Conclusion::ObjectiveFailed => Exit::ObjectiveFailed,
    }
}
