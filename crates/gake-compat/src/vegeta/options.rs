//! The flags of `vegeta attack`, with Vegeta's defaults and meanings.

use std::path::PathBuf;
use std::time::Duration;

use gake_core::Load;
use gake_core::spec::{ConnectionSpec, HttpVersion, RequestSource, RunSpec, ScenarioSpec, TlsSpec};
use gake_report::vegeta::go;
use gake_run::targets::TargetFormat;

use crate::flags::{Flag, Parsed, refused, switch, value};

const FLAGS: &[Flag] = &[
    value(&["name"]),
    value(&["targets"]),
    value(&["format"]),
    value(&["output"]),
    value(&["body"]),
    value(&["header"]),
    value(&["rate"]),
    value(&["duration"]),
    value(&["workers"]),
    value(&["max-workers"]),
    value(&["connections"]),
    value(&["max-connections"]),
    value(&["timeout"]),
    value(&["redirects"]),
    value(&["max-body"]),
    value(&["laddr"]),
    value(&["unix-socket"]),
    value(&["connect-to"]),
    value(&["dns-ttl"]),
    value(&["cert"]),
    value(&["key"]),
    value(&["root-certs"]),
    value(&["prometheus-addr"]),
    switch(&["chunked"]),
    switch(&["insecure"]),
    switch(&["keepalive"]),
    switch(&["lazy"]),
    switch(&["http2"]),
    switch(&["h2c"]),
    switch(&["session-tickets"]),
    switch(&["h", "help"]),
    refused(&["resolvers"], "names are resolved by the system"),
    refused(&["proxy-header"], "gake sends no headers of its own to a proxy"),
];

/// The help text.
pub const USAGE: &str = "\
Usage: vegeta attack [options]

Sends requests to targets at a rate, and writes a result for each.

  -name             the attack's name
  -targets          file of the targets (default stdin)
  -format           of the targets: http or json (default http)
  -lazy             read targets as they are needed; the attack ends with them
  -body             file with a body for targets that have none
  -header           'Name: value' for all targets; may be repeated
  -chunked          send bodies in chunks
  -rate             requests per time: 50, 100/s, 10/500ms; 0 is as fast as possible (default 50/1s)
  -duration         how long: 10s, 1m30s; 0 is until interrupted (default 0)
  -max-workers      maximum requests in flight; -rate 0 needs it
  -max-connections  maximum connections
  -connections      maximum idle connections per host (default 10000)
  -keepalive        use a connection for more than one request (default true)
  -timeout          time-out of a request (default 30s; 0 for no limit)
  -redirects        maximum redirects to follow; -1 takes a redirect as the response (default 10)
  -max-body         bytes of a response body kept in a result: 1024, 10KB; -1 is all (default -1)
  -output           file of the results (default stdout)
  -insecure         accept any certificate
  -root-certs       trusted certificates, PEM files separated by commas
  -cert, -key       client certificate and its key, PEM files
  -session-tickets  resume TLS sessions
  -laddr            local address
  -unix-socket      connect to this socket
  -connect-to       src:port:dst:port: connect to dst instead of src; may be repeated
  -dns-ttl          how long the addresses of a name are used; 0 for the whole attack, -1 for one
                    connection (default 0)

Accepted without effect: -workers. Others are refused: docs/as-vegeta.md
";

/// Rate 0: as fast as possible.
const UNBOUNDED: f64 = 0.0;

/// The most connections by default: Vegeta's limit on idle ones.
const CONNECTIONS: usize = 10_000;

/// The time limit of requests without one: a year.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(366 * 86_400);

/// The name of the targets in the spec.
pub const TARGETS: &str = "targets";

/// A command line of `vegeta attack`.
#[derive(Debug)]
pub struct VegetaOptions {
    /// The attack's name; may be empty.
    pub name: String,
    /// The file of the targets; `stdin` is standard input.
    pub targets: String,
    pub format: TargetFormat,
    /// Whether it only requests help.
    pub help: bool,
    /// Whether targets are read as they are needed.
    pub lazy: bool,
    /// The destination of results; `stdout` is standard output.
    pub output: String,
    /// A body for targets without one.
    pub body: Option<PathBuf>,
    /// Headers for all targets.
    pub headers: Vec<(String, String)>,
    /// The most redirects to follow; `None` treats a redirect as the response.
    pub redirects: Option<u32>,
    pub spec: RunSpec,
}

