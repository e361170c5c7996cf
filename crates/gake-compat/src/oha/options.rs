//! oha's flags, their defaults and the resulting spec.

use std::path::PathBuf;
use std::time::Duration;

use super::report::TimeUnit;
use gake_core::Load;
use gake_core::plan::Stage;
use gake_core::schedule::Process;
use gake_core::spec::{
    ConnectionSpec, HttpVersion, IpFamily, RequestSource, RunSpec, ScenarioSpec, TlsSpec,
};
use gake_text::duration::parse_duration;

use super::requests;
use crate::flags::{CommandLine, Flag, Parsed, dashed, refused, switch, value};
use crate::tool_run::YEAR;
use gake_session::Failure;
use gake_session::options::values::at_least_one as count;

const PROXY: &str = "only `gake run --proxy URL` sends through proxies";
const AWS: &str = "gake does not sign requests";

const FLAGS: &[Flag] = &[
    value(&["n"]),
    value(&["c"]),
    value(&["p"]),
    value(&["z"]),
    switch(&["wait-ongoing-requests-after-deadline", "w"]),
    value(&["q"]),
    switch(&["latency-correction"]),
    value(&["burst-delay"]),
    value(&["burst-rate"]),
    switch(&["urls-from-file"]),
    value(&["d"]),
    value(&["D"]),
    value(&["Z"]),
    value(&["form", "F"]),
    value(&["T"]),
    value(&["method", "m"]),
    value(&["H"]),
    value(&["A"]),
    value(&["a"]),
    value(&["host"]),
    value(&["redirect", "r"]),
    value(&["http-version"]),
    switch(&["disable-keepalive"]),
    switch(&["disable-compression"]),
    value(&["t"]),
    value(&["connect-timeout"]),
    value(&["connect-to"]),
    value(&["unix-socket"]),
    switch(&["ipv4"]),
    switch(&["ipv6"]),
    value(&["cacert"]),
    value(&["cert"]),
    value(&["key"]),
    switch(&["insecure"]),
    value(&["output", "o"]),
    value(&["output-format"]),
    value(&["time-unit", "u"]),
    switch(&["stats-success-breakdown"]),
    value(&["worker-threads"]),
    // gake as oha never draws or colours, so these change nothing.
    switch(&["no-tui"]),
    value(&["fps"]),
    switch(&["no-color", "disable-color"]),
    switch(&["help", "h"]),
    switch(&["version", "V"]),
    value(&["x"]),
    refused(&["proxy-header"], PROXY),
    refused(&["proxy-http-version"], PROXY),
    refused(&["proxy-http2"], PROXY),
    switch(&["http2"]),
    refused(&["aws-session"], AWS),
    refused(&["aws-sigv4"], AWS),
    switch(&["rand-regex-url"]),
    value(&["max-repeat"]),
    value(&["dump-urls"]),
    refused(&["no-pre-lookup"], "gake resolves every name once, before the run"),
    value(&["db-url"]),
    switch(&["debug"]),
];

/// The output of `--help`.
pub const USAGE: &str = "\
Usage: oha [OPTIONS] <URL>

Load:
  -n N            Number of requests: 1000, 10k, 1m. Default 200.
  -c N            Connections. Default 50.
  -z TIME         Duration (10s, 3m), instead of -n requests.
  -w              At the end of -z, wait for requests in flight instead of aborting them.
  -q RATE         Requests a second over all connections.
  --latency-correction            With -q: latency counts from when a request was due.
  --burst-delay TIME --burst-rate N   N requests at once, every TIME.
  --worker-threads N              Threads.

Request:
  -m METHOD  -H 'Name: value'  -A ACCEPT  -T CONTENT-TYPE  --host HOST  -a USER:PASSWORD
  -d BODY  -D FILE  -Z FILE (one line per request)  -F name=value  -F name=@file
  --urls-from-file                The URL is a file of URLs, sent in turn.
  --rand-regex-url                Path and query of the URL are a regular expression for 10,000 URLs.
  --max-repeat N                  Most repeats of * and + in it. Default 4.
  --dump-urls N                   Print N such URLs, and end.
  -r N            Redirects to follow. Default 0.
  --disable-compression  --disable-keepalive  --http-version 1.0|1.1|2|3  --http2

Connections:
  -t TIME         Time-out of a request. Default: none.
  --connect-timeout TIME          Default 5s.
  -x URL          HTTP or SOCKS proxy.
  --connect-to HOST:PORT:HOST:PORT  --unix-socket PATH  --ipv4  --ipv6
  --cacert FILE  --cert FILE --key FILE  --insecure

Output:
  -o FILE         Write to a file instead of standard output.
  --output-format text|json|csv|quiet
  -u ns|us|ms|s|m|h               Time unit of the text output.
  --stats-success-breakdown       Also show 2xx and other responses separately.
  --db-url FILE                   Responses as rows of an SQLite file.
  --debug                         Send one request, and show it and its response.

Differences from oha, and refused flags: docs/as-oha.md
gake's own result beside it: --gake-out FILE, --gake-format FORMAT.
";

