//! `gake experiment`: known cliffs, shown step by step on the lab and compared with theory.

mod bench;
mod capacity;
mod capacity_dimensions;
mod capacity_objectives;
mod cliff;
mod gc;
mod leak;
mod noisy_neighbour;
mod overload;
mod own_capacity;
mod pool;
mod proxy;
mod room;
mod server;
mod shadow;
mod slow_client;
mod spike;
mod theory;
mod users_calibration;
mod users_db;
mod users_real;

use std::io;

use gake_report::{Format, experiment};

use crate::cli::ExperimentArgs;
use bench::{Bench, Stopped};
use gake_session::Console;
use gake_session::Results;
use gake_session::files;
use gake_session::fleet::FleetMaker;
use gake_session::options::Form;
use gake_session::{Exit, Failure};

/// One experiment.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line.
    name: &'static str,
    /// What it shows, in a sentence.
    about: &'static str,
    /// Whether the same load makes sense on any server.
    takes_target: bool,
    /// Why agents cannot have its load, if they cannot.
    alone: Option<&'static str>,
    /// Runs its steps.
    run: fn(&mut Bench<'_>) -> Result<(), Stopped>,
}

/// The one that can have a real database.
const USERS_DB: &str = "users-db";

/// The experiments, in the order in which they are listed.
const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "spike",
        about: "N users at once on T threads: waves, and who is turned away",
        takes_target: true,
        alone: None,
        run: spike::run,
    },
    Experiment {
        name: "pool",
        about: "a pool of threads: more users than threads add waiting, and no throughput",
        takes_target: true,
        alone: None,
        run: pool::run,
    },
    Experiment {
        name: USERS_DB,
        about: "a pool without a bound in front of a database with one: Too many connections",
        takes_target: true,
        alone: None,
        run: users_db::run,
    },
    Experiment {
        name: "gc",
        about: "pauses of the whole server: what an open loop sees of them and a closed loop hides",
        takes_target: true,
        alone: None,
        run: gc::run,
    },
    Experiment {
        name: "leak",
        about: "a pool that loses a thread now and then: all is well until none is left",
        takes_target: false,
        alone: None,
        run: leak::run,
    },
    Experiment {
        name: "slow-client",
        about: "clients that send slowly hold threads, and everybody else waits",
        takes_target: true,
        alone: Some("its slow clients are connections of this process"),
        run: slow_client::run,
    },
    Experiment {
        name: "noisy-neighbour",
        about: "a busy tenant of the same pool makes a light one slow, until each has its own",
        takes_target: true,
        alone: None,
        run: noisy_neighbour::run,
    },
    Experiment {
        name: "shadow",
        about: "the shadow proxy: what it costs, and shadows that are slow, dead or different",
        takes_target: false,
        alone: Some("it measures its proxy by what this process alone sends"),
        run: shadow::run,
    },
    Experiment {
        name: "overload",
        about: "beyond the capacity: without a limit, with a bounded queue, with load shedding",
        takes_target: true,
        alone: None,
        run: overload::run,
    },
    Experiment {
        name: "cliff",
        about: "more and more users on a fast and a slow page: where throughput stops, and why",
        takes_target: true,
        alone: None,
        run: cliff::run,
    },
    Experiment {
        name: "capacity",
        about: "open against closed loop, then the capacity under objectives, in connections, over HTTP/2",
        takes_target: true,
        alone: None,
        run: capacity::run,
    },
];