impl VegetaOptions {
    /// Reads the flags.
    ///
    /// # Errors
    /// When a flag is not valid or not supported; the error names the first.
    pub fn read(args: &[String], cpus: Option<usize>) -> Result<Self, String> {
        let parsed = super::parse(FLAGS, args).map_err(|failure| failure.to_string())?;
        if let Some(operand) = parsed.operands.first() {
            return Err(format!(
                "{operand:?} is not a flag; targets come from -targets FILE or stdin"
            ));
        }
        refuse(&parsed)?;
        let text = |name: &str, default: &str| parsed.last(name).unwrap_or(default).to_owned();
        let redirects = parsed.get::<i32>("redirects")?.unwrap_or(10);
        let redirects = match redirects {
            -1 => None,
            count => Some(u32::try_from(count).map_err(|_| format!("-redirects {count}"))?),
        };
        let mut headers: Vec<_> = parsed.all("header").map(header).collect::<Result<_, _>>()?;
        if parsed.on("chunked")? {
            headers.push(("Transfer-Encoding".to_owned(), "chunked".to_owned()));
        }
        let timeout = parsed.read_with("timeout", duration)?.unwrap_or(Duration::from_secs(30));
        let timeout = if timeout.is_zero() { LONGEST_TIMEOUT } else { timeout };
        let spec = RunSpec {
            threads: cpus,
            connection: connection(&parsed, timeout, redirects)?,
            tls: tls(&parsed)?,
            ..RunSpec::new(scenario(&parsed, timeout)?)
        };
        Ok(Self {
            name: text("name", ""),
            targets: text("targets", "stdin"),
            format: match text("format", "http").as_str() {
                "http" => TargetFormat::Http,
                "json" => TargetFormat::Json,
                other => return Err(format!("-format {other:?}: write http or json")),
            },
            help: parsed.on("h")?,
            lazy: parsed.on("lazy")?,
            output: text("output", "stdout"),
            body: parsed.last("body").filter(|path| !path.is_empty()).map(PathBuf::from),
            headers,
            redirects,
            spec,
        })
    }
}

/// The load and its duration.
fn scenario(parsed: &Parsed, timeout: Duration) -> Result<ScenarioSpec, String> {
    let rate = parsed.read_with("rate", rate)?.unwrap_or(50.0);
    let max_workers = parsed.get::<u64>("max-workers")?;
    if rate == UNBOUNDED && max_workers.is_none() {
        return Err("-rate=0 requires setting -max-workers".to_owned());
    }
    let duration = parsed.read_with("duration", duration)?.filter(|time| !time.is_zero());
    // The initial number of workers has no meaning here.
    parsed.get::<u64>("workers")?;
    let per_host = match parsed.get::<usize>("max-connections")? {
        None | Some(0) => usize::MAX,
        Some(bound) => bound,
    };
    let workers = max_workers.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    if workers == 0 {
        return Err("-max-workers must be at least 1".to_owned());
    }
    let bound = workers.min(per_host);
    let connections = if bound == usize::MAX { CONNECTIONS } else { bound };
    let load = match rate == UNBOUNDED {
        true => Load::closed(connections),
        false => Load::rate(rate, duration.unwrap_or(Duration::MAX)),
    };
    Ok(ScenarioSpec {
        duration: duration.filter(|_| !load.is_open()),
        // Vegeta waits for the requests in flight.
        graceful_stop: timeout,
        connections,
        max_in_flight: connections,
        ..ScenarioSpec::new(RequestSource::Given(TARGETS.to_owned()), load)
    })
}

