//! The flags of `k6 run`.

use std::collections::BTreeMap;

use gake_core::spec::SERIES_MAX;
use gake_k6::duration::GoDuration;
use gake_k6::options::K6Options;
use gake_k6::summary::SummaryMode;
use gake_k6::version::K6Version;
use gake_text::redact::Redactor;
use gake_text::size::parse_size;

use super::open_loop::set_rate;
use crate::flags::{Flag, Grammar, Parsed, refused, switch, value};
use gake_run::script::ScriptSettings;
use gake_session::options::SpecFormat;
use gake_session::run::writes::WRITES_BY;
use gake_session::script::log::ScriptLogFormat;

/// Flags that set an option, and the option's key.
const OPTIONS: &[(Flag, &str)] = &[
    (value(&["vus", "u"]), "vus"),
    (value(&["duration", "d"]), "duration"),
    (value(&["iterations", "i"]), "iterations"),
    (value(&["execution-segment"]), "executionSegment"),
    (value(&["execution-segment-sequence"]), "executionSegmentSequence"),
    (switch(&["no-setup"]), "noSetup"),
    (switch(&["no-teardown"]), "noTeardown"),
    (value(&["max-redirects"]), "maxRedirects"),
    (value(&["batch"]), "batch"),
    (value(&["batch-per-host"]), "batchPerHost"),
    (value(&["rps"]), "rps"),
    (value(&["http-debug"]), "httpDebug"),
    (value(&["user-agent"]), "userAgent"),
    (switch(&["insecure-skip-tls-verify"]), "insecureSkipTLSVerify"),
    (switch(&["no-connection-reuse"]), "noConnectionReuse"),
    (switch(&["no-vu-connection-reuse"]), "noVUConnectionReuse"),
    (value(&["min-iteration-duration"]), "minIterationDuration"),
    (switch(&["throw", "w"]), "throw"),
    (value(&["blacklist-ip"]), "blacklistIPs"),
    (value(&["block-hostnames"]), "blockHostnames"),
    (switch(&["discard-response-bodies"]), "discardResponseBodies"),
    (value(&["local-ips"]), "localIPs"),
    (value(&["dns"]), "dns"),
    (value(&["summary-trend-stats"]), "summaryTrendStats"),
    (value(&["summary-time-unit"]), "summaryTimeUnit"),
    (value(&["system-tags"]), "systemTags"),
    (value(&["console-output"]), "consoleOutput"),
    (switch(&["paused", "p"]), "paused"),
];

/// Options whose flags may be repeated: every value counts.
const REPEATED: [&str; 4] = ["blacklistIPs", "blockHostnames", "summaryTrendStats", "systemTags"];

const OTHERS: &[Flag] = &[
    value(&["stage", "s"]),
    value(&["scenario"]),
    value(&["features"]),
    switch(&["once"]),
    value(&["tag"]),
    value(&["env", "e"]),
    value(&["config", "c"]),
    switch(&["include-system-env-vars"]),
    switch(&["no-thresholds"]),
    switch(&["no-summary"]),
    value(&["summary-mode"]),
    value(&["summary-export"]),
    switch(&["new-machine-readable-summary"]),
    value(&["rate"]),
    value(&["seed"]),
    switch(&["script-profile"]),
    switch(&["body-errors"]),
    value(&["body-memory"]),
    value(&["max-series"]),
    value(&["reconcile"]),
    switch(&["print-spec"]),
    value(&["out", "o"]),
    value(&["secret-source"]),
    value(&["log-output"]),
    value(&["log-format"]),
    switch(&["log-ns-timestamps"]),
    switch(&["quiet", "q"]),
    switch(&["verbose", "v"]),
    switch(&["no-color"]),
    switch(&["no-usage-report"]),
    value(&["compatibility-mode"]),
    value(&["address", "a"]),
    switch(&["help", "h"]),
    switch(&["linger", "l"]),
    value(&["traces-output"]),
    value(&["type", "t"]),
    refused(&["profiling-enabled"], "gake has no pprof endpoints"),
];

