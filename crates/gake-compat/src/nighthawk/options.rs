//! The flags of `nighthawk_client`.

use std::time::Duration;

use super::report::{COUNTERS, NighthawkSettings};
use gake_wire::Location;

use crate::flags::{CommandLine, Flag, Parsed, refused, switch, value};
use crate::tool_run::THREADS_MAX;
use gake_session::options::values::header as read_header;

/// Nighthawk's largest number: larger ones are wrapped negative numbers.
const LARGEST: u32 = u32::MAX - 30_000;

/// The most bytes of a body, which is in memory.
const BODY_MAX: u32 = 1 << 30;

/// The most arrivals to sort at once, because their jitter lets them overtake each other.
const JITTERED_MAX: f64 = 10e6;

/// The counters that by default fail a run when they are above 0.
const FAILURES: [&str; 3] =
    ["benchmark.http_4xx", "benchmark.http_5xx", "benchmark.pool_connection_failure"];

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"];
const VERBOSITIES: [&str; 6] = ["trace", "debug", "info", "warn", "error", "critical"];

const ONE_TARGET: &str = "write the targets into a file and run it with `gake run FILE`";
const ENVOY: &str = "it configures Envoy, which gake does not use";

/// The default number of streams of a connection, and of requests in flight of a worker.
const STREAMS: u32 = i32::MAX as u32;
const ACTIVE: u32 = 100;

const FLAGS: &[Flag] = &[
    value(&["rps"]),
    value(&["connections"]),
    value(&["duration"]),
    switch(&["no-duration"]),
    value(&["timeout"]),
    value(&["concurrency"]),
    value(&["verbosity", "v"]),
    value(&["output-format"]),
    value(&["burst-size"]),
    value(&["address-family"]),
    value(&["request-method"]),
    value(&["request-header"]),
    value(&["request-body-size"]),
    value(&["max-pending-requests"]),
    value(&["max-active-requests"]),
    value(&["max-requests-per-connection"]),
    value(&["sequencer-idle-strategy"]),
    value(&["termination-predicate"]),
    value(&["failure-predicate"]),
    switch(&["no-default-failure-predicates"]),
    switch(&["open-loop"]),
    value(&["jitter-uniform"]),
    value(&["label"]),
    value(&["protocol", "p"]),
    value(&["experimental-h1-connection-reuse-strategy"]),
    switch(&["version"]),
    switch(&["help", "h"]),
    switch(&["h2"]),
    value(&["max-concurrent-streams"]),
    switch(&["experimental-h2-use-multiple-connections"]),
    refused(&["prefetch-connections"], "gake opens a connection when a request needs it"),
    refused(&["multi-target-endpoint"], ONE_TARGET),
    refused(&["multi-target-path"], ONE_TARGET),
    refused(&["multi-target-use-https"], ONE_TARGET),
    refused(&["request-source"], ONE_TARGET),
    refused(&["request-source-plugin-config"], ONE_TARGET),
    refused(&["simple-warmup"], "use `gake run --warmup`"),
    refused(&["latency-response-header-name"], "gake does not read times from headers"),
    refused(&["nighthawk-service"], "gake has no gRPC service"),
    refused(&["stats-sinks"], ENVOY),
    refused(&["stats-flush-interval"], ENVOY),
    refused(&["tls-context"], ENVOY),
    refused(&["transport-socket"], ENVOY),
    refused(&["upstream-bind-config"], ENVOY),
    refused(&["trace"], ENVOY),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Human,
    Json,
    Csv,
    Fortio,
}

/// A command line of `nighthawk_client`.
#[derive(Debug)]
pub struct NighthawkOptions {
    /// The settings that Nighthawk's output repeats.
    pub settings: NighthawkSettings,
    /// The number of event loops, by which per-worker numbers are multiplied.
    pub workers: usize,
    /// Whether the waits are polled.
    pub spin: bool,
    /// The format of the result.
    pub format: OutputFormat,
}

impl NighthawkOptions {
    /// Reads a command line.
    ///
    /// # Errors
    /// When a flag is not valid or not supported; the error names it.
    pub fn read(args: &[String]) -> Result<CommandLine<Self>, String> {
        CommandLine::read(FLAGS, "help", args, |parsed| Self::of(&parsed))
    }

