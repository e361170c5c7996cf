//! Flags of other tools.
//!
//! Users know the flags of hey, ab, wrk, oha, vegeta, k6 and curl. A flag that can only mean one
//! thing is replaced by ours; one that means different things to different tools is refused with
//! ours as the tip.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use gake_text::redact::may_hold_secrets;

/// What a flag of another tool is here.
#[derive(Clone, Copy)]
enum Meaning {
    /// Our long flag, with the same value.
    Flag(&'static str),
    /// Our long flag; the value follows this prefix.
    Prefixed(&'static str, &'static str),
    /// Our long flag with this value; theirs has none.
    Switch(&'static str, &'static str),
    /// What gake does anyway.
    Default,
}

use Meaning::{Default, Flag, Prefixed, Switch};

/// Flags that mean the same in every tool that has them.
const MEANINGS: &[(&[&str], Meaning)] = &[
    (&["-z", "--time", "--test-duration"], Flag("duration")),
    (&["--rps", "--qps", "-R", "--throughput", "--request-rate", "--arrival-rate"], Flag("rate")),
    (&["--clients", "--virtual-users"], Flag("users")),
    (
        &["--concurrency", "--concurrent", "--workers", "--max-workers", "--max-connections"],
        Flag("connections"),
    ),
    (&["--num-requests", "--count", "--amount"], Flag("requests")),
    (&["--warm-up", "--warmup-time", "--warm-up-time"], Flag("warmup")),
    (&["--threshold", "--thresholds", "--assert", "--ensure"], Flag("slo")),
    (&["--json", "-j"], Switch("format", "json")),
    (&["--csv"], Switch("format", "csv")),
    (&["--output-format"], Flag("format")),
    (&["--request"], Flag("method")),
    (&["--headers", "--add-header"], Flag("header")),
    (&["--user-agent"], Prefixed("header", "User-Agent: ")),
    (&["--cookie"], Prefixed("header", "Cookie: ")),
    (&["--host"], Prefixed("header", "Host: ")),
    (&["--body", "--data-binary", "--data-raw", "--post-data"], Flag("data")),
    (&["-D", "--body-file"], Prefixed("data", "@")),
    (&["-a", "--basic-auth", "--auth"], Flag("user")),
    (&["-L", "--location", "--follow"], Switch("max-redirs", "10")),
    (&["--redirect", "--redirects", "--max-redirects"], Flag("max-redirs")),
    (
        &["--disable-keepalive", "--disable-keep-alive", "--no-keep-alive"],
        Switch("no-keepalive", ""),
    ),
    (
        &["--skip-tls-verify", "--insecure-skip-tls-verify", "--no-verify", "--tls-insecure"],
        Switch("insecure", ""),
    ),
    (&["--root-certs", "--ca", "--ca-cert", "--ca-file"], Flag("cacert")),
    (&["--silent"], Switch("quiet", "")),
    (&["--h2", "--h2c"], Switch("http2", "")),
    (&["--h3"], Switch("http3", "")),
    (&["--http-version"], Flag("http")),
    (&["--cpus"], Flag("threads")),
    (&["--port"], Prefixed("listen", "127.0.0.1:")),
    (
        &["--latency", "--latencies", "--print-latencies", "--latency-correction", "--no-tui"],
        Default,
    ),
];

/// Flags of other tools that a user has to choose for, our long flag if there is one, and the tip.
const TIPS: &[(&[&str], Option<&str>, &str)] = &[
    (&["-w"], Some("connections"), "is -c here: -c 50"),
    (
        &["--stage", "-s", "--ramp-up", "--rampup", "--ramp"],
        Some("stages"),
        "is --stages here: --stages 0..1000@30s,1000@2m",
    ),
    (
        &["--output", "--export", "--summary-export"],
        Some("format"),
        "is -o here: -o json, or -o json=FILE",
    ),
    (&["--junit", "--junit-xml"], Some("format"), "is -o here: -o junit=FILE"),
    (&["--markdown", "--md"], Some("format"), "is -o here: -o markdown, or -o markdown=FILE"),
    (&["-m"], Some("method"), "is -X here: -X POST"),
    (&["-A", "-T"], Some("header"), "is a header line here: -H 'Name: value'"),
    (&["-b"], Some("data"), "is --data here (a body), or -H 'Cookie: NAME=VALUE'"),
    (&["--keepalive"], Some("no-keepalive"), "is the default here; --no-keepalive ends it"),
    (&["--hdr"], Some("format"), "is not needed: percentiles are always printed"),
    (&["--no-progress"], Some("quiet"), "is -q here: only the verdict is printed"),
    (&["--open-loop"], Some("rate"), "is the same as giving a rate: -r 1000"),
    (&["-d", "--duration", "-z"], Some("budget"), "is --budget here: --budget 2m for all steps"),
    (&["-r", "--rate"], Some("max-rate"), "is --max-rate here: the search never exceeds it"),
    (
        &["--proxy-header"],
        None,
        "does not exist here: --proxy http://USER:PASSWORD@HOST:PORT gives the proxy credentials",
    ),
    (
        &["--script"],
        None,
        "does not exist here: a k6 script runs by its name (gake run FILE.js), and a targets file \
         holds several requests",
    ),
];

/// Commands of other tools, and ours.
const COMMANDS: &[(&str, &str)] = &[("attack", "as vegeta attack"), ("cloud", "as k6 run")];

/// `args` with the flag that `error` is about in our words; `None` when there is no single meaning.
pub fn translated(error: &Error, command: &Command, args: &[OsString]) -> Option<Vec<OsString>> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let command = called(command, args);
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidArg) else { return None };
    if !name.starts_with('-') {
        return joined(command, args);
    }
    let name = name.split('=').next().unwrap_or(name);
    let (_, meaning) = MEANINGS.iter().find(|(theirs, _)| theirs.contains(&name))?;
    let at = args.iter().position(|arg| is_flag(arg, name))?;
    let (mut words, rest) = (args[..at].to_vec(), &args[at + 1..]);
    let attached = args[at].to_str()?.strip_prefix(name).filter(|text| !text.is_empty());
    let attached = attached.map(|text| text.strip_prefix('=').unwrap_or(text));
    let (flag, prefix) = match meaning {
        Default => ("", ""),
        Flag(flag) => (*flag, ""),
        Prefixed(flag, prefix) | Switch(flag, prefix) => (*flag, *prefix),
    };
    if !flag.is_empty() && !has(command, flag) {
        return None;
    }
    let takes_value = matches!(meaning, Flag(_) | Prefixed(..));
    match (takes_value, attached) {
        (true, Some(value)) => {
            words.push(format!("--{flag}={prefix}{value}").into());
            words.extend_from_slice(rest);
        }
        (true, None) => {
            let (value, rest) = rest.split_first()?;
            let mut word = OsString::from(format!("--{flag}={prefix}"));
            word.push(value);
            words.push(word);
            words.extend_from_slice(rest);
        }
        (false, Some(_)) => return None,
        (false, None) => {
            words.extend((!flag.is_empty()).then(|| match prefix {
                "" => format!("--{flag}").into(),
                value => format!("--{flag}={value}").into(),
            }));
            words.extend_from_slice(rest);
        }
    }
    Some(words)
}

