//! How each tool is called for the same thing, and how its output is read.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::peers::Tool;

/// One way of calling a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// What the tables call it.
    pub label: String,
    /// The tool.
    pub tool: Tool,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its standard input.
    pub input: String,
}

/// The percentiles of a run as its tool reports them, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reported {
    /// The 95th.
    pub p95_ms: f64,
    /// The 99th.
    pub p99_ms: f64,
}

/// Connections of the closed loops, and of the open loops that need a number.
pub const CONNECTIONS: u64 = 50;

impl Call {
    /// `line` is split at blanks; `{url}` stands for the target.
    fn new(label: &str, tool: Tool, url: &str, line: &str) -> Self {
        let args = line.split_whitespace().map(|word| word.replace("{url}", url)).collect();
        let input = if tool == Tool::Vegeta { format!("GET {url}\n") } else { String::new() };
        Self { label: label.to_owned(), tool, args, input }
    }

    /// Exit codes after which its figures count: gake's 3 and 99 judge a run that was made.
    pub fn good_codes(&self) -> &'static [i32] {
        if self.tool == Tool::Gake { &[0, 3, 99] } else { &[0] }
    }
}

/// As fast as `c` keep-alive connections go, for some seconds.
pub fn closed_loop(tool: Tool, url: &str, c: u64, seconds: u64) -> Call {
    let line = match tool {
        Tool::Gake => format!("run {{url}} -c {c} -d {seconds}s --threads 1 --format json"),
        Tool::Wrk => format!("-t 1 -c {c} -d {seconds}s {{url}}"),
        Tool::Ab => format!("-q -k -c {c} -t {seconds} -n 5000000 {{url}}"),
        Tool::H2load => format!("--h1 -t 1 -c {c} -D {seconds} {{url}}"),
        Tool::Hey => format!("-c {c} -z {seconds}s {{url}}"),
        Tool::Vegeta => format!(
            "attack -rate 0 -max-workers {c} -connections {c} -duration {seconds}s -output /dev/null"
        ),
        Tool::Oha => format!("--no-tui -c {c} -z {seconds}s {{url}}"),
    };
    Call::new(tool.name(), tool, url, &line)
}

/// `requests` requests over 50 keep-alive connections; none for a tool that cannot count.
pub fn counted(tool: Tool, url: &str, requests: u64, connections: u64) -> Option<Call> {
    let (n, c) = (requests, connections);
    let line = match tool {
        Tool::Gake => format!("run {{url}} -n {n} -c {c} --threads 1 --format json"),
        Tool::Ab => format!("-q -k -n {n} -c {c} {{url}}"),
        Tool::H2load => format!("--h1 -t 1 -n {n} -c {c} {{url}}"),
        Tool::Hey => format!("-n {n} -c {c} {{url}}"),
        Tool::Oha => format!("--no-tui -n {n} -c {c} {{url}}"),
        Tool::Wrk | Tool::Vegeta => return None,
    };
    Some(Call::new(tool.name(), tool, url, &line))
}

/// `requests` requests over HTTP/2 connections with concurrent streams: gake's call and h2load's.
pub fn streams(url: &str, requests: u64, connections: u64, streams: u64) -> [Call; 2] {
    let (n, c, m) = (requests, connections, streams);
    let line =
        format!("run {{url}} --http2 -k -n {n} -c {c} --streams {m} --threads 1 --format json");
    let gake = Call::new("gake", Tool::Gake, url, &line);
    let line = format!("-t 1 -n {n} -c {c} -m {m} {{url}}");
    [gake, Call::new("h2load", Tool::H2load, url, &line)]
}

/// A constant rate for some seconds, with all ways a tool has that matter here.
pub fn open_loop(tool: Tool, url: &str, rate: u64, seconds: u64) -> Vec<Call> {
    let c = CONNECTIONS;
    let each = rate / c;
    let ways: Vec<(&str, String)> = match tool {
        Tool::Gake => {
            let line = format!("run {{url}} -r {rate} -d {seconds}s --threads 1 --format json");
            vec![
                ("gake", line.clone()),
                ("gake --spin", format!("{line} --spin")),
                ("gake --local 4", format!("{line} --local 4 --agents-wait 10s")),
            ]
        }
        Tool::H2load => {
            vec![("h2load", format!("--h1 -t 1 -c {c} --rps {each} -D {seconds} {{url}}"))]
        }
        Tool::Hey => vec![("hey", format!("-c {c} -q {each} -z {seconds}s {{url}}"))],
        Tool::Vegeta => vec![("vegeta", format!("attack -rate {rate} -duration {seconds}s"))],
        Tool::Oha => {
            vec![(
                "oha",
                format!("--no-tui --output-format json -c {c} -q {rate} -z {seconds}s {{url}}"),
            )]
        }
        Tool::Wrk | Tool::Ab => Vec::new(),
    };
    ways.into_iter().map(|(label, line)| Call::new(label, tool, url, &line)).collect()
}