    fn of(parsed: &Parsed) -> Result<Self, String> {
        let [uri] = parsed.operands.as_slice() else {
            return Err("give one URI to load, for example http://localhost:8080/".to_owned());
        };
        let uri = if uri.contains("://") { uri.clone() } else { format!("http://{uri}") };
        Location::parse(&uri).map_err(|error| error.to_string())?;
        let (concurrency, workers) = concurrency(parsed)?;
        let format = format(parsed)?;
        let max_streams = max_streams(parsed)?;
        let is_http3 = parsed.last("protocol") == Some("http3");
        let reuse = parsed.last("experimental-h1-connection-reuse-strategy");
        if reuse.is_some_and(|strategy| strategy != "mru") {
            return Err("--experimental-h1-connection-reuse-strategy cannot be honoured: gake \
                        takes the connection used last (mru)"
                .to_owned());
        }
        let strategy = one_of(parsed, "sequencer-idle-strategy", &["spin", "poll", "sleep"])?;
        let text = |text: Option<&str>, default: &str| text.unwrap_or(default).to_owned();
        let settings = NighthawkSettings {
            uri,
            rps: number(parsed, "rps", 5, 1)?,
            connections: number(parsed, "connections", 100, 1)?,
            duration: duration(parsed)?,
            timeout: Duration::from_secs(number(parsed, "timeout", 30, 1)?.into()),
            concurrency,
            output_format: text(parsed.last("output-format"), "human"),
            verbosity: text(one_of(parsed, "verbosity", &VERBOSITIES)?, "info"),
            address_family: text(one_of(parsed, "address-family", &["auto", "v4", "v6"])?, "auto"),
            idle_strategy: text(strategy, "spin"),
            method: text(one_of(parsed, "request-method", &METHODS)?, "GET"),
            headers: parsed.all("request-header").map(read_header).collect::<Result<_, _>>()?,
            body_size: number(parsed, "request-body-size", 0, 0)?,
            open_loop: parsed.on("open-loop")?,
            burst_size: number(parsed, "burst-size", 0, 0)?,
            jitter: parsed.read_with("jitter-uniform", jitter)?.unwrap_or_default(),
            max_pending: number(parsed, "max-pending-requests", 0, 0)?,
            max_active: number(
                parsed,
                "max-active-requests",
                if max_streams.is_some() { ACTIVE } else { LARGEST },
                1,
            )?,
            max_per_connection: number(parsed, "max-requests-per-connection", LARGEST, 1)?,
            max_streams,
            is_http3,
            termination: predicates(parsed, "termination-predicate")?.unwrap_or_default(),
            failure: failures(parsed)?,
            labels: parsed.all("label").map(str::to_owned).collect(),
        };
        let options = Self { settings, workers, spin: strategy == Some("spin"), format };
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), String> {
        let settings = &self.settings;
        if !matches!(settings.max_per_connection, 1 | LARGEST) {
            return Err(
                "--max-requests-per-connection cannot be honoured: with gake a connection \
                        serves 1 request or as many as come; leave it out or write 1"
                    .to_owned(),
            );
        }
        if settings.body_size > BODY_MAX {
            return Err(format!("--request-body-size is at most {BODY_MAX} bytes"));
        }
        if self.rate() * settings.jitter.as_secs_f64() > JITTERED_MAX {
            return Err("--jitter-uniform is too long for this rate: more than 10 million \
                        requests would overtake each other"
                .to_owned());
        }
        Ok(())
    }

    /// Requests a second over all workers.
    pub fn rate(&self) -> f64 {
        f64::from(self.settings.rps) * self.workers as f64
    }

    /// The most requests in flight of a worker.
    pub fn lanes(&self) -> u32 {
        match self.settings.max_streams {
            Some(_) => self.settings.max_active,
            None => self.settings.max_active.min(self.settings.connections),
        }
    }

    /// The most connections of a worker: with HTTP/2 no more than its requests need.
    pub fn connections(&self) -> u32 {
        match self.settings.max_streams {
            Some(streams) => self.settings.max_active.div_ceil(streams),
            None => self.settings.connections,
        }
    }

    /// The number over all workers, where each has `each`.
    pub fn total(&self, each: u32) -> usize {
        (each as usize).saturating_mul(self.workers)
    }
}