/// Whether an argument is the flag `name`, alone or with its value attached.
fn is_flag(arg: &OsStr, name: &str) -> bool {
    let Some(rest) = arg.to_str().and_then(|arg| arg.strip_prefix(name)) else { return false };
    rest.is_empty() || rest.starts_with('=') || !name.starts_with("--")
}

/// `args` with the first optional value that follows its flag after a blank (`--web ADDRESS`)
/// joined to it, as clap wants it.
fn joined(command: &Command, args: &[OsString]) -> Option<Vec<OsString>> {
    let is_optional = |arg: &OsStr| {
        let long = arg.to_str().and_then(|arg| arg.strip_prefix("--"));
        let flag = command.get_arguments().find(|flag| long.is_some() && flag.get_long() == long);
        flag.is_some_and(Arg::is_require_equals_set)
    };
    let is_value = |arg: &OsStr| arg.to_str().is_some_and(|arg| !arg.starts_with('-'));
    let at = args.windows(2).position(|pair| is_optional(&pair[0]) && is_value(&pair[1]))?;
    let mut words = args.to_vec();
    let value = words.remove(at + 1);
    words[at].push("=");
    words[at].push(value);
    Some(words)
}

/// Adds to `error` the tip for its flag or command, and removes clap's guesses.
pub fn add_tip(mut error: Error, command: &Command, args: &[OsString]) -> Error {
    let tip = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) => {
            command_meant(name, command)
        }
        _ => flag_meant(&error, called(command, args), args),
    };
    for noise in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedCommand,
        ContextKind::Suggested,
        ContextKind::TrailingArg,
        ContextKind::Usage,
    ] {
        error.remove(noise);
    }
    if let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg)
        && (arg.contains("SOURCE") || arg.split(' ').next().is_some_and(may_hold_secrets))
        && matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if !value.is_empty())
    {
        error.insert(ContextKind::InvalidValue, ContextValue::String("(not shown)".to_owned()));
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The command that was probably meant by `name`.
fn command_meant(name: &str, command: &Command) -> Option<String> {
    if super::TOOL_NAMES.contains(&name) {
        return Some(format!("gake behaves as {name} with 'gake as {name}'"));
    }
    if let Some((_, ours)) = COMMANDS.iter().find(|(theirs, _)| *theirs == name) {
        return Some(format!("that is 'gake {ours}' here"));
    }
    let names = command.get_subcommands().map(Command::get_name);
    closest(name, names).map(|meant| format!("there is a command 'gake {meant}'"))
}

/// The name that `typed` is a slip of: at most two, and not half of its letters.
fn closest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (typed.chars().count() / 2).min(SLIPS_MAX);
    let (slips, name) = names.map(|name| (slips(typed, name), name)).min()?;
    (slips <= most).then_some(name)
}

