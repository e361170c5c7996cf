//! Tips for flags of other tools.
//!
//! Users know the flags of hey, wrk, oha, vegeta, k6 and curl. An unknown flag is answered with
//! ours, and with no other guess.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Flags of other tools, our long flag if there is one, and the tip.
struct Tip {
    theirs: &'static [&'static str],
    /// The flag that a command must have for the tip to help.
    ours: Option<&'static str>,
    said: &'static str,
}

const fn tip(theirs: &'static [&'static str], ours: &'static str, said: &'static str) -> Tip {
    Tip { theirs, ours: Some(ours), said }
}

const fn absent(theirs: &'static [&'static str], said: &'static str) -> Tip {
    Tip { theirs, ours: None, said }
}

const TIPS: &[Tip] = &[
    tip(&["-z", "--time", "--test-duration"], "duration", "is -d here: -d 30s"),
    tip(
        &["--rps", "--qps", "-R", "--throughput", "--request-rate", "--arrival-rate"],
        "rate",
        "is -r here: -r 1000",
    ),
    tip(
        &["--concurrency", "--concurrent", "--clients", "--virtual-users"],
        "users",
        "is --users here (or -c): --users 50",
    ),
    tip(
        &["--workers", "-w", "--max-workers", "--max-connections"],
        "connections",
        "is -c here: -c 50",
    ),
    tip(&["--num-requests", "--count", "--amount"], "requests", "is -n here: -n 10000"),
    tip(
        &["--stage", "-s", "--ramp-up", "--rampup", "--ramp"],
        "stages",
        "is --stages here: --stages 0..1000@30s,1000@2m",
    ),
    tip(&["--warm-up", "--warmup-time", "--warm-up-time"], "warmup", "is --warmup here"),
    tip(
        &["--threshold", "--thresholds", "--assert", "--ensure"],
        "slo",
        "is --slo here: --slo 'p99<50ms'",
    ),
    tip(
        &["--json", "-j", "--output", "--output-format", "--export", "--summary-export", "--csv"],
        "format",
        "is -o here: -o json, or -o json=FILE",
    ),
    tip(&["--request", "-m"], "method", "is -X here: -X POST"),
    tip(&["--headers", "--add-header"], "header", "is -H here: -H 'Name: value'"),
    tip(&["--host", "-A", "-T"], "header", "is a header line here: -H 'Name: value'"),
    tip(
        &["--body", "-b", "--data-binary", "--data-raw", "-D", "--body-file", "--post-data"],
        "data",
        "is --data here: --data TEXT, or --data @FILE",
    ),
    tip(&["-a", "--basic-auth", "--auth"], "user", "is --user here: --user NAME:PASSWORD"),
    tip(
        &["-L", "--location", "--follow", "--redirect", "--redirects", "--max-redirects"],
        "max-redirs",
        "is --max-redirs here: --max-redirs 10",
    ),
    tip(
        &["--disable-keepalive", "--disable-keep-alive", "--no-keep-alive", "--keepalive"],
        "no-keepalive",
        "is --no-keepalive here; connections are kept without it",
    ),
    tip(
        &["--skip-tls-verify", "--insecure-skip-tls-verify", "--no-verify", "--tls-insecure"],
        "insecure",
        "is --insecure here (-k)",
    ),
    tip(&["--root-certs", "--ca", "--ca-cert", "--ca-file"], "cacert", "is --cacert here"),
    tip(&["--no-tui", "--silent", "--no-progress"], "quiet", "is -q here"),
    tip(&["--open-loop"], "rate", "is the same as giving a rate: -r 1000"),
    tip(
        &["--latency", "--latencies", "--hdr", "--print-latencies"],
        "format",
        "is not needed: percentiles are always printed",
    ),
    tip(
        &["--latency-correction"],
        "rate",
        "is not needed: latency always counts from the instant a request was due",
    ),
    tip(&["--h2", "--h2c"], "http2", "is --http2 here"),
    tip(&["--http-version"], "http", "is --http here"),
    tip(&["--h3"], "http3", "is --http3 here"),
    absent(
        &["--proxy-header"],
        "does not exist here: --proxy http://USER:PASSWORD@HOST:PORT gives the proxy credentials",
    ),
    absent(
        &["--script"],
        "does not exist here: a k6 script runs by its name (gake run FILE.js), and a targets file \
         holds several requests",
    ),
];

/// Adds to `error` the tip for its flag or command, and removes clap's guesses.
pub fn add(mut error: Error, command: &Command, args: &[OsString]) -> Error {
    let said = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) => near(name, command),
        _ => said(&error, called(command, args), args),
    };
    let Some(said) = said else { return error };
    for guess in
        [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand]
    {
        error.remove(guess);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![said.into()]));
    error
}

