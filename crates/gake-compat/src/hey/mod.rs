//! gake as hey.

mod options;
mod report;

use std::io::Write as _;

use crate::spread::Spread;
use gake_core::record::{End, Outcome};
use gake_core::spec::RunSpec;
use gake_run::Prepared;
use report::{CSV_HEADER, Hey, HeyRow, csv_row, text};

use crate::NativeResult;
use crate::attack::{Attacked, TakeOutcomes, attack, prepare};
use crate::go_errors;
use crate::outcome_stats::{Gathered, Parts, gather, taken};
use gake_session::Console;
use gake_session::{Exit, Failure};
use options::{Options, Wrong};

/// Runs hey's command line.
///
/// # Errors
/// When the run could not be done.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    let options = match Options::read(args) {
        Ok(options) => options,
        Err(wrong) => return Ok(refuse(&wrong, console)),
    };
    let spec = options.spec();
    let prepared = prepare(&spec)?;
    if options.csv {
        csv(&spec, &prepared, native, console)
    } else {
        summary(&options, &spec, &prepared, native, console)
    }
}

fn refuse(wrong: &Wrong, console: &Console) -> Exit {
    match wrong {
        Wrong::Help => {
            console.plain(options::USAGE);
            Exit::Done
        }
        Wrong::Flag(sentence) => {
            console.plain(&format!("{sentence}\n{}", options::USAGE));
            Exit::Tool(2)
        }
        Wrong::Value(sentence) => {
            let break_after = if sentence.is_empty() { "" } else { "\n\n" };
            console.plain(&format!("{sentence}{break_after}{}\n", options::USAGE));
            Exit::Tool(1)
        }
        Wrong::Beyond(sentence) => {
            console.error(sentence);
            Exit::Tool(1)
        }
    }
}

fn summary(
    options: &Options,
    spec: &RunSpec,
    prepared: &Prepared,
    native: &NativeResult,
    console: &Console,
) -> Result<Exit, Failure> {
    let (gathered, sink) = gather(Gathered::default(), Gathered::take);
    let attacked = attack(spec, prepared, native, Some(sink), console, |_| None)?;
    warn(&attacked, console);
    console.result(&text(&figures(options, &attacked, &taken(&gathered), prepared)))?;
    Ok(Exit::Done)
}

fn figures<'a>(
    options: &Options,
    attacked: &'a Attacked,
    gathered: &'a Gathered,
    prepared: &Prepared,
) -> Hey<'a> {
    let run = &attacked.run;
    Hey {
        total: run.elapsed,
        requests: run.tally.counts.ended(),
        latency: &gathered.latency,
        parts: [
            ("DNS+dialup", gathered.dial),
            // Names are resolved before the run.
            ("DNS-lookup", Spread::zeros(gathered.latency.count())),
            ("req write", gathered.write),
            ("resp wait", gathered.wait),
            ("resp read", gathered.read),
        ],
        body_bytes: run.tally.counts.body_bytes,
        statuses: run.tally.statuses(),
        errors: go_errors::errors(&run.tally, &prepared.wires, &options.method, &options.url),
    }
}

/// Writes a row an answer while the run goes on, so that memory does not grow with it.
fn csv(
    spec: &RunSpec,
    prepared: &Prepared,
    native: &NativeResult,
    console: &Console,
) -> Result<Exit, Failure> {
    console.result(CSV_HEADER)?;
    let mut out = console.output();
    let mut rows = String::new();
    let sink: TakeOutcomes = Box::new(move |outcomes: &[Outcome]| {
        rows.clear();
        for outcome in outcomes {
            if let End::Answered(answer) = outcome.exchange.end {
                csv_row(&mut rows, &row(outcome, answer.status));
            }
        }
        out.write_all(rows.as_bytes())?;
        out.flush()
    });
    let attacked = attack(spec, prepared, native, Some(sink), console, |_| None)?;
    console.result("\n")?;
    warn(&attacked, console);
    let failed = attacked.run.tally.faults_where(|_| true);
    if failed > 0 {
        let causes = attacked.run.tally.faults().iter();
        let causes: Vec<_> = causes.map(|(fault, count)| format!("{count} {fault}")).collect();
        console.warn(&format!("{failed} requests have no row: {}", causes.join(", ")));
    }
    Ok(Exit::Done)
}

fn row(outcome: &Outcome, status: u16) -> HeyRow {
    let parts = Parts::of(outcome);
    HeyRow {
        response: parts.total,
        dial: parts.dial.unwrap_or(0),
        write: parts.write,
        delay: parts.wait,
        read: parts.read,
        status,
        offset: outcome.fired,
    }
}

fn warn(attacked: &Attacked, console: &Console) {
    if let Some(lost) = &attacked.lost {
        console.warn(lost);
    }
}
