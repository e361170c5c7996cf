//! hey's flags, their defaults and the resulting spec.

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::spec::{
    BodySpec, ConnectionSpec, HttpVersion, RequestDefaults, RequestSource, RunSpec, ScenarioSpec,
    TlsSpec,
};
use gake_text::duration::parse_duration;
use gake_wire::Location;

use crate::flags::{Flag, FlagError, Grammar, Parsed, switch, value};
use crate::tool_run::YEAR;
use gake_run::body_file;

/// The number of redirects that Go follows.
const REDIRECTS: u32 = 10;

/// hey's User-Agent, on which servers may depend.
const USER_AGENT: &str = "hey/0.0.1";

const FLAGS: &[Flag] = &[
    value(&["n"]),
    value(&["c"]),
    value(&["q"]),
    value(&["z"]),
    value(&["o"]),
    value(&["m"]),
    value(&["H"]),
    value(&["t"]),
    value(&["A"]),
    value(&["d"]),
    value(&["D"]),
    value(&["T"]),
    value(&["U"]),
    value(&["a"]),
    value(&["host"]),
    value(&["cpus"]),
    value(&["h"]),
    switch(&["disable-compression"]),
    switch(&["disable-keepalive"]),
    switch(&["disable-redirects"]),
    switch(&["help"]),
    value(&["x"]),
    switch(&["h2"]),
];

/// The output of `-help` and after a command line that is not valid.
pub const USAGE: &str = "\
Usage: hey [options...] <url>

Options:
  -n  Number of requests. Default 200.
  -c  Concurrent workers; at most -n. Default 50.
  -q  Maximum rate per worker, requests a second. Default: no limit.
  -z  Duration (10s, 3m), instead of -n requests.
  -o  csv: a line per response, instead of the summary.

  -m  Method. Default GET.
  -H  Header 'Name: value'; may be repeated.
  -t  Time-out of a request in seconds, 0 for none. Default 20.
  -A  Accept header.
  -d  Body.
  -D  Body from a file.
  -T  Content-Type. Default text/html.
  -U  User-Agent, placed before hey/0.0.1.
  -a  user:password for basic authentication.
  -x  HTTP proxy, HOST:PORT.
  -h2 HTTP/2 over TLS, all workers on one connection.

  -host                 Host header.
  -disable-compression  Do not ask for gzip.
  -disable-keepalive    A new connection for each request.
  -disable-redirects    Do not follow redirects.
  -cpus                 Threads.

gake's own result beside it: --gake-out FILE, --gake-format FORMAT.
";

/// An error of a command line, which determines hey's exit code.
#[derive(Debug, PartialEq)]
pub enum HeyUsageError {
    /// A request for help.
    Help,
    /// A flag that cannot be parsed: Go exits with code 2.
    Flag(String),
    /// A value that is not valid: hey exits with code 1.
    Value(String),
    /// A feature of hey that gake does not support.
    Unsupported(String),
}

/// A command line of hey.
#[derive(Debug)]
pub struct HeyOptions {
    pub url: String,
    pub method: String,
    /// Whether the output is rows instead of the summary.
    pub csv: bool,
    requests: Option<u64>,
    workers: usize,
    qps: f64,
    duration: Option<Duration>,
    timeout: Duration,
    headers: Vec<(String, String)>,
    user: Option<String>,
    body: Option<Arc<[u8]>>,
    cpus: Option<usize>,
    keepalive: bool,
    redirects: bool,
    http2: bool,
    proxy: Option<String>,
}

impl HeyOptions {
    /// Reads a command line.
    ///
    /// # Errors
    /// When it is not valid, in hey's words where it has some.
    pub fn read(args: &[String]) -> Result<Self, HeyUsageError> {
        let parsed = Parsed::read(Grammar::Go, FLAGS, args).map_err(|error| match error {
            FlagError::Refused(sentence) => HeyUsageError::Unsupported(sentence),
            FlagError::Wrong(sentence) => HeyUsageError::Flag(sentence),
        })?;
        let on = |name| parsed.on(name).map_err(HeyUsageError::Flag);
        if on("help")? {
            return Err(HeyUsageError::Help);
        }
        if parsed.last("h").is_some() {
            let sentence = "Flag '-h' is deprecated, please use '-H' instead.";
            return Err(HeyUsageError::Value(sentence.to_owned()));
        }
        let [url] = parsed.operands.as_slice() else {
            return Err(match parsed.operands.get(1) {
                None => HeyUsageError::Value(String::new()),
                Some(late) => {
                    HeyUsageError::Unsupported(format!("{late}: flags stand before the URL"))
                }
            });
        };
        let (requests, workers, duration) = amount(&parsed)?;
        let output = parsed.last("o").unwrap_or_default();
        if !matches!(output, "" | "csv") {
            return Err(HeyUsageError::Unsupported(format!(
                "-o {output:?}: only csv is supported; for other layouts take --gake-format json"
            )));
        }
        let seconds: i64 = number(&parsed, "t")?.unwrap_or(20);
        Ok(Self {
            url: if url.contains("://") { url.clone() } else { format!("http://{url}") },
            method: parsed.last("m").unwrap_or("GET").to_ascii_uppercase(),
            csv: output == "csv",
            requests,
            workers,
            qps: number::<f64>(&parsed, "q")?.unwrap_or(0.0),
            duration,
            timeout: match u64::try_from(seconds) {
                Ok(seconds @ 1..) => Duration::from_secs(seconds).min(YEAR),
                _ => YEAR,
            },
            headers: headers(&parsed, !on("disable-compression")?)?,
            user: user(&parsed)?,
            body: body(&parsed)?,
            cpus: number(&parsed, "cpus")?,
            proxy: parsed.last("x").map(str::to_owned),
            keepalive: !on("disable-keepalive")?,
            redirects: !on("disable-redirects")?,
            http2: on("h2")?,
        })
    }

