//! gake as oha.

mod database;
mod options;
mod report;
mod requests;
mod stats;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use gake_core::clock::SECOND;
use gake_core::spec::RunSpec;
use gake_run::unix_now;
use gake_session::files::create;
use gake_session::redaction::redactor_for;
use gake_session::{Console, Exit, Failure};
use gake_text::foreign;
use gake_text::redact::SecretNames;

use crate::NativeResult;
use crate::flags::CommandLine;
use crate::outcome_stats::{StatsCollector, rows};
use crate::tool_run::{OutcomeHandler, ToolResult, ToolRun};
use database::{Database, Rows};
use options::{OhaOptions, OutputFormat, USAGE};
use report::{CSV_HEADER, Oha, csv_row, json, text};
use stats::OhaStats;

/// Runs oha's command line.
///
/// # Errors
/// When it cannot be read, or the run could not be done.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    match OhaOptions::read(args).map_err(Failure::usage)? {
        CommandLine::Help => console.result(USAGE)?,
        CommandLine::Version => {
            console.result(concat!("oha gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
        }
        CommandLine::Run(options) => run(&options, native, console)?,
    }
    Ok(Exit::Done)
}

fn run(options: &OhaOptions, native: &NativeResult, console: &Console) -> Result<(), Failure> {
    if let Some(count) = options.parsed.get("dump-urls").map_err(Failure::usage)? {
        let urls = requests::random_urls(&options.parsed, &options.target, Some(count))?;
        return console.result(&(urls.join("\n") + "\n"));
    }
    let spec = options.spec()?;
    if options.debug {
        return debug(spec, native, console);
    }
    let urls = database::urls(&spec);
    let run = ToolRun::prepare(spec, native, console)?;
    let database = options.parsed.last("db-url");
    native.check_conflicts(options.output.as_deref().into_iter().chain(database))?;
    let database = database.map(|path| Database::open(Path::new(path))).transpose()?;
    let mut file = options.output.as_deref().map(Path::new).map(create).transpose()?;
    let stats = StatsCollector::new(OhaStats::new(options.corrected()));
    let handler = match options.format {
        OutputFormat::Csv => Some(csv(options, file.take(), console)?),
        OutputFormat::Quiet => None,
        OutputFormat::Text | OutputFormat::Json => Some(stats.each(OhaStats::record)),
    };
    let handler = match &database {
        Some(database) => {
            let started = i64::try_from(unix_now() / SECOND).unwrap_or(i64::MAX);
            let rows = Rows { urls, corrected: options.corrected(), run: started };
            Some(both(handler, database.handler(rows)))
        }
        None => handler,
    };
    let result = run.run(handler, &mut |_| None)?;
    result.warn_of_loss(console);
    let stats = stats.finish();
    let oha = figures(options, &result, &stats);
    let text = match options.format {
        OutputFormat::Csv | OutputFormat::Quiet => None,
        OutputFormat::Json => Some(json(&oha)),
        OutputFormat::Text => Some(text(&oha, options.unit)),
    };
    match (&mut file, text) {
        (_, None) => {}
        (Some(file), Some(text)) => {
            file.write_all(foreign::lines(&text).as_bytes()).map_err(write_failure)?;
        }
        (None, Some(text)) => console.result(&text)?,
    }
    let (Some(database), Some(path)) = (database, options.parsed.last("db-url")) else {
        return Ok(());
    };
    console.plain(&format!("Storing results to {path}\n"));
    database.finish()
}

/// `--debug`: one request and its response, shown.
fn debug(spec: RunSpec, native: &NativeResult, console: &Console) -> Result<(), Failure> {
    let prepared = ToolRun::prepare(spec.clone(), native, console)?.prepared;
    let redactor = redactor_for(SecretNames::default())?;
    gake_session::debug::debug(&prepared, &spec, &redactor, console).map(|_| ())
}

/// Passes outcomes to two handlers.
fn both(first: Option<OutcomeHandler>, mut second: OutcomeHandler) -> OutcomeHandler {
    let Some(mut first) = first else { return second };
    Box::new(move |outcomes| {
        first(outcomes)?;
        second(outcomes)
    })
}

fn write_failure(error: io::Error) -> Failure {
    Failure::could_not(format!("the result cannot be written: {error}"))
}

fn figures<'a>(options: &OhaOptions, result: &'a ToolResult, stats: &'a OhaStats) -> Oha<'a> {
    let run = &result.run;
    Oha {
        total: run.elapsed,
        latency: &stats.latency,
        first_byte: &stats.first_byte,
        breakdown: options.breakdown.then_some(&stats.breakdown),
        dial: stats.dial,
        rates: &stats.rates,
        body_bytes: run.tally.counts.body_bytes,
        statuses: run.tally.statuses(),
        errors: stats.errors(&run.tally, result.interrupted),
    }
}

/// Writes the header of the table, and then a row for each response.
fn csv(
    options: &OhaOptions,
    file: Option<File>,
    console: &Console,
) -> Result<OutcomeHandler, Failure> {
    let mut out: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(file),
        None => console.output(),
    };
    out.write_all(CSV_HEADER.as_bytes()).and_then(|()| out.flush()).map_err(write_failure)?;
    let corrected = options.corrected();
    Ok(rows(out, move |rows, outcome, answer| {
        csv_row(rows, &stats::row(outcome, corrected, answer.status, answer.body_bytes));
    }))
}