/// Runs an experiment, or lists them.
///
/// # Errors
/// Why there is no result.
pub fn run(args: &ExperimentArgs, console: &Console) -> Result<Exit, Failure> {
    let found = args.name.as_deref().map(|name| {
        let found = EXPERIMENTS.iter().find(|one| one.name == name);
        found.ok_or_else(|| {
            Failure::usage(format!(
                "no experiment is called {name:?}: `gake experiment` lists them"
            ))
        })
    });
    let Some(found) = found else { return tell_all(args, console) };
    let chosen = found?;
    check(args, chosen)?;
    let output = &args.output;
    let agents = agents(args, chosen)?;
    let results = Results::create(output.results(), output.no_color, console)?;
    let mut bench = Bench::new(args, chosen, agents, console)?;
    let ended = (chosen.run)(&mut bench);
    let (interrupted, failed) = match ended {
        Ok(()) => (false, None),
        Err(Stopped::Interrupted) => (true, None),
        Err(Stopped::Failed(failure)) => {
            bench.broke_off(chosen, &failure);
            (false, Some(failure))
        }
    };
    let report = bench.finish(interrupted);
    // The steps that have ended are shown, whatever became of a later one.
    let failed = match failed {
        Some(failure) if report.steps.is_empty() => return Err(failure),
        other => other,
    };
    let is_empty = !interrupted && report.steps.is_empty() && report.notes.is_empty();
    if let (Some(part), true) = (&args.only, is_empty) {
        return Err(Failure::usage(format!("no step of {} has {part:?} in its name", chosen.name)));
    }
    results.put(console, |form, style| {
        Ok(match form {
            Form::Summary(Format::Json) => experiment::json(&report).map_err(io::Error::other)?,
            Form::Summary(Format::Html) => experiment::html(&report),
            _ => experiment::text(&report, style),
        }
        .into_bytes())
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    Ok(match (interrupted, report.unexpected()) {
        (true, _) => Exit::Interrupted,
        (false, 0) if report.nothing_ok() => {
            console.error("nothing succeeded: no step had an answer that was ok");
            Exit::CouldNot
        }
        (false, 0) if !report.is_complete => {
            console.error("steps are missing: see the notes");
            Exit::CouldNot
        }
        (false, 0) if report.disturbed() > 0 => Exit::Invalid,
        (false, 0) => Exit::Done,
        (false, _) => Exit::ObjectiveFailed,
    })
}

/// Refuses what an experiment cannot do.
fn check(args: &ExperimentArgs, chosen: &Experiment) -> Result<(), Failure> {
    if args.target.is_some() && !chosen.takes_target {
        return Err(Failure::usage(format!(
            "{} changes settings of its server between steps: it runs on the lab only",
            chosen.name
        )));
    }
    if args.db.is_some() && chosen.name != USERS_DB {
        return Err(Failure::usage(format!(
            "--db is for {USERS_DB}: {} has no users",
            chosen.name
        )));
    }
    files::distinct(args.output.files(), [])
}

/// Lists the experiments.
fn tell_all(args: &ExperimentArgs, console: &Console) -> Result<Exit, Failure> {
    if is_on_agents(args) {
        return Err(Failure::usage("--agents and --local need the name of an experiment"));
    }
    console.result(&list())?;
    Ok(Exit::Done)
}

/// Whether agents are to have the load.
fn is_on_agents(args: &ExperimentArgs) -> bool {
    args.fleet.agents.or(args.fleet.local).is_some()
}

/// The agents that have the load, if this process does not.
fn agents(args: &ExperimentArgs, chosen: &Experiment) -> Result<Option<FleetMaker>, Failure> {
    if let Some(why) = chosen.alone.filter(|_| is_on_agents(args)) {
        return Err(Failure::usage(format!("{} cannot run on agents: {why}", chosen.name)));
    }
    // The lab listens on loopback.
    if args.fleet.agents.is_some() && args.target.is_none() {
        let other = if chosen.takes_target { "give --target URL, or" } else { "use" };
        return Err(Failure::usage(format!(
            "{} starts its server for this machine only: {other} --local N for agents here",
            chosen.name
        )));
    }
    Ok(FleetMaker::of(&args.fleet)?.map(FleetMaker::without_journal))
}

/// The names, and a sentence for each.
fn list() -> String {
    let width = EXPERIMENTS.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let line = |one: &Experiment| format!("{:<width$}  {}\n", one.name, one.about);
    let lines: String = EXPERIMENTS.iter().map(line).collect();
    format!("{lines}\ngake experiment NAME runs one; --quick takes about a minute\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::EXPERIMENTS as NAMES;

    #[test]
    fn completions_name_every_experiment() {
        let names: Vec<_> = EXPERIMENTS.iter().map(|one| one.name.to_owned()).collect();
        assert_eq!(NAMES.names().map(str::to_owned).collect::<Vec<_>>(), names);
        assert!(names.iter().all(|name| list().contains(name)));
    }
}