    pub fn spec(&self) -> RunSpec {
        let users = self.workers;
        let pace = (self.qps > 0.0).then(|| Duration::from_secs_f64(1.0 / self.qps));
        let load = match pace.filter(|pace| !pace.is_zero()) {
            Some(pace) => Load::Paced { users, pace },
            None => Load::closed(users),
        };
        // Without TLS hey does not support HTTP/2, and always sends HTTP/1.1.
        let is_http2 = self.http2 && self.url.starts_with("https://");
        let (url, connect_to) = self.url_of_server_name();
        let scenario = ScenarioSpec {
            connections: if is_http2 { 1 } else { users },
            request: RequestDefaults {
                method: Some(self.method.clone()),
                headers: self.headers.clone(),
                body: self.body.clone().map(BodySpec::Bytes),
                user: self.user.clone(),
            },
            requests: self.requests,
            duration: self.duration,
            // hey waits for the responses in flight.
            graceful_stop: self.timeout,
            ..ScenarioSpec::new(RequestSource::Url(url), load)
        };
        let (connect, total) = (self.timeout, self.timeout);
        RunSpec {
            threads: self.cpus,
            connection: ConnectionSpec {
                timeout: total,
                connect_timeout: connect,
                keepalive: self.keepalive,
                proxy: self.proxy.clone(),
                connect_to,
                http: if is_http2 { HttpVersion::Http2 } else { HttpVersion::Http11 },
                max_redirects: if self.redirects { REDIRECTS } else { 0 },
                ..ConnectionSpec::default()
            },
            tls: TlsSpec { insecure: true, ..TlsSpec::default() },
            ..RunSpec::new(scenario)
        }
    }

    /// The URL with `-host` as its host, and a rule that connects to its own: hey's TLS names the
    /// former to the server.
    fn url_of_server_name(&self) -> (String, Vec<String>) {
        let own = || (self.url.clone(), Vec::new());
        let header = self.headers.iter().find(|(name, _)| name == "Host");
        let Some((_, host)) = header.filter(|_| self.url.starts_with("https://")) else {
            return own();
        };
        let named = Location::parse(&format!("https://{host}"));
        let (Ok(named), Ok(location)) = (named, Location::parse(&self.url)) else { return own() };
        if named.host == location.host || location.user.is_some() || named.host.contains(':') {
            return own();
        }
        let (port, target) = (location.port, &location.target);
        let to = match location.host.contains(':') {
            true => format!("[{}]", location.host),
            false => location.host.clone(),
        };
        let url = format!("https://{}:{port}{target}", named.host);
        (url, vec![format!("{}:{port}:{to}:{port}", named.host)])
    }
}

/// Requests, workers and duration.
fn amount(parsed: &Parsed) -> Result<(Option<u64>, usize, Option<Duration>), HeyUsageError> {
    let requests: i64 = number(parsed, "n")?.unwrap_or(200);
    let workers: i64 = number(parsed, "c")?.unwrap_or(50);
    let duration = match parsed.last("z") {
        None => None,
        Some(text) => Some(parse_duration(text).map_err(|_| bad_value(parsed, "z"))?),
    };
    let wrong = |sentence: &str| Err(HeyUsageError::Value(sentence.to_owned()));
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    match duration.filter(|duration| !duration.is_zero()) {
        Some(_) if workers < 1 => wrong("-c cannot be smaller than 1."),
        Some(duration) => Ok((None, count(workers) as usize, Some(duration))),
        None if requests < 1 || workers < 1 => wrong("-n and -c cannot be smaller than 1."),
        None if requests < workers => wrong("-n cannot be less than -c."),
        None => Ok((Some(count(requests)), count(workers) as usize, None)),
    }
}