/// The formats of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    Json,
    Csv,
    Quiet,
}

/// A command line of oha.
#[derive(Debug)]
pub struct OhaOptions {
    /// Time between bursts, and requests in each.
    pub burst: Option<(Duration, u64)>,
    /// The file of the result.
    pub output: Option<String>,
    /// The format of the result.
    pub format: OutputFormat,
    pub unit: Option<TimeUnit>,
    /// Whether 2xx and other responses are also shown separately.
    pub breakdown: bool,
    /// Whether one request is sent and shown.
    pub debug: bool,
    /// A URL, or a file of them.
    pub target: String,
    /// All flags.
    pub parsed: Parsed,
}

/// Checks flags that exclude or require each other.
fn check(parsed: &Parsed) -> Result<(), String> {
    let given = |name: &str| parsed.last(name).is_some();
    let bodies = ["d", "D", "Z", "form"];
    let exclusive = [
        ("n", "z"),
        ("q", "burst-delay"),
        ("q", "burst-rate"),
        ("urls-from-file", "rand-regex-url"),
    ]
    .into_iter();
    let pairs = bodies.iter().enumerate();
    let exclusive =
        exclusive.chain(pairs.flat_map(|(at, a)| bodies[at + 1..].iter().map(|b| (*a, *b))));
    for (one, other) in exclusive {
        if given(one) && given(other) {
            return Err(format!("{} and {} exclude each other", dashed(one), dashed(other)));
        }
    }
    for (one, needed) in [
        ("wait-ongoing-requests-after-deadline", "z"),
        ("burst-delay", "burst-rate"),
        ("burst-rate", "burst-delay"),
        ("max-repeat", "rand-regex-url"),
        ("dump-urls", "rand-regex-url"),
        ("cert", "key"),
        ("key", "cert"),
    ] {
        if given(one) && !given(needed) {
            return Err(format!("{} needs {}", dashed(one), dashed(needed)));
        }
    }
    // Any number is valid, since it only concerns HTTP/2.
    parsed.get::<usize>("p")?;
    parsed.get::<usize>("fps")?;
    let mut rules: Vec<_> = parsed.all("connect-to").map(origin_of).collect();
    rules.sort_unstable();
    if rules.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("--connect-to is given twice for one host and port: gake picks none at random"
            .to_owned());
    }
    Ok(())
}

/// `HOST:PORT` of a `--connect-to`; the host may be an address in brackets.
fn origin_of(rule: &str) -> &str {
    let host = rule.find(']').unwrap_or(0);
    let mut colons = rule[host..].match_indices(':').map(|(at, _)| host + at);
    colons.nth(1).map_or(rule, |end| &rule[..end])
}

impl OhaOptions {
    /// Reads a command line.
    pub fn read(args: &[String]) -> Result<CommandLine<Self>, String> {
        CommandLine::read(FLAGS, "help", args, Self::of)
    }

    fn of(parsed: Parsed) -> Result<Self, String> {
        check(&parsed)?;
        let target = match parsed.operands.as_slice() {
            [target] => target.clone(),
            [] => return Err("the URL is missing; see --help".to_owned()),
            [_, second, ..] => return Err(format!("{second:?} is one URL too many")),
        };
        let format = match parsed.last("output-format") {
            None | Some("text") => OutputFormat::Text,
            Some("json") => OutputFormat::Json,
            Some("csv") => OutputFormat::Csv,
            Some("quiet") => OutputFormat::Quiet,
            Some(other) => {
                return Err(format!("--output-format {other:?}: write text, json, csv or quiet"));
            }
        };
        let unit = parsed.read_with("time-unit", |requested| {
            TimeUnit::read(requested).ok_or_else(|| "it is ns, us, ms, s, m or h".to_owned())
        })?;
        let burst = match parsed.read_with("burst-delay", positive_duration)? {
            None => None,
            Some(delay) => parsed.read_with("burst-rate", count)?.map(|size| (delay, size)),
        };
        Ok(Self {
            burst,
            output: parsed.last("output").map(str::to_owned),
            format,
            unit,
            breakdown: parsed.on("stats-success-breakdown")?,
            debug: parsed.on("debug")?,
            target,
            parsed,
        })
    }

    /// Whether latency counts from when a request was due.
    pub fn corrected(&self) -> bool {
        self.parsed.last("latency-correction").is_some() && self.parsed.last("q").is_some()
    }

    /// The spec of the run.
    ///
    /// # Errors
    /// When a value is not valid or a file cannot be read.
    pub fn spec(&self) -> Result<RunSpec, Failure> {
        let requests = requests::sent(&self.parsed, &self.target)?;
        let scenario = self.scenario(requests.source).map_err(Failure::usage)?;
        let parsed = &self.parsed;
        let threads = parsed.read_with("worker-threads", count).map_err(Failure::usage)?;
        let insecure = parsed.on("insecure").map_err(Failure::usage)?;
        Ok(RunSpec {
            name: requests.file,
            threads: threads.map(|threads| threads as usize),
            connection: self.connection().map_err(Failure::usage)?,
            tls: TlsSpec {
                insecure,
                ca_certificates: parsed.last("cacert").map(PathBuf::from).into_iter().collect(),
                certificate: parsed.last("cert").map(PathBuf::from),
                key: parsed.last("key").map(PathBuf::from),
                ..TlsSpec::default()
            },
            ..RunSpec::new(ScenarioSpec { request: requests.defaults, ..scenario })
        })
    }

