//! `gake experiment`: known cliffs, shown step by step on the lab and compared with theory.

use std::io;

use gake_experiments::{Experiment, ExperimentSettings, MachineLimits, StepError, experiments};
use gake_report::experiment::ExperimentReport;
use gake_report::{Format, experiment};
use gake_session::fleet::FleetMaker;
use gake_session::options::ResultFormat;
use gake_session::{Console, Exit, Failure, Results, files};

use super::doctor::Facts;
use crate::cli::ExperimentArgs;

/// Runs an experiment, or lists them.
///
/// # Errors
/// When there is no result.
pub fn run(args: &ExperimentArgs, console: &Console) -> Result<Exit, Failure> {
    let all = experiments()?;
    let Some(name) = args.name.as_ref().filter(|name| *name != "list") else {
        if is_on_agents(args) {
            return Err(Failure::usage("--agents and --local need the name of an experiment"));
        }
        console.result(&list(&all))?;
        return Ok(Exit::Done);
    };
    let chosen = all.iter().find(|one| one.name == *name).ok_or_else(|| {
        let known = "`gake experiment` lists them";
        Failure::usage(format!("no experiment is called {name:?}: {known}"))
    })?;
    let settings = settings(args)?;
    chosen.check(&settings)?;
    files::distinct(args.output.files(), [])?;
    let agents = agents(args, chosen)?;
    let results = Results::create(args.output.results(), args.output.no_color, console)?;
    let (report, stopped) = chosen.run(&settings, agents, console)?;
    let has_steps = !report.steps.is_empty();
    let stopped = match stopped {
        // Completed steps are shown even if a later one failed.
        Some(StepError::Failed(failure)) if !has_steps => return Err(failure),
        other => other,
    };
    let is_empty = stopped.is_none() && !has_steps && report.notes.is_empty();
    if let (Some(text), true) = (&args.only, is_empty) {
        return Err(Failure::usage(format!("no step of {name} has {text:?} in its name")));
    }
    results.put(console, |format, style| {
        Ok(match format {
            ResultFormat::Summary(Format::Json) => {
                experiment::json(&report).map_err(io::Error::other)?
            }
            ResultFormat::Summary(Format::Html) => experiment::html(&report),
            _ => experiment::text(&report, style),
        }
        .into_bytes())
    })?;
    exit(&report, stopped, console)
}

fn exit(
    report: &ExperimentReport,
    stopped: Option<StepError>,
    console: &Console,
) -> Result<Exit, Failure> {
    let could_not = |why: &str| {
        console.error(why);
        Ok(Exit::CouldNot)
    };
    match (stopped, report.unexpected()) {
        (Some(StepError::Failed(failure)), _) => Err(failure),
        (Some(StepError::Interrupted), _) => Ok(Exit::Interrupted),
        (None, 0) if report.nothing_ok() => {
            could_not("nothing succeeded: no step had a response that was ok")
        }
        (None, 0) if !report.is_complete => could_not("steps are missing: see the notes"),
        (None, 0) if report.disturbed() > 0 => Ok(Exit::Invalid),
        (None, 0) => Ok(Exit::Done),
        (None, _) => Ok(Exit::ObjectiveFailed),
    }
}

fn settings(args: &ExperimentArgs) -> Result<ExperimentSettings, Failure> {
    let facts = Facts::read();
    let store = args.db.as_ref().map(|arg| arg.store()).transpose()?;
    let written = args.db.as_ref().map(|arg| arg.0.clone());
    Ok(ExperimentSettings {
        target: args.target.clone(),
        watch: args.watch.iter().map(|source| source.0.clone()).collect(),
        database: written.zip(store),
        quick: args.quick,
        only: args.only.clone(),
        quiet: args.output.quiet,
        limits: MachineLimits {
            files: facts.files,
            ports_per_source: facts.ports_per_source(),
            memory: facts.memory_free(),
        },
    })
}

/// Whether agents generate the load.
fn is_on_agents(args: &ExperimentArgs) -> bool {
    args.fleet.agents.or(args.fleet.local).is_some()
}

/// The agents that generate the load, if this process does not.
fn agents(args: &ExperimentArgs, chosen: &Experiment) -> Result<Option<FleetMaker>, Failure> {
    let name = &chosen.name;
    if let Some(why) = chosen.no_agents.as_ref().filter(|_| is_on_agents(args)) {
        return Err(Failure::usage(format!("{name} cannot run on agents: {why}")));
    }
    // The lab listens on loopback.
    if args.fleet.agents.is_some() && args.target.is_none() {
        let other = if chosen.takes_target { "give --target URL, or" } else { "use" };
        return Err(Failure::usage(format!(
            "{name} starts its server for this machine only: {other} --local N for agents here"
        )));
    }
    Ok(FleetMaker::of(&args.fleet)?.map(FleetMaker::without_journal))
}

/// The names, and a sentence for each.
fn list(all: &[Experiment]) -> String {
    let width = all.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let line = |one: &Experiment| format!("{:<width$}  {}\n", one.name, one.about);
    let lines: String = all.iter().map(line).collect();
    format!("{lines}\ngake experiment NAME runs one; --quick takes about a minute\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::EXPERIMENTS as NAMES;

    #[test]
    fn completions_name_every_experiment() {
        let all = experiments().unwrap();
        let names: Vec<_> = all.iter().map(|one| one.name.clone()).collect();
        assert_eq!(NAMES.names().map(str::to_owned).collect::<Vec<_>>(), names);
        assert!(names.iter().all(|name| list(&all).contains(name)));
    }
}