/// The header lines in Go's order: `User-Agent` first, then by name.
fn headers(parsed: &Parsed, compression: bool) -> Result<Vec<(String, String)>, HeyUsageError> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| {
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value.to_owned()));
    };
    set("User-Agent", USER_AGENT);
    set("Content-Type", parsed.last("T").unwrap_or("text/html"));
    for line in parsed.all("H") {
        // As in Go's client, which takes the host from elsewhere: a header Host has no effect.
        let (name, value) = line
            .split_once(':')
            .map(|(name, value)| (name, value.trim_start()))
            .filter(|(name, value)| is_name(name) && !value.is_empty())
            .ok_or_else(|| not_parsed(line))?;
        match name.to_ascii_lowercase().as_str() {
            "user-agent" => set(name, &format!("{value} {USER_AGENT}")),
            "host" => {}
            _ => set(name, value),
        }
    }
    if let Some(accept) = parsed.last("A").filter(|accept| !accept.is_empty()) {
        set("Accept", accept);
    }
    if let Some(agent) = parsed.last("U").filter(|agent| !agent.is_empty()) {
        set("User-Agent", &format!("{agent} {USER_AGENT}"));
    }
    if let Some(host) = parsed.last("host").filter(|host| !host.is_empty()) {
        set("Host", host);
    }
    let is_head = parsed.last("m").is_some_and(|method| method.eq_ignore_ascii_case("HEAD"));
    if compression
        && !is_head
        && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
    {
        headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
    }
    Ok(headers)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn user(parsed: &Parsed) -> Result<Option<String>, HeyUsageError> {
    let Some(user) = parsed.last("a").filter(|user| !user.is_empty()) else { return Ok(None) };
    // hey's pattern is `^(.+):([^\s].+)`.
    let fits = |(at, _): (usize, &str)| {
        let mut password = user[at + 1..].chars();
        at > 0 && password.next().is_some_and(|c| !c.is_whitespace()) && password.next().is_some()
    };
    match user.match_indices(':').any(fits) {
        true => Ok(Some(user.to_owned())),
        false => Err(not_parsed(user)),
    }
}

fn body(parsed: &Parsed) -> Result<Option<Arc<[u8]>>, HeyUsageError> {
    if let Some(path) = parsed.last("D").filter(|path| !path.is_empty()) {
        let bytes = body_file(path)
            .map_err(|error| HeyUsageError::Unsupported(format!("open {path}: {error}")))?;
        return Ok(Some(bytes.into()));
    }
    Ok(parsed.last("d").filter(|body| !body.is_empty()).map(|body| Arc::from(body.as_bytes())))
}

fn not_parsed(input: &str) -> HeyUsageError {
    HeyUsageError::Value(format!("could not parse the provided input; input = {input}"))
}

fn number<T: std::str::FromStr>(parsed: &Parsed, name: &str) -> Result<Option<T>, HeyUsageError> {
    parsed.last(name).map(|text| text.parse().map_err(|_| bad_value(parsed, name))).transpose()
}

fn bad_value(parsed: &Parsed, name: &str) -> HeyUsageError {
    let text = parsed.last(name).unwrap_or_default();
    HeyUsageError::Flag(format!("invalid value {text:?} for flag -{name}: parse error"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_comes_back, words};

    #[test]
    fn a_spec_of_hey_comes_back() {
        for line in [
            "http://h/",
            "-n 10 -c 5 -q 2 -t 0 -m POST -d x -H A:b -a u:pw http://h/",
            "-z 3s -c 2 -disable-keepalive -cpus 1 http://h/",
        ] {
            assert_comes_back(&HeyOptions::read(&words(line)).unwrap().spec());
        }
    }

    #[test]
    fn the_host_of_a_flag_is_the_name_of_tls() {
        let of = |line: &str| {
            let spec = HeyOptions::read(&words(line)).unwrap().spec();
            let scenario = &spec.scenarios[0];
            let RequestSource::Url(url) = &scenario.source else { panic!("{line}") };
            let headers = &scenario.request.headers;
            let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
            (url.clone(), spec.connection.connect_to, host.map(|(_, value)| value.clone()))
        };
        let rule = |text: &str| vec![text.to_owned()];
        let host = Some("v.test".to_owned());
        assert_eq!(
            of("-host v.test https://[::1]:8443/a?b"),
            ("https://v.test:8443/a?b".to_owned(), rule("v.test:8443:[::1]:8443"), host.clone())
        );
        for line in ["-host v.test http://h/", "-host v.test https://v.test/"] {
            assert_eq!(of(line).1, Vec::<String>::new(), "{line}");
            assert_eq!(of(line).2, host, "{line}");
        }
        assert_eq!(of("-H host:w.test https://h/").2, None);
    }

    #[test]
    fn credentials_are_checked_as_hey_checks_them() {
        for (user, fits) in [
            ("u:pw", true),
            ("u:p:q1", true),
            ("a:b:c", true),
            ("u:p", false),
            ("u: pw", false),
            (":pw", false),
        ] {
            let args = ["-a", user, "http://h/"].map(str::to_owned);
            assert_eq!(HeyOptions::read(&args).is_ok(), fits, "{user}");
        }
    }
}