    /// The load and its duration.
    pub(super) fn scenario(&self, source: RequestSource) -> Result<ScenarioSpec, String> {
        let parsed = &self.parsed;
        let connections = parsed.read_with("c", count)?.unwrap_or(50);
        let connections = usize::try_from(connections).unwrap_or(usize::MAX);
        // In oha an HTTP/1 connection has one request at a time, whatever the value of `-p`.
        let streams = self.streams()?.unwrap_or(1);
        let users = connections.saturating_mul(streams);
        let duration = parsed.read_with("z", positive_duration)?;
        let requests = parsed.read_with("n", count)?;
        let requests = duration.is_none().then(|| requests.unwrap_or(200));
        let (rate, process) = match (self.burst, parsed.read_with("q", rate)?) {
            (Some((delay, size)), _) => {
                (Some(size as f64 / delay.as_secs_f64()), Process::Bursts { size, jitter: 0 })
            }
            // Without a rate oha sends without a limit.
            (None, rate) => (rate.filter(|rate| *rate > 0.0), Process::Uniform),
        };
        let load = match rate {
            Some(rate) => {
                let stage = Stage::step(rate, duration.unwrap_or(Duration::MAX));
                Load::Open { stages: vec![stage], process }
            }
            None => Load::closed(users),
        };
        let waits = parsed.on("wait-ongoing-requests-after-deadline")?;
        Ok(ScenarioSpec {
            duration: duration.filter(|_| rate.is_none()),
            requests,
            graceful_stop: if waits || duration.is_none() { YEAR } else { Duration::ZERO },
            connections,
            max_in_flight: users,
            ..ScenarioSpec::new(source, load)
        })
    }

    fn http(&self) -> Result<HttpVersion, String> {
        let version = self.parsed.last("http-version").map(str::trim);
        if self.parsed.on("http2")? {
            return match version {
                None => Ok(HttpVersion::Http2),
                Some(_) => Err("--http2 and --http-version exclude each other".to_owned()),
            };
        }
        match version {
            None | Some("1.1") => Ok(HttpVersion::Http11),
            Some("1.0") => Ok(HttpVersion::Http10),
            Some("2" | "2.0") => Ok(HttpVersion::Http2),
            Some("3" | "3.0") => Ok(HttpVersion::Http3),
            Some("0.9") => {
                let spoken = "gake speaks HTTP/1.0, 1.1, 2 and 3";
                Err(format!("--http-version cannot be honoured: {spoken}"))
            }
            Some(_) => Err("--http-version: write 1.0, 1.1, 2 or 3".to_owned()),
        }
    }

    /// Requests at once on a connection, with HTTP/2 and HTTP/3.
    fn streams(&self) -> Result<Option<usize>, String> {
        let streams = self.parsed.read_with("p", count)?.unwrap_or(1);
        let streams = usize::try_from(streams).unwrap_or(usize::MAX);
        Ok(self.http()?.is_multiplexed().then_some(streams))
    }

    pub(super) fn connection(&self) -> Result<ConnectionSpec, String> {
        let parsed = &self.parsed;
        let http = self.http()?;
        let connect = parsed.read_with("connect-timeout", positive_duration)?;
        Ok(ConnectionSpec {
            timeout: parsed.read_with("t", positive_duration)?.unwrap_or(YEAR),
            connect_timeout: connect.unwrap_or(Duration::from_secs(5)),
            // oha's HTTP/1.0 requests do not request keep-alive.
            keepalive: !parsed.on("disable-keepalive")? && http != HttpVersion::Http10,
            proxy: parsed.last("x").map(str::to_owned),
            max_redirects: parsed.get("redirect")?.unwrap_or(0),
            http,
            streams: self.streams()?,
            connect_to: parsed.all("connect-to").map(str::to_owned).collect(),
            unix_socket: parsed.last("unix-socket").map(PathBuf::from),
            family: match (parsed.on("ipv4")?, parsed.on("ipv6")?) {
                (true, false) => Some(IpFamily::Ipv4),
                (false, true) => Some(IpFamily::Ipv6),
                _ => None,
            },
            ..ConnectionSpec::default()
        })
    }
}

/// A positive duration with a unit.
fn positive_duration(text: &str) -> Result<Duration, String> {
    if text.trim().parse::<f64>().is_ok() {
        return Err(format!("a unit is missing: {text}s or {text}ms"));
    }
    match parse_duration(text).map_err(|error| error.to_string())? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        duration => Ok(duration),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
        _ => Err("it is a number a second".to_owned()),
    }
}
