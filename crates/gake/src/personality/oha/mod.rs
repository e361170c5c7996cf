//! gake as oha.

mod options;
mod requests;
mod tallied;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use gake_core::record::{End, Outcome};
use gake_core::spec::RunSpec;
use gake_files::Access;
use gake_report::tools::oha::{CSV_HEADER, Oha, csv_row, json, text};
use gake_run::Prepared;
use gake_text::foreign;

use super::attack::{Attacked, TakeOutcomes, attack, prepare};
use super::gathered::{gather, taken};
use super::native::Native;
use gake_session::Console;
use gake_session::{Exit, Failure};
use options::{Line, Options, OutputFormat, USAGE};
use tallied::Tallied;

/// Runs oha's command line.
///
/// # Errors
/// When it cannot be read, or the run could not be done.
pub fn main(args: &[String], native: &Native, console: &Console) -> Result<Exit, Failure> {
    match Line::read(args).map_err(Failure::usage)? {
        Line::Help => console.result(USAGE)?,
        Line::Version => {
            console.result(concat!("oha gake/", env!("CARGO_PKG_VERSION"), "\n"))?;
        }
        Line::Run(options) => run(&options, native, console)?,
    }
    Ok(Exit::Done)
}

fn run(options: &Options, native: &Native, console: &Console) -> Result<(), Failure> {
    let spec = options.spec()?;
    let prepared = prepare(&spec)?;
    native.beside(options.output.as_deref())?;
    let mut file = options.output.as_deref().map(create).transpose()?;
    match options.format {
        OutputFormat::Csv => return csv(options, &spec, &prepared, file, native, console),
        OutputFormat::Quiet => {
            let attacked = attack(&spec, &prepared, native, None, console, |_| None)?;
            warn(&attacked, console);
            return Ok(());
        }
        OutputFormat::Text | OutputFormat::Json => {}
    }
    let (tallied, sink) = gather(Tallied::new(options.corrected()), Tallied::take);
    let attacked = attack(&spec, &prepared, native, Some(sink), console, |_| None)?;
    warn(&attacked, console);
    let tallied = taken(&tallied);
    let oha = figures(options, &attacked, &tallied);
    let result = match options.format {
        OutputFormat::Json => json(&oha),
        _ => text(&oha, options.unit),
    };
    match &mut file {
        Some(file) => file.write_all(foreign::lines(&result).as_bytes()).map_err(unwritten),
        None => console.result(&result),
    }
}

fn create(path: &str) -> Result<File, Failure> {
    gake_files::create(Path::new(path), Access::Mask)
        .map_err(|error| Failure::could_not(format!("{path} cannot be written: {error}")))
}

fn unwritten(error: io::Error) -> Failure {
    Failure::could_not(format!("the result cannot be written: {error}"))
}

fn figures<'a>(options: &Options, attacked: &'a Attacked, tallied: &'a Tallied) -> Oha<'a> {
    let run = &attacked.run;
    Oha {
        total: run.elapsed,
        latency: &tallied.latency,
        first_byte: &tallied.first_byte,
        breakdown: options.breakdown.then_some(&tallied.breakdown),
        dial: tallied.dial,
        rates: &tallied.rates,
        body_bytes: run.tally.counts.body_bytes,
        statuses: run.tally.statuses(),
        errors: tallied.errors(&run.tally, attacked.interrupted),
    }
}

/// Writes a row an answer while the run goes on, so that memory does not grow with it.
fn csv(
    options: &Options,
    spec: &RunSpec,
    prepared: &Prepared,
    file: Option<File>,
    native: &Native,
    console: &Console,
) -> Result<(), Failure> {
    let mut out: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(file),
        None => Box::new(console.output()),
    };
    out.write_all(CSV_HEADER.as_bytes()).and_then(|()| out.flush()).map_err(unwritten)?;
    let corrected = options.corrected();
    let mut rows = String::new();
    let sink: TakeOutcomes = Box::new(move |outcomes: &[Outcome]| {
        rows.clear();
        for outcome in outcomes {
            if let End::Answered(answer) = outcome.exchange.end {
                let row = tallied::row(outcome, corrected, answer.status, answer.body_bytes);
                csv_row(&mut rows, &row);
            }
        }
        out.write_all(rows.as_bytes())?;
        out.flush()
    });
    let attacked = attack(spec, prepared, native, Some(sink), console, |_| None)?;
    warn(&attacked, console);
    Ok(())
}

fn warn(attacked: &Attacked, console: &Console) {
    if let Some(lost) = &attacked.lost {
        console.warn(lost);
    }
}