/// A constant rate against a server that stops, with the connection bounds that matter.
pub fn stalled(tool: Tool, url: &str, rate: u64, seconds: u64) -> Vec<Call> {
    let first = open_loop(tool, url, rate, seconds).into_iter().next();
    let Some(call) = first else { return Vec::new() };
    let with = |label: &str, more: &str| {
        let mut call = call.clone();
        label.clone_into(&mut call.label);
        call.args.extend(more.split_whitespace().map(str::to_owned));
        call
    };
    match tool {
        Tool::Gake => vec![
            with("gake -c 5", "-c 5"),
            with("gake -c 50", "-c 50"),
            with("gake -c 1000", "-c 1000"),
        ],
        Tool::Vegeta => {
            vec![with("vegeta -max-workers 50", "-max-workers 50"), with("vegeta", "")]
        }
        Tool::Oha => {
            vec![with("oha", ""), with("oha --latency-correction", "--latency-correction")]
        }
        Tool::Hey => vec![with("hey", "")],
        // h2load reports no percentiles.
        _ => Vec::new(),
    }
}

/// Reads the percentiles out of what a tool printed (for vegeta: its report in JSON).
pub fn reported(tool: Tool, stdout: &[u8]) -> Result<Reported> {
    let json = || serde_json::from_slice::<Value>(stdout).context("its JSON could not be read");
    let number = |value: &Value, scale: f64| {
        value.as_f64().map(|value| value * scale).context("its JSON lacks a percentile")
    };
    match tool {
        Tool::Gake => {
            let response = &json()?["latency_ns"]["response"];
            Ok(Reported {
                p95_ms: number(&response["p95"], 1e-6)?,
                p99_ms: number(&response["p99"], 1e-6)?,
            })
        }
        Tool::Vegeta => {
            let latencies = &json()?["latencies"];
            Ok(Reported {
                p95_ms: number(&latencies["95th"], 1e-6)?,
                p99_ms: number(&latencies["99th"], 1e-6)?,
            })
        }
        Tool::Oha => {
            let latencies = &json()?["latencyPercentiles"];
            Ok(Reported {
                p95_ms: number(&latencies["p95"], 1e3)?,
                p99_ms: number(&latencies["p99"], 1e3)?,
            })
        }
        Tool::Hey => hey(&String::from_utf8_lossy(stdout)),
        Tool::Wrk | Tool::Ab | Tool::H2load => bail!("{} has no open loop", tool.name()),
    }
}

/// `  99% in 0.0050 secs`; some versions write `99%%`.
fn hey(text: &str) -> Result<Reported> {
    let seconds = |percent: &str| {
        text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix(percent)?.trim_start_matches('%');
            rest.strip_prefix(" in ")?.strip_suffix(" secs")?.parse::<f64>().ok()
        })
    };
    let p95_ms = seconds("95").context("hey printed no 95th percentile")? * 1e3;
    let p99_ms = seconds("99").context("hey printed no 99th percentile")? * 1e3;
    Ok(Reported { p95_ms, p99_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_in_milliseconds() {
        let gake = br#"{"latency_ns": {"response": {"p95": 500000000, "p99": 900000000}}}"#;
        let vegeta = br#"{"latencies": {"95th": 500000000, "99th": 900000000}}"#;
        let oha = br#"{"latencyPercentiles": {"p95": 0.5, "p99": 0.9}}"#;
        let hey = b"Latency distribution:\n  95% in 0.5000 secs\n  99%% in 0.9000 secs\n";
        let truth = Reported { p95_ms: 500.0, p99_ms: 900.0 };
        assert_eq!(reported(Tool::Gake, gake).unwrap(), truth);
        assert_eq!(reported(Tool::Vegeta, vegeta).unwrap(), truth);
        assert_eq!(reported(Tool::Oha, oha).unwrap(), truth);
        assert_eq!(reported(Tool::Hey, hey).unwrap(), truth);
        assert!(reported(Tool::Gake, b"{}").is_err());
    }

    #[test]
    fn a_call_names_its_target() {
        let call = closed_loop(Tool::Gake, "http://h/", 50, 5);
        assert_eq!(call.args.join(" "), "run http://h/ -c 50 -d 5s --threads 1 --format json");
        assert_eq!(closed_loop(Tool::Vegeta, "http://h/", 50, 5).input, "GET http://h/\n");
        assert!(counted(Tool::Wrk, "http://h/", 1, 1).is_none());
    }

    #[test]
    fn the_stall_is_met_with_three_bounds() {
        let labels: Vec<_> =
            stalled(Tool::Gake, "u", 1000, 10).into_iter().map(|call| call.label).collect();
        assert_eq!(labels, ["gake -c 5", "gake -c 50", "gake -c 1000"]);
    }
}