/// The most streams of a connection, with HTTP/2 and HTTP/3.
fn max_streams(parsed: &Parsed) -> Result<Option<u32>, String> {
    let old = parsed.on("h2")?;
    let is_multiplexed = match parsed.last("protocol") {
        Some(_) if old => return Err("--h2 and --protocol are mutually exclusive".to_owned()),
        None | Some("http1") => old,
        Some("http2" | "http3") => true,
        Some(_) => {
            let spoken = "write http1, http2 or http3";
            return Err(format!("--protocol cannot be honoured: {spoken}"));
        }
    };
    let one = parsed.on("experimental-h2-use-multiple-connections")?;
    let streams = number(parsed, "max-concurrent-streams", if one { 1 } else { STREAMS }, 1)?;
    Ok(is_multiplexed.then_some(streams))
}

/// The value of `--concurrency` and the number of event loops.
fn concurrency(parsed: &Parsed) -> Result<(String, usize), String> {
    let text = parsed.last("concurrency").unwrap_or("1");
    let workers = match text {
        "auto" => std::thread::available_parallelism().map_or(1, usize::from),
        number => number.parse().unwrap_or(0),
    };
    if !(1..=THREADS_MAX as usize).contains(&workers) {
        return Err(format!(
            "--concurrency {text:?}: it is auto or a number from 1 to {THREADS_MAX}"
        ));
    }
    Ok((text.to_owned(), workers))
}

fn format(parsed: &Parsed) -> Result<OutputFormat, String> {
    match parsed.last("output-format").unwrap_or("human") {
        "human" => Ok(OutputFormat::Human),
        "json" => Ok(OutputFormat::Json),
        "csv" => Ok(OutputFormat::Csv),
        "fortio" => Ok(OutputFormat::Fortio),
        other => Err(format!(
            "--output-format {other:?} cannot be honoured: it is human, json, csv or fortio"
        )),
    }
}

fn duration(parsed: &Parsed) -> Result<Option<Duration>, String> {
    let given = parsed.last("duration").is_some();
    match parsed.on("no-duration")? {
        true if given => Err("--duration and --no-duration are mutually exclusive".to_owned()),
        true => Ok(None),
        false => Ok(Some(Duration::from_secs(number(parsed, "duration", 5, 1)?.into()))),
    }
}

fn number(parsed: &Parsed, name: &str, default: u32, least: u32) -> Result<u32, String> {
    let read = |text: &str| match text.parse() {
        Ok(number) if (least..=LARGEST).contains(&number) => Ok(number),
        _ => Err(format!("it is a whole number from {least} to {LARGEST}")),
    };
    Ok(parsed.read_with(name, read)?.unwrap_or(default))
}

fn one_of<'a>(parsed: &'a Parsed, name: &str, known: &[&str]) -> Result<Option<&'a str>, String> {
    match parsed.last(name) {
        Some(text) if !known.contains(&text) => {
            Err(format!("--{name} {text:?}: write one of {}", known.join(", ")))
        }
        text => Ok(text),
    }
}

/// A duration in the JSON format of Protocol Buffers: `.00001s`.
fn jitter(text: &str) -> Result<Duration, String> {
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse().ok());
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "write a time in seconds, for example .00001s".to_owned())
}

fn failures(parsed: &Parsed) -> Result<Vec<(String, u64)>, String> {
    let none = parsed.on("no-default-failure-predicates")?;
    let defaults = || FAILURES.map(|name| (name.to_owned(), 0)).to_vec();
    let own = predicates(parsed, "failure-predicate")?;
    Ok(own.unwrap_or_else(|| if none { Vec::new() } else { defaults() }))
}

fn predicates(parsed: &Parsed, name: &str) -> Result<Option<Vec<(String, u64)>>, String> {
    let read = |text: &str| {
        let (counter, threshold) = text
            .rsplit_once(':')
            .and_then(|(counter, threshold)| Some((counter, threshold.parse().ok()?)))
            .ok_or_else(|| format!("--{name} {text:?}: write it as benchmark.http_2xx:99"))?;
        if !COUNTERS.contains(&counter) {
            let known = COUNTERS.join(", ");
            return Err(format!("--{name} {text:?}: gake counts {known}"));
        }
        Ok((counter.to_owned(), threshold))
    };
    let list: Vec<_> = parsed.all(name).map(read).collect::<Result<_, _>>()?;
    Ok(Some(list).filter(|list| !list.is_empty()))
}