/// The command that was probably meant by `name`.
fn near(name: &str, command: &Command) -> Option<String> {
    if super::TOOL_NAMES.contains(&name) {
        return Some(format!("gake behaves as {name} with 'gake as {name}'"));
    }
    // Of short names, half of the letters may not be slips.
    let most = (name.chars().count() / 2).min(SLIPS_MAX);
    let names = command.get_subcommands().map(Command::get_name);
    let (slips, meant) = names.map(|meant| (slips(name, meant), meant)).min()?;
    (slips <= most).then(|| format!("there is a command 'gake {meant}'"))
}

/// Most typing errors in a command's name.
const SLIPS_MAX: usize = 2;

/// Letters that were left out, added, changed or swapped with their neighbour.
fn slips(typed: &str, meant: &str) -> usize {
    let [a, b] = [typed, meant].map(|text| text.chars().collect::<Vec<_>>());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The command that the arguments call.
fn called<'a>(command: &'a Command, args: &[OsString]) -> &'a Command {
    let name = args.get(1).and_then(|arg| arg.to_str()).unwrap_or_default();
    command.find_subcommand(name).unwrap_or(command)
}

fn said(error: &Error, command: &Command, args: &[OsString]) -> Option<String> {
    let value = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let arg = value(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => one_dash(command, args)
            .or_else(|| known(arg, command))
            .or_else(|| bare_number(arg, command)),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let given = value(ContextKind::InvalidValue).unwrap_or_default();
            one_dash(command, args).or_else(|| misread(arg, given, command))
        }
        _ => one_dash(command, args),
    }
}

fn has(command: &Command, long: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(long))
}

/// The tip for a flag of another tool.
fn known(arg: &str, command: &Command) -> Option<String> {
    let name = arg.split('=').next().unwrap_or(arg);
    let fits = |tip: &&Tip| match tip.ours {
        Some(ours) => has(command, ours),
        // What is sent by this command alone.
        None => has(command, "connect-to"),
    };
    let tip = TIPS.iter().filter(fits).find(|tip| tip.theirs.contains(&name))?;
    Some(format!("{name} {}", tip.said))
}

/// `-duration=5s`, as Go programs accept it.
fn one_dash(command: &Command, args: &[OsString]) -> Option<String> {
    args.iter().filter_map(|arg| arg.to_str()).find_map(|arg| {
        let name = arg.strip_prefix('-')?.split('=').next()?;
        let long = name.len() > 2 && !name.starts_with('-') && has(command, name);
        long.then(|| format!("long flags have two dashes here: -{arg}"))
    })
}

/// `-q 100` is hey's rate; here -q is quiet, and the number is left over.
fn bare_number(arg: &str, command: &Command) -> Option<String> {
    let is_number = arg.parse::<f64>().is_ok();
    (is_number && has(command, "rate"))
        .then(|| format!("{arg} belongs to no flag; a rate is -r {arg}, connections are -c {arg}"))
}

/// A value that makes sense to another tool.
fn misread(arg: &str, value: &str, command: &Command) -> Option<String> {
    if arg.starts_with("--format") {
        let (path, form) = ["json", "csv", "html", "md", "xml"].iter().find_map(|ending| {
            let path = value.strip_prefix("json=").unwrap_or(value);
            let form = match *ending {
                "md" => "markdown",
                "xml" => "junit",
                form => form,
            };
            path.ends_with(&format!(".{ending}")).then_some((path, form))
        })?;
        return Some(format!("name the format before the file: -o {form}={path}"));
    }
    let is_body = value.starts_with(['{', '[', '@']) || value.contains('=');
    (arg.starts_with("--duration") && is_body && has(command, "data"))
        .then(|| format!("-d is the duration here; a body is --data '{value}'"))
}

#[cfg(test)]
mod tests {
    use super::super::definition;
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (typed, meant, count) in
            [("run", "run", 0), ("rn", "run", 1), ("rnu", "run", 1), ("dcotr", "doctor", 2)]
        {
            assert_eq!(slips(typed, meant), count, "{typed}");
        }
        let definition = definition();
        assert!(near("compaer", &definition).is_some_and(|tip| tip.contains("'gake compare'")));
        assert_eq!(near("benchmark", &definition), None);
        assert_eq!(near("x", &definition), None);
    }

    #[test]
    fn every_tip_names_a_flag_that_there_is_and_is_about_one_that_there_is_not() {
        let definition = definition();
        let run = definition.find_subcommand("run").unwrap();
        for tip in TIPS {
            for theirs in tip.theirs {
                let name = theirs.trim_start_matches('-');
                let mut own = run.get_arguments();
                let is_own = match theirs.starts_with("--") {
                    true => has(run, name),
                    false => {
                        own.any(|arg| arg.get_short().map(String::from).as_deref() == Some(name))
                    }
                };
                assert!(!is_own, "{theirs} is a flag of gake run");
            }
            assert!(tip.ours.is_none_or(|ours| has(run, ours)), "{:?}", tip.ours);
        }
    }
}