fn connection(
    parsed: &Parsed,
    timeout: Duration,
    redirects: Option<u32>,
) -> Result<ConnectionSpec, String> {
    let body_bytes = parsed.read_with("max-body", max_body)?.unwrap_or(usize::MAX);
    let no_keepalive = parsed.last("keepalive").is_some() && !parsed.on("keepalive")?;
    let source = parsed.last("laddr").filter(|addr| *addr != "0.0.0.0");
    Ok(ConnectionSpec {
        timeout,
        connect_timeout: timeout,
        keepalive: !no_keepalive,
        http: match (parsed.on("h2c")?, parsed.last("http2").is_none() || parsed.on("http2")?) {
            (true, _) => HttpVersion::Http2,
            // If the server supports it, over TLS.
            (false, true) => HttpVersion::Auto,
            (false, false) => HttpVersion::Http11,
        },
        max_redirects: redirects.unwrap_or(0),
        max_idle: Some(parsed.get::<usize>("connections")?.unwrap_or(CONNECTIONS)),
        unix_socket: parsed.last("unix-socket").filter(|path| !path.is_empty()).map(PathBuf::from),
        sources: source.map(str::to_owned).into_iter().collect(),
        connect_to: connect_to(parsed)?,
        dns_ttl: dns_ttl(parsed)?,
        keep_answers: Some(u64::MAX),
        keep_body_bytes: Some(body_bytes),
        ..ConnectionSpec::default()
    })
}

/// How long addresses are used: 0 for the whole attack, a negative time for one connection.
fn dns_ttl(parsed: &Parsed) -> Result<Option<Duration>, String> {
    let nanos = parsed.read_with("dns-ttl", |text| match text {
        "-1" => Ok(-1),
        text => go::parse_duration(text).map_err(|error| error.to_string()),
    })?;
    Ok(nanos.filter(|nanos| *nanos != 0).map(|nanos| Duration::from_nanos(nanos.max(0) as u64)))
}

/// The trusted and the client certificates of TLS.
fn tls(parsed: &Parsed) -> Result<TlsSpec, String> {
    let certificate = parsed.last("cert").map(PathBuf::from);
    let key = parsed.last("key").map(PathBuf::from);
    if certificate.is_none() && key.is_some() {
        return Err("-key needs -cert: a key is useless without its certificate".to_owned());
    }
    let roots = parsed.last("root-certs").unwrap_or_default().split(',');
    Ok(TlsSpec {
        insecure: parsed.on("insecure")?,
        ca_certificates: roots.filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        certificate,
        key,
        session_tickets: parsed.on("session-tickets")?,
        ..TlsSpec::default()
    })
}

/// Refuses flags whose meaning gake's connections cannot provide.
fn refuse(parsed: &Parsed) -> Result<(), String> {
    let no = |name: &str, why: &str| Err(format!("-{name} cannot be honoured: {why}"));
    if parsed.last("prometheus-addr").is_some_and(|address| !address.is_empty()) {
        return no("prometheus-addr", "nothing listens during an attack");
    }
    Ok(())
}