/// The help text.
pub const USAGE: &str = "\
Usage: nighthawk_client [flags] URI

  --rps N  --connections N            per worker (5, 100)
  --concurrency N|auto                workers (1)
  --duration SECONDS | --no-duration  (5)
  --open-loop                         drop requests that find every connection busy
  --max-pending-requests N            requests that may wait anyway (0)
  --max-active-requests N  --max-requests-per-connection 1
  --burst-size N  --jitter-uniform TIME
  --request-method M  --request-header 'name: value'  --request-body-size BYTES
  --timeout SECONDS                   for connecting (30)
  --termination-predicate COUNTER:N  --failure-predicate COUNTER:N
  --no-default-failure-predicates
  --output-format human|json|csv|fortio  --label TEXT  -v LEVEL
  --sequencer-idle-strategy spin|poll|sleep  --address-family auto|v4|v6
  -p http1|http2|http3  --max-concurrent-streams N   streams of a connection
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::words;

    fn read(line: &str) -> Result<NighthawkOptions, String> {
        match NighthawkOptions::read(&words(line))? {
            CommandLine::Run(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn defaults_are_nighthawks() {
        let options = read("127.0.0.1:10000").unwrap();
        let settings = &options.settings;
        assert_eq!(settings.uri, "http://127.0.0.1:10000");
        assert_eq!((settings.rps, settings.connections, options.workers), (5, 100, 1));
        assert_eq!(settings.duration, Some(Duration::from_secs(5)));
        assert_eq!((settings.failure.len(), settings.termination.len()), (3, 0));
        assert!(!settings.open_loop && !options.spin && options.format == OutputFormat::Human);
    }

    #[test]
    fn the_numbers_of_a_worker_are_multiplied() {
        let line = "http://h/ --rps 500 --connections 200 --concurrency 2 --open-loop \
                    --no-default-failure-predicates --jitter-uniform .00001s -p http1 -v warn";
        let options = read(line).unwrap();
        assert_eq!((options.rate(), options.total(options.settings.connections)), (1_000.0, 400));
        assert_eq!(options.settings.jitter, Duration::from_micros(10));
        assert!(options.settings.failure.is_empty() && options.settings.open_loop);
        let options = read("h --failure-predicate benchmark.http_2xx:3 --no-duration").unwrap();
        assert_eq!(options.settings.failure, [("benchmark.http_2xx".to_owned(), 3)]);
        assert_eq!(options.settings.duration, None);
    }

    #[test]
    fn http2_opens_the_connections_that_its_requests_need() {
        let options = read("h -p http2").unwrap();
        assert_eq!((options.connections(), options.lanes()), (1, 100));
        let options = read("h --h2 --max-concurrent-streams 30 --connections 7").unwrap();
        assert_eq!((options.connections(), options.lanes()), (4, 100));
        let line = "h -p http2 --experimental-h2-use-multiple-connections --max-active-requests 9";
        let options = read(line).unwrap();
        assert_eq!((options.connections(), options.lanes()), (9, 9));
    }

    #[test]
    fn what_cannot_be_honoured_is_named() {
        for (line, expected) in [
            ("", "give one URI"),
            ("h --h2 -p http2", "--h2 and --protocol"),
            ("h --protocol http4", "--protocol"),
            ("h --output-format yaml", "--output-format"),
            ("h --rps 0", "--rps"),
            ("h --rps -5", "--rps"),
            ("h --duration 5 --no-duration", "mutually exclusive"),
            ("h --concurrency 0", "--concurrency"),
            ("h --failure-predicate foo:1", "--failure-predicate \"foo:1\""),
            ("h --termination-predicate benchmark.http_2xx", "--termination-predicate"),
            ("h --max-requests-per-connection 7", "--max-requests-per-connection"),
            ("h --jitter-uniform 10us", "--jitter-uniform"),
            ("h --rps 1000000 --jitter-uniform 60s", "--jitter-uniform"),
            ("h --request-method BREW", "--request-method"),
            ("h --prefetch-connections", "--prefetch-connections"),
            ("h --multi-target-path /x", "--multi-target-path"),
            ("h --what", "--what"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
