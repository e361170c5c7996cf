//! gake as vegeta: attack, report, plot and encode, joined by pipes of results.

mod attack;
mod encode;
mod files;
mod options;
mod plot;
mod records;
mod report;
mod targets;

use crate::NativeResult;
use crate::flags::{Flag, FlagValue, Grammar, Parsed, refused, switch, value};
use gake_session::Console;
use gake_session::{Exit, Failure};

const USAGE: &str = "\
Usage: vegeta [global flags] <command> [command flags]

  attack   sends requests at a rate, and writes a result for each
  report   summarises results: text, json, hist[0,1ms,10ms], hdrplot
  encode   writes results in another encoding: csv, gob, json
  plot     draws latencies over time, as an HTML page

  echo 'GET http://localhost/' | vegeta attack -duration=5s | tee results.bin | vegeta report

Differences from Vegeta, and refused flags: docs/as-vegeta.md";

const GLOBAL: &[Flag] = &[
    value(&["cpus"]),
    switch(&["version"]),
    switch(&["h", "help"]),
    refused(&["profile"], "gake has no built-in profiler; use perf"),
];

/// Runs vegeta's command line.
pub fn main(args: &[String], native: &NativeResult, console: &Console) -> Result<Exit, Failure> {
    let global = parse(GLOBAL, args)?;
    if global.on("version").map_err(Failure::usage)? {
        console.result(concat!("Version: gake ", env!("CARGO_PKG_VERSION"), "\n"))?;
        return Ok(Exit::Done);
    }
    let Some((command, rest)) = global.operands.split_first() else {
        console.plain(&format!("{USAGE}\n"));
        return Ok(if global.on("h").map_err(Failure::usage)? {
            Exit::Done
        } else {
            Exit::Tool(1)
        });
    };
    let cpus = global.get::<usize>("cpus").map_err(Failure::usage)?;
    match command.as_str() {
        "attack" => attack::run(rest, cpus, native, console),
        "report" => report::run(rest, console),
        "encode" => encode::run(rest, console),
        "plot" => plot::run(rest, console),
        "dump" => Err(Failure::usage("dump was removed; use encode")),
        other => Err(Failure::usage(format!(
            "unknown command {other:?}; the commands are attack, report, encode and plot"
        ))),
    }
}

/// Reads the flags of a command; `-h` prints the usage, and nothing else happens.
fn command(
    flags: &[Flag],
    usage: &str,
    args: &[String],
    console: &Console,
) -> Result<Option<Parsed>, Failure> {
    let parsed = parse(flags, args)?;
    if parsed.on("h").map_err(Failure::usage)? {
        console.plain(usage);
        return Ok(None);
    }
    Ok(Some(parsed))
}

/// Reads a command line in Go's grammar. As in Vegeta, the value of a switch may also stand in an
/// argument of its own: `-keepalive false`.
fn parse(flags: &[Flag], args: &[String]) -> Result<Parsed, Failure> {
    let mut joined: Vec<String> = Vec::with_capacity(args.len());
    for arg in args {
        let is_switch = |last: &String| {
            let name = last.trim_start_matches('-');
            last.starts_with('-') && flags.iter().any(|flag| is_named(flag, name))
        };
        match joined.last_mut() {
            Some(last) if matches!(arg.as_str(), "true" | "false") && is_switch(last) => {
                *last = format!("{last}={arg}");
            }
            _ => joined.push(arg.clone()),
        }
    }
    Parsed::read(Grammar::Go, flags, &joined).map_err(|error| Failure::usage(String::from(error)))
}

fn is_named(flag: &Flag, name: &str) -> bool {
    matches!(flag.value, FlagValue::Nothing) && flag.names.contains(&name)
}