/// The flags of a command line.
#[derive(Debug)]
pub struct RunFlags {
    /// The settings of the script, without the environment of the process.
    pub settings: ScriptSettings,
    /// The database whose rows are counted before and after the run.
    pub reconcile: Option<String>,
    /// The format in which the spec is printed instead of a run, if it is.
    pub print_spec: Option<SpecFormat>,
    /// The script: a path, or `-`.
    pub script: String,
    /// `compact`, `full` or `disabled`.
    pub summary_mode: Option<String>,
    /// The outputs of single samples, such as `json=FILE`.
    pub out: Vec<String>,
    /// The file for the summary's figures as JSON.
    pub summary_export: Option<String>,
    /// Whether these figures, and those for `handleSummary`, have the newer form.
    pub machine_readable: bool,
    /// Whether `console.debug` is shown.
    pub verbose: bool,
    /// Whether events of agents are not logged.
    pub quiet: bool,
    /// Whether the output has no colours.
    pub no_color: bool,
    /// Whether the process stays after the run, until it is interrupted.
    pub linger: bool,
    /// The address of the REST API; empty for no API.
    pub address: Option<String>,
    /// The destination of the log: `stderr`, `stdout`, `none`, `file=PATH`.
    pub log_output: Option<String>,
    /// The format of its lines.
    pub log_format: ScriptLogFormat,
}

impl RunFlags {
    /// Reads a command line; `None` if it requests help.
    ///
    /// # Errors
    /// A flag that is unknown, refused or wrong, by name.
    pub fn read(args: &[String], version: K6Version) -> Result<Option<Self>, String> {
        let flags: Vec<Flag> =
            OPTIONS.iter().map(|(flag, _)| *flag).chain(OTHERS.iter().copied()).collect();
        // Without a value the flag means headers; a value never follows as an argument of its own.
        let args: Vec<String> = args
            .iter()
            .map(|arg| if arg == "--http-debug" { "--http-debug=headers" } else { arg }.to_owned())
            .collect();
        let parsed = Parsed::read(Grammar::Pflag, &flags, &args)?;
        if version == K6Version::Two && parsed.last("no-summary").is_some() {
            return Err("unknown flag: --no-summary".to_owned());
        }
        if parsed.on("help")? {
            return Ok(None);
        }
        let [script] = parsed.operands.as_slice() else {
            return Err(format!(
                "accepts 1 arg(s), received {}: arg should either be \"-\", if reading script \
                 from stdin, or a path to a script file",
                parsed.operands.len()
            ));
        };
        check_values(&parsed, version)?;
        if let Some(kind) = parsed.last("type").filter(|kind| !["js", "archive"].contains(kind)) {
            return Err(format!("--type {kind}: write js or archive"));
        }
        let options = options(&parsed)?;
        let seed = parsed
            .last("seed")
            .map(|seed| seed.parse().map_err(|_| format!("--seed {seed}: write a whole number")));
        let body_memory = parsed
            .last("body-memory")
            .map(|size| parse_size(size).map_err(|error| format!("--body-memory {size}: {error}")));
        let rows = parsed.last("reconcile");
        let settings = ScriptSettings {
            options,
            version,
            scenarios: chosen_scenarios(&parsed)?,
            once: parsed.on("once")?,
            features: features(&parsed),
            system: BTreeMap::new(),
            // k6 prints what a script logs.
            redactor: Some(Redactor::off()),
            shows_system: parsed.last("include-system-env-vars").is_none()
                || parsed.on("include-system-env-vars")?,
            variables: pairs(parsed.all("env"))?,
            config: parsed.last("config").map(str::to_owned),
            secret_sources: parsed.all("secret-source").map(str::to_owned).collect(),
            no_thresholds: parsed.on("no-thresholds")?,
            seed: seed.transpose()?,
            // Iterations wait for a free user instead of being dropped.
            waits: parsed.last("rate").is_some(),
            max_series: parsed.last("max-series").map(max_series).transpose()?,
            body_memory: body_memory.transpose()?,
            failed_bodies: parsed.on("body-errors")?,
            profile: parsed.on("script-profile")?,
            keys: rows.iter().map(|_| WRITES_BY.to_owned()).collect(),
        };
        Ok(Some(Self {
            settings,
            reconcile: rows.map(str::to_owned),
            print_spec: parsed.last("print-spec").map(spec_format).transpose()?,
            script: script.clone(),
            summary_mode: match parsed.on("no-summary")? {
                true => Some("disabled".to_owned()),
                false => parsed.last("summary-mode").map(str::to_owned),
            },
            out: parsed.all("out").map(str::to_owned).collect(),
            summary_export: parsed.last("summary-export").map(str::to_owned),
            machine_readable: parsed.on("new-machine-readable-summary")?,
            verbose: parsed.on("verbose")?,
            quiet: parsed.on("quiet")?,
            no_color: parsed.on("no-color")?,
            linger: parsed.on("linger")?,
            address: parsed.last("address").map(str::to_owned),
            log_output: parsed.last("log-output").map(str::to_owned),
            log_format: ScriptLogFormat::named(
                parsed.last("log-format"),
                parsed.on("log-ns-timestamps")?,
            ),
        }))
    }
}