/// Most typing errors in a name.
const SLIPS_MAX: usize = 2;

/// Letters that were left out, added, changed or swapped with their neighbour (the optimal string
/// alignment distance).
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

fn flag_meant(error: &Error, command: &Command, args: &[OsString]) -> Option<String> {
    let value = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let arg = value(ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => one_dash(command, args)
            .or_else(|| known(arg, command))
            .or_else(|| bare_number(arg, command))
            .or_else(|| misspelt(arg, command)),
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
    let fits = |ours: Option<&str>| match ours {
        Some(ours) => has(command, ours),
        // Only commands that send requests.
        None => has(command, "connect-to"),
    };
    let (_, _, tip) =
        TIPS.iter().find(|(theirs, ours, _)| theirs.contains(&name) && fits(*ours))?;
    Some(format!("{name} {tip}"))
}

/// A visible flag that `arg` is a slip of. A longer name of another tool is none: `--user-agent` is
/// not `--user`.
fn misspelt(arg: &str, command: &Command) -> Option<String> {
    let name = arg.strip_prefix("--")?.split('=').next()?;
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    closest(name, visible.filter_map(Arg::get_long)).map(|meant| format!("there is --{meant}"))
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
    (is_number && has(command, "rate")).then(|| {
        format!(
            "{arg} belongs to no flag (-q is --quiet); a rate is -r {arg}, connections are -c {arg}"
        )
    })
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
    use super::super::{Command as Ours, definition, parse};
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (typed, meant, count) in
            [("run", "run", 0), ("rn", "run", 1), ("rnu", "run", 1), ("dcotr", "doctor", 2)]
        {
            assert_eq!(slips(typed, meant), count, "{typed}");
        }
        let definition = definition();
        let meant = |name| command_meant(name, &definition);
        assert!(meant("compaer").is_some_and(|tip| tip.contains("'gake compare'")));
        assert!(meant("attack").is_some_and(|tip| tip.contains("'gake as vegeta attack'")));
        assert_eq!(meant("benchmark"), None);
        assert_eq!(meant("x"), None);
    }

    #[test]
    fn every_entry_names_a_flag_of_ours_and_none_that_run_has_already() {
        let definition = definition();
        let of_command = |ours: &str| {
            let commands = ["run", "find", "serve"].map(|name| definition.find_subcommand(name));
            commands.into_iter().flatten().find(|command| has(command, ours))
        };
        let is_own = |theirs: &str, command: &Command| match theirs.strip_prefix("--") {
            Some(name) => has(command, name),
            None => command
                .get_arguments()
                .any(|arg| arg.get_short().is_some_and(|short| theirs == format!("-{short}"))),
        };
        let ours = MEANINGS.iter().map(|(theirs, meaning)| match meaning {
            Flag(ours) | Prefixed(ours, _) | Switch(ours, _) => (*theirs, Some(*ours)),
            Default => (*theirs, Some("rate")),
        });
        let all = ours.chain(TIPS.iter().map(|(theirs, ours, _)| (*theirs, *ours)));
        for (theirs, ours) in all {
            let command = of_command(ours.unwrap_or("connect-to")).expect("a command has it");
            for name in theirs {
                assert!(!is_own(name, command), "{name} is a flag of gake {}", command.get_name());
            }
        }
    }

    #[test]
    fn flags_with_one_meaning_are_ours() {
        let same = |theirs: &str, ours: &str| {
            let read = |line: &str| {
                let words = line.split('|').map(OsString::from);
                parse(words).map(|cli| format!("{:?}", cli.command))
            };
            assert_eq!(read(theirs).ok(), read(ours).ok(), "{theirs}");
            assert!(read(ours).is_ok(), "{ours}");
        };
        let line = |flags: &str| format!("gake|run|{flags}|http://h/");
        for (theirs, ours) in [
            ("--rps|100", "-r|100"),
            ("--qps=100|-z|5s", "-r|100|-d|5s"),
            ("-z5s|-R2k", "-d|5s|-r|2k"),
            ("--concurrency|5|--count|9", "-c|5|-n|9"),
            ("--json", "-o|json"),
            ("--user-agent|x y|--cookie|a=b", "-H|User-Agent: x y|-H|Cookie: a=b"),
            ("-L|--silent", "--max-redirs|10|-q"),
            ("-D|body.json|-a|me:secret", "--data|@body.json|--user|me:secret"),
            ("--latency|--disable-keepalive|--h2", "--no-keepalive|--http2"),
            ("--threshold|p99<50ms", "--slo|p99<50ms"),
            ("--web|127.0.0.1:5665", "--web=127.0.0.1:5665"),
        ] {
            same(&line(theirs), &line(ours));
        }
        same("gake|-z|1s|http://h/", "gake|run|-d|1s|http://h/");
        same("gake|serve|--port|80", "gake|serve|--listen|127.0.0.1:80");
        // A flag without its value, and one of another command, are not guessed.
        for line in
            ["gake|run|http://h/|--rps", "gake|run|http://h/|--json=x", "gake|serve|--rps|5"]
        {
            assert!(parse(line.split('|').map(OsString::from)).is_err(), "{line}");
        }
        assert!(matches!(
            parse(["gake", "run", "h", "--data", "-----BEGIN"].map(OsString::from)).map(|c| c.command),
            Ok(Ours::Run(args)) if args.request.data == ["-----BEGIN"]
        ));
    }
}