/// `N`, `N/s`, `N/500ms`, `0` or `infinity`, as requests a second.
fn rate(text: &str) -> Result<f64, String> {
    if text == "infinity" {
        return Ok(UNBOUNDED);
    }
    let (count, per) = text.split_once('/').unwrap_or((text, "1s"));
    let count: u32 = count.parse().map_err(|_| "it is a whole number, or 100/1m".to_owned())?;
    let bare = ["ns", "us", "µs", "ms", "s", "m", "h"].contains(&per);
    let per = if bare { format!("1{per}") } else { per.to_owned() };
    let nanos = go::parse_duration(&per).map_err(|error| error.to_string())?;
    match (count, nanos) {
        (0, _) => Ok(UNBOUNDED),
        (_, 1..) => Ok(f64::from(count) / go::seconds(nanos)),
        _ => Err("the time unit must be above 0".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let nanos = go::parse_duration(text).map_err(|error| error.to_string())?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| "it cannot be negative".to_owned())
}

/// `Name: value`, in the case it is written.
fn header(line: &str) -> Result<(String, String), String> {
    let (name, value) = line.split_once(':').unwrap_or_default();
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || value.is_empty() {
        return Err(format!("header '{line}' has a wrong format"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// A number of bytes: `1024`, `10KB`, `1MB`, with units of 1,024; -1 means no limit.
fn max_body(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u32); 6] = [("B", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40), ("", 0)];
    if text == "-1" {
        return Ok(usize::MAX);
    }
    let wrong = || "it is a count of bytes: 1024, 10KB or -1".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_uppercase();
    let unit = if unit.len() > 1 { unit.strip_suffix('B').unwrap_or("?") } else { &unit };
    let (_, shift) = UNITS.iter().find(|(known, _)| *known == unit).ok_or_else(wrong)?;
    let number: usize = number.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// `src:port:dst:port`; one destination for a source.
fn connect_to(parsed: &Parsed) -> Result<Vec<String>, String> {
    let rules: Vec<_> = parsed.all("connect-to").map(str::to_owned).collect();
    let source = |rule: &String| rule.rsplitn(3, ':').nth(2).unwrap_or_default().to_owned();
    let mut sources: Vec<_> = rules.iter().map(source).collect();
    sources.sort();
    match sources.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!(
            "-connect-to {}: several destinations of one source cannot be honoured",
            pair[0]
        )),
        None => Ok(rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_comes_back, words};

    fn read(line: &str) -> Result<VegetaOptions, String> {
        VegetaOptions::read(&words(line), None)
    }

    #[test]
    fn the_defaults_are_vegetas() {
        let options = read("").unwrap();
        assert_eq!(options.spec.scenarios[0].load, Load::rate(50.0, Duration::MAX));
        assert_eq!(options.spec.scenarios[0].requests, None);
        assert_eq!(options.spec.connection.timeout, Duration::from_secs(30));
        assert_eq!((options.redirects, options.targets.as_str()), (Some(10), "stdin"));
        assert!(options.spec.connection.keepalive && !options.spec.tls.insecure);
    }

    #[test]
    fn a_rate_is_a_count_over_a_time() {
        for (text, expected) in [
            ("10", 10.0),
            ("10/1s", 10.0),
            ("10/s", 10.0),
            ("50/500ms", 100.0),
            ("6000/m", 100.0),
            ("0", 0.0),
            ("infinity", 0.0),
        ] {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for bad in ["", "-1", "1.5", "10/", "10/0s", "10/-1s", "ten"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("1024", 1024), ("10B", 10), ("2KB", 2048), ("1mb", 1 << 20), ("3K", 3072)]
        {
            assert_eq!(max_body(text), Ok(bytes), "{text}");
        }
        assert_eq!(max_body("-1"), Ok(usize::MAX));
        for bad in ["", "-2", "1X", "KB", "1.5MB", "99999999999TB"] {
            assert!(max_body(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn go_syntax_and_switches_with_separate_values() {
        let line = "-rate 10/1s --duration=2s -lazy -keepalive false -insecure=true -redirects -1";
        let options = read(line).unwrap();
        assert!(options.lazy && options.spec.tls.insecure);
        assert!(!options.spec.connection.keepalive);
        assert_eq!(options.redirects, None);
        let expected = Load::rate(10.0, Duration::from_secs(2));
        assert_eq!(options.spec.scenarios[0].load, expected);
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_name() {
        for (line, expected) in [
            ("-rate=0", "-max-workers"),
            ("-resolvers 1.1.1.1", "-resolvers"),
            ("-dns-ttl 5", "-dns-ttl"),
            ("-proxy-header A:b", "-proxy-header"),
            ("-prometheus-addr 0.0.0.0:8880", "-prometheus-addr"),
            ("-header novalue:", "novalue:"),
            ("-format xml", "xml"),
            ("-connect-to a:80:b:80 -connect-to a:80:c:80", "-connect-to a:80"),
            ("-nosuch", "-nosuch"),
            ("file.txt", "file.txt"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        assert!(read("-rate 0 -max-workers 5 -http2 -dns-ttl 0 -h2c=false").is_ok());
        let ttl = |line: &str| read(&format!("-dns-ttl {line}")).unwrap().spec.connection.dns_ttl;
        assert_eq!([ttl("0"), ttl("5s")], [None, Some(Duration::from_secs(5))]);
        assert_eq!(ttl("-1"), Some(Duration::ZERO));
        let roots = read("-root-certs a.pem,b.pem").unwrap().spec.tls.ca_certificates;
        assert_eq!(roots, [PathBuf::from("a.pem"), PathBuf::from("b.pem")]);
    }

    #[test]
    fn a_spec_of_vegeta_comes_back() {
        for line in [
            "",
            "-rate 0 -max-workers 5 -duration 2s -keepalive false",
            "-rate 10/1s -duration=2s -max-body 5 -connections 7 -timeout 0 -laddr 127.0.0.2",
        ] {
            assert_comes_back(&read(line).unwrap().spec);
        }
    }
}