/// The names of `--features`, each once.
fn features(parsed: &Parsed) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in parsed.all("features").flat_map(|names| names.split(',')).map(str::trim) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The flags of a load, which those that keep the script's scenarios exclude.
const LOADS: [&str; 5] = ["vus", "duration", "iterations", "stage", "rate"];

/// The names of `--scenario`, which like `--once` keeps what scenarios the script has.
fn chosen_scenarios(parsed: &Parsed) -> Result<Vec<String>, String> {
    let names: Vec<String> =
        parsed.all("scenario").flat_map(|names| names.split(',')).map(str::to_owned).collect();
    for (flag, is_given) in [("scenario", !names.is_empty()), ("once", parsed.on("once")?)] {
        let load = LOADS.iter().find(|load| is_given && parsed.last(load).is_some());
        if let Some(load) = load {
            return Err(format!("--{flag} cannot be combined with --{load}"));
        }
    }
    Ok(names)
}

/// The options that flags set.
fn options(parsed: &Parsed) -> Result<K6Options, String> {
    let mut options = K6Options::default();
    for (flag, key) in OPTIONS {
        let mut given: Vec<&str> = parsed.all(flag.names[0]).collect();
        if !REPEATED.contains(key) {
            given.drain(..given.len().saturating_sub(1));
        }
        if !given.is_empty() {
            let text = given.join(",");
            let set = options.set_text(key, &text);
            set.map_err(|error| format!("--{} {text}: {error}", flag.names[0]))?;
        }
    }
    let stages: Vec<&str> = parsed.all("stage").collect();
    if !stages.is_empty() {
        let text = stages.join(",");
        options.set_text("stages", &text).map_err(|error| format!("--stage {text}: {error}"))?;
    }
    let tags = parsed.all("tag").filter_map(|tag| tag.split_once('='));
    for (name, value) in tags {
        options.tags.get_or_insert_default().insert(name.to_owned(), value.to_owned());
    }
    if let Some(rate) = parsed.last("rate") {
        set_rate(&mut options, rate)?;
    }
    Ok(options)
}

/// The format of a printed spec; without a value it is TOML.
fn spec_format(text: &str) -> Result<SpecFormat, String> {
    match text {
        "true" | "toml" => Ok(SpecFormat::Toml),
        "json" => Ok(SpecFormat::Json),
        other => Err(format!("--print-spec={other}: it is toml or json")),
    }
}

/// The most series, which a spec may have.
fn max_series(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=SERIES_MAX).contains(number));
    number
        .ok_or_else(|| format!("--max-series {text}: write a whole number from 1 to {SERIES_MAX}"))
}

/// Checks the values of flags with a fixed set of values. The error is in k6's words.
fn check_values(parsed: &Parsed, version: K6Version) -> Result<(), String> {
    let mode = parsed.last("summary-mode").filter(|mode| !mode.is_empty());
    let is_mode = |mode: &str| {
        let mode = SummaryMode::parse(mode);
        mode.is_some_and(|mode| version == K6Version::One || mode != SummaryMode::Legacy)
    };
    if mode.is_some_and(|mode| !is_mode(mode)) {
        return Err("invalid summary mode".to_owned());
    }
    match parsed.last("summary-time-unit") {
        None | Some("" | "s" | "ms" | "us") => {}
        Some(unit) => {
            return Err(format!("invalid summary time unit '{unit}', use 's', 'ms' or 'us'"));
        }
    }
    match parsed.last("compatibility-mode") {
        None | Some("extended" | "base" | "experimental_enhanced") => {}
        Some(mode) => {
            return Err(format!(
                "invalid compatibility mode {mode:?}. Use: \"extended\", \"base\", \
                 \"experimental_enhanced\""
            ));
        }
    }
    if let Some(output) = parsed.last("traces-output").filter(|output| *output != "none") {
        return Err(format!("--traces-output {output} cannot be honoured: gake writes no traces"));
    }
    // Options and the environment may omit the unit, and support days; flags use Go's syntax.
    for flag in ["duration", "min-iteration-duration"] {
        if let Some(text) = parsed.last(flag) {
            GoDuration::parse_go(text).map_err(|error| format!("--{flag} {text}: {error}"))?;
        }
    }
    for tag in parsed.all("tag") {
        let missing = match tag.split_once('=') {
            Some(("", _)) => "name",
            Some((_, value)) if !value.is_empty() => continue,
            _ => "value",
        };
        return Err(format!("error parsing tag '{tag}': invalid tag, empty {missing}"));
    }
    Ok(())
}

