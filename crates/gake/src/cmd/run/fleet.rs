//! What is said of the agents of a run.

use gake_core::record::{Metric, Run};
use gake_core::spec::RunSpec;
use gake_fleet::Fleet;
use gake_judge::Summary;
use gake_judge::units::{count, duration};
use gake_run::Prepared;

use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::fleet::{FleetMaker, failure};

/// The agents for a run, ready to start; `None` when this process does it alone.
///
/// # Errors
/// When there are too few, or one refuses.
pub fn assemble(
    maker: Option<&FleetMaker>,
    spec: &RunSpec,
    prepared: &Prepared,
    quiet: bool,
    console: &Console,
) -> Result<Option<Fleet>, Failure> {
    let Some(maker) = maker else { return Ok(None) };
    let fleet = maker.assemble(spec, prepared).map_err(failure)?;
    if !quiet {
        console.note(&fleet.describe());
        if maker.keeps_journal() {
            console.note(&fleet.describe_journal());
        }
    }
    Ok(Some(fleet))
}

/// What is said of the agents after a run that would end with `exit`, and how it ends.
pub fn conclude(fleet: &Fleet, quiet: bool, exit: Exit, console: &Console) -> Exit {
    if !quiet {
        tell(fleet, console);
    }
    if fleet.is_stopped() {
        console.warn("the run was told to stop");
        return Exit::Interrupted;
    }
    if let Some(why) = fleet.left() {
        console.error(&format!("these figures end early: {why}"));
        return Exit::CouldNot;
    }
    if fleet.is_aborted() {
        console.error("the run was ended because an agent was lost");
        return Exit::CouldNot;
    }
    // Users of a closed loop just stop: no count shows that they are missing.
    if fleet.unreplaced() > 0 && exit == Exit::Done {
        console.error("agents were lost: the load was not what was asked for");
        return Exit::Invalid;
    }
    exit
}

/// Says of each agent whether its figures can be believed, and which one fired latest.
fn tell(fleet: &Fleet, console: &Console) {
    let latest = fleet.runs().iter().max_by_key(|agent| lateness(&agent.run));
    for agent in fleet.runs() {
        let summary = Summary::new(agent.run.clone(), &[]);
        let (verdict, counts) = (&summary.verdict, agent.run.tally.counts);
        let mut line = format!(
            "agent {}: {}, {} sent, p99 lateness {}",
            agent.name,
            verdict.validity.name(),
            count(counts.sent),
            duration(lateness(&agent.run) as f64)
        );
        if fleet.runs().len() > 1 && latest.is_some_and(|latest| latest.name == agent.name) {
            line.push_str(" (the highest)");
        }
        for reason in &verdict.reasons {
            line.push_str(&format!("; {}", reason.text));
        }
        console.note(&line);
    }
}

fn lateness(run: &Run) -> u64 {
    run.tally.latency.of(Metric::Lateness).quantile(0.99)
}
