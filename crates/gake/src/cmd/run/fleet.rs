//! A run by the agents of a fleet.

use std::time::Duration;

use gake_core::record::Metric;
use gake_core::spec::RunSpec;
use gake_fleet::{Fleet, FleetSettings, OnLoss};
use gake_judge::Summary;
use gake_judge::units::{count, duration};
use gake_run::Prepared;

use super::local::Local;
use crate::cli::{OnLossArg, RunArgs};
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::fleet;

/// How long agents are waited for.
const WAIT: Duration = Duration::from_secs(5);

/// The agents of a run.
pub struct Assembled {
    /// Them.
    pub fleet: Fleet,
    /// Their processes, when they were started for the run. After `fleet`, which tells them first.
    _local: Option<Local>,
}

/// The agents for a run, ready to start; `None` when this process does it alone.
///
/// # Errors
/// When there are too few, or one refuses.
pub fn assemble(
    args: &RunArgs,
    spec: &RunSpec,
    prepared: &Prepared,
    console: &Console,
) -> Result<Option<Assembled>, Failure> {
    let (args, quiet) = (&args.fleet, args.output.quiet);
    let Some(agents) = args.agents.or(args.local) else {
        let nats = &args.nats;
        if nats.nats.is_some() || nats.fleet_token_file.is_some() || args.on_loss.is_some() {
            return Err(Failure::usage("how many agents? say it with --agents N or --local N"));
        }
        return Ok(None);
    };
    let local = args.local.map(Local::start).transpose()?;
    let (nats, token) = match &local {
        Some(local) => (local.nats.clone(), local.token.clone()),
        None => fleet::settings(&args.nats)?,
    };
    let settings = FleetSettings {
        nats,
        token,
        agents,
        filter: args.filter.clone(),
        on_loss: match args.on_loss {
            Some(OnLossArg::Abort) => OnLoss::Abort,
            Some(OnLossArg::Continue) | None => OnLoss::Continue,
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
        wait: args.agents_wait.unwrap_or(WAIT),
    };
    let fleet = Fleet::assemble(settings, spec, prepared).map_err(fleet::failure)?;
    if !quiet {
        console.note(&fleet.describe());
    }
    Ok(Some(Assembled { fleet, _local: local }))
}

/// What is said of the agents after a run that would end with `exit`, and how it ends.
pub fn conclude(
    Assembled { fleet, .. }: &Assembled,
    quiet: bool,
    exit: Exit,
    console: &Console,
) -> Exit {
    if !quiet {
        tell(fleet, console);
    }
    if fleet.is_aborted() {
        console.error("the run was ended because an agent was lost");
        return Exit::CouldNot;
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

fn lateness(run: &gake_core::record::Run) -> u64 {
    run.tally.latency.of(Metric::Lateness).quantile(0.99)
}