fn pairs<'a>(texts: impl Iterator<Item = &'a str>) -> Result<BTreeMap<String, String>, String> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let pair = |text: &str| {
        // As in k6, a name alone is an empty value.
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match is_name(name) {
            true => Ok((name.to_owned(), value.to_owned())),
            false => Err(format!("invalid environment variable name '{name}'")),
        }
    };
    texts.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<RunFlags, String> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        RunFlags::read(&args, K6Version::default()).map(Option::unwrap)
    }

    #[test]
    fn flags_set_options() {
        let flags = read("-u 5 -d 10s -e A=b=c --tag x=y s.js -s 5s:10 --stage 1s:0 -q").unwrap();
        assert_eq!(flags.settings.options.vus, Some(5));
        assert_eq!(flags.settings.options.stages.unwrap().len(), 2);
        assert_eq!(flags.settings.options.tags.unwrap()["x"], "y");
        assert_eq!(flags.script, "s.js");
        assert_eq!(flags.settings.variables["A"], "b=c");
        let flags = read("-u=5 -d=10s -qi=7 -e A -e B= --linger=false s.js").unwrap();
        assert_eq!(
            (flags.settings.options.vus, flags.settings.options.iterations),
            (Some(5), Some(7))
        );
        assert!(flags.quiet && flags.settings.options.duration.is_some());
        assert_eq!(
            (&flags.settings.variables["A"][..], &flags.settings.variables["B"][..]),
            ("", "")
        );
        assert!(!read("-q=false s.js").unwrap().quiet);
        let flags = read("--include-system-env-vars s.js").unwrap();
        assert!(flags.settings.shows_system && flags.script == "s.js");
        assert!(!read("--include-system-env-vars=false s.js").unwrap().settings.shows_system);
        assert!(read("--traces-output none -d 0 s.js").is_ok());
    }

    #[test]
    fn what_is_repeated_adds_up() {
        let flags = "--blacklist-ip 10.0.0.0/8,::1/128 --block-hostnames a.test s.js -u 1 -u 2 \
                     --blacklist-ip=127.0.0.0/8 --block-hostnames *.b.test \
                     --summary-trend-stats avg --summary-trend-stats p(9),max --system-tags url \
                     --system-tags name";
        let options = read(flags).unwrap().settings.options;
        let list = |list: Option<Vec<String>>| list.unwrap().join(" ");
        assert_eq!(list(options.blacklist_ips), "10.0.0.0/8 ::1/128 127.0.0.0/8");
        assert_eq!(list(options.block_hostnames), "a.test *.b.test");
        assert_eq!(list(options.summary_trend_stats), "avg p(9) max");
        assert_eq!(list(options.system_tags), "url name");
        assert_eq!(options.vus, Some(2), "of others the last holds");
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (line, expected) in [
            ("", "received 0"),
            ("a.js b.js", "received 2"),
            ("--nothing a.js", "unknown flag: --nothing"),
            ("-qZ a.js", "unknown shorthand flag: 'Z' in -Z"),
            ("--summary-mode loud a.js", "invalid summary mode"),
            ("--summary-time-unit h a.js", "use 's', 'ms' or 'us'"),
            ("--compatibility-mode x a.js", "invalid compatibility mode \"x\""),
            ("--tag =x a.js", "invalid tag, empty name"),
            ("--tag x a.js", "invalid tag, empty value"),
            ("-u many a.js", "--vus many"),
            ("--body-memory much a.js", "--body-memory much"),
            ("--print-spec=yaml a.js", "--print-spec=yaml: it is toml or json"),
            ("--duration 1 a.js", "--duration 1: time: missing unit in duration \"1\""),
            ("-d 1d a.js", "unknown unit \"d\" in duration \"1d\""),
            ("--min-iteration-duration 5 a.js", "missing unit"),
            ("--traces-output otel a.js", "--traces-output otel cannot be honoured"),
            ("--max-series 0 a.js", "--max-series 0: write a whole number from 1"),
            ("-e 1A=5 a.js", "invalid environment variable name '1A'"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
