//! `gake history`: the runs of a project.

mod list;
mod trend;

use std::path::Path;

use gake_core::record::Run;
use gake_judge::Summary;
use gake_judge::compare::Question;
use gake_report::compare::CompareReport;
use gake_report::read_run;

use crate::cli::{HistoryArgs, HistoryCommand, LISTED};
use gake_session::Results;
use gake_session::history::{Entry, Store, folder, run_file};
use gake_session::options::OutputSpec;
use gake_session::{Console, comparison};
use gake_session::{Exit, Failure};

/// Shows the history.
///
/// # Errors
/// When there is none, or it has no such run.
pub fn run(args: &HistoryArgs, console: &Console) -> Result<Exit, Failure> {
    let folder = folder()?;
    let store = Store::open(&folder)?;
    let list = HistoryCommand::List { limit: LISTED, target: None };
    match args.command.as_ref().unwrap_or(&list) {
        HistoryCommand::List { limit, target } => {
            let entries = store.newest(target.as_deref(), *limit)?;
            console.result(&list::text(&entries, &store.baselines()?))?;
            Ok(Exit::Done)
        }
        HistoryCommand::Show { run, formats } => {
            show(&folder, &store.named(run)?, formats, console)
        }
        HistoryCommand::Compare { base, run, tolerance, formats } => {
            let run = store.named(run)?;
            let base = match base {
                Some(base) => store.named(base)?,
                None => before(&store, &run)?,
            };
            let question = Question { tolerance: *tolerance, ..Question::default() };
            compared(&folder, [&base, &run], &question, formats, console)
        }
        HistoryCommand::Baseline { name, run } => {
            if name == "last" || name.trim_start_matches('#').parse::<i64>().is_ok() {
                let why = format!(
                    "{name:?} is the number of a run, or the last one: choose another name"
                );
                return Err(Failure::usage(why));
            }
            let run = store.named(run)?;
            store.set_baseline(name, run.id)?;
            console.note(&format!("{name} is run {} ({})", run.id, run.when()));
            Ok(Exit::Done)
        }
        HistoryCommand::Trend { target, limit, html } => {
            let target = match target {
                Some(target) => target.clone(),
                None => store.named("last")?.target,
            };
            let entries = store.newest(Some(&target), *limit)?;
            trend::show(&target, &entries, html.as_deref(), console)
        }
    }
}

/// The run before another one of its target.
fn before(store: &Store, run: &Entry) -> Result<Entry, Failure> {
    let entries = store.newest(Some(&run.target), u32::MAX)?;
    let earlier = entries.into_iter().rfind(|entry| entry.id < run.id && entry.file.is_some());
    earlier.ok_or_else(|| {
        Failure::could_not(format!("the history has no run of {} before {}", run.target, run.id))
    })
}

/// The path of the run file of an entry.
fn file(folder: &Path, entry: &Entry) -> Result<String, Failure> {
    let name = entry.file.as_ref().ok_or_else(|| {
        Failure::could_not(format!("{} is a search, which has no run file", entry.id))
    })?;
    Ok(run_file(folder, name).to_string_lossy().into_owned())
}

fn show(
    folder: &Path,
    entry: &Entry,
    formats: &[OutputSpec],
    console: &Console,
) -> Result<Exit, Failure> {
    if let Some(text) = &entry.text {
        if !formats.is_empty() {
            let why = format!("{} is a search, and only its text is kept: omit -o", entry.id);
            return Err(Failure::could_not(why));
        }
        console.result(text)?;
        return Ok(Exit::Done);
    }
    let path = file(folder, entry)?;
    let (run, warnings) = read_run(Path::new(&path))
        .map_err(|error| Failure::could_not(format!("{path}: {error}")))?;
    for warning in warnings {
        console.warn(&format!("{path}: {warning}"));
    }
    let results = Results::create(formats, false, console)?;
    results.show(&Summary::as_recorded(run).0, console, &|_| Ok(()))?;
    Ok(Exit::Done)
}

fn compared(
    folder: &Path,
    [a, b]: [&Entry; 2],
    question: &Question,
    formats: &[OutputSpec],
    console: &Console,
) -> Result<Exit, Failure> {
    let results = Results::create(formats, false, console)?;
    let [first, second] = [file(folder, a)?, file(folder, b)?];
    let (comparison, sides): (_, [Run; 2]) =
        comparison::files([&first, &second], question, console)?;
    let names = [a, b].map(list::name);
    let report = CompareReport {
        comparison: &comparison,
        sides: sides.each_ref(),
        names: names.each_ref().map(String::as_str),
    };
    comparison::put(results, &report, console)?;
    Ok(comparison::exit(&comparison))
}
