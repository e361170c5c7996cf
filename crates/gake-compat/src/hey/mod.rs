//! gake as hey.

mod options;
mod report;

use gake_core::record::Outcome;
use gake_run::{Inputs, ResolvedRun};
use gake_session::{Console, Exit, Failure, recording};
use gake_wire::RedirectRules;

use crate::outcome_stats::{OutcomeStats, Phases, StatsCollector, rows};
use crate::spread::Spread;
use crate::tool_run::{ToolResult, ToolRun};
use crate::{NativeResult, go_errors};
use options::{HeyOptions, HeyUsageError};
use report::{CSV_HEADER, Hey, HeyRow, csv_row, text};

/// Runs hey's command line.
///
/// # Errors
/// When the run could not be done.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    let options = match HeyOptions::read(args) {
        Ok(options) => options,
        Err(wrong) => return Ok(refuse(&wrong, console)),
    };
    // hey uses Go's client.
    let inputs = Inputs { redirect_rules: RedirectRules::Go, ..recording::inputs() };
    let run = ToolRun::with_inputs(options.spec(), inputs, native, console)?;
    if options.csv {
        return csv(&run, console);
    }
    let stats = StatsCollector::<OutcomeStats>::default();
    let result = run.run(Some(stats.each(OutcomeStats::record)), &mut |_| None)?;
    result.warn_of_loss(console);
    console.result(&text(&figures(&options, &result, &stats.finish(), &run.prepared)))?;
    Ok(Exit::Done)
}

fn refuse(wrong: &HeyUsageError, console: &Console) -> Exit {
    match wrong {
        HeyUsageError::Help => {
            console.plain(options::USAGE);
            Exit::Done
        }
        HeyUsageError::Flag(sentence) => {
            console.plain(&format!("{sentence}\n{}", options::USAGE));
            Exit::Tool(2)
        }
        HeyUsageError::Value(sentence) => {
            let break_after = if sentence.is_empty() { "" } else { "\n\n" };
            console.plain(&format!("{sentence}{break_after}{}\n", options::USAGE));
            Exit::Tool(1)
        }
        HeyUsageError::Unsupported(sentence) => {
            console.error(sentence);
            Exit::Tool(1)
        }
    }
}

fn figures<'a>(
    options: &HeyOptions,
    result: &'a ToolResult,
    stats: &'a OutcomeStats,
    prepared: &ResolvedRun,
) -> Hey<'a> {
    let run = &result.run;
    Hey {
        total: run.elapsed,
        requests: run.tally.counts.ended(),
        latency: &stats.latency,
        parts: [
            ("DNS+dialup", stats.dial),
            // Names are resolved before the run.
            ("DNS-lookup", Spread::zeros(stats.latency.count())),
            ("req write", stats.write),
            ("resp wait", stats.wait),
            ("resp read", stats.read),
        ],
        body_bytes: run.tally.counts.body_bytes,
        statuses: run.tally.statuses(),
        errors: go_errors::errors(&run.tally, &prepared.wires, &options.method, &options.url),
    }
}

/// Prints a row for each response as it comes.
fn csv(run: &ToolRun<'_>, console: &Console) -> Result<Exit, Failure> {
    console.result(CSV_HEADER)?;
    let rows = rows(console.output(), |rows, outcome, answer| {
        csv_row(rows, &row(outcome, answer.status));
    });
    let result = run.run(Some(rows), &mut |_| None)?;
    console.result("\n")?;
    result.warn_of_loss(console);
    let tally = &result.run.tally;
    let failed = tally.faults_where(|_| true);
    if failed > 0 {
        let causes = tally.faults().iter();
        let causes: Vec<_> = causes.map(|(fault, count)| format!("{count} {fault}")).collect();
        console.warn(&format!("{failed} requests have no row: {}", causes.join(", ")));
    }
    Ok(Exit::Done)
}

fn row(outcome: &Outcome, status: u16) -> HeyRow {
    let phases = Phases::of(outcome);
    HeyRow {
        response: phases.total,
        dial: phases.dial.unwrap_or(0),
        write: phases.write,
        delay: phases.wait,
        read: phases.read,
        status,
        offset: outcome.fired,
    }
}
