//! The flags of h2load 1.52.

use std::time::Duration;

use super::script::Script;
use super::uris;
use crate::flags::{CommandLine, Flag, Parsed, dashed, refused, switch, value};
use crate::tool_run::THREADS_MAX;
use gake_session::options::values::header as read_header;
use gake_wire::Location;

const CIPHERS: &str = "gake takes the ciphers and groups of its TLS library";
const QUIC: &str = "gake chooses how it sends QUIC";

/// gake's size of frames and of header tables.
const FRAME_SIZE: u64 = 16 << 10;
const TABLE_SIZE: u64 = 4 << 10;

const FLAGS: &[Flag] = &[
    value(&["n", "requests"]),
    value(&["c", "clients"]),
    value(&["t", "threads"]),
    value(&["i", "input-file"]),
    value(&["m", "max-concurrent-streams"]),
    value(&["f", "max-frame-size"]),
    value(&["w", "window-bits"]),
    value(&["W", "connection-window-bits"]),
    value(&["H", "header"]),
    value(&["p", "no-tls-proto"]),
    value(&["d", "data"]),
    value(&["D", "duration"]),
    value(&["warm-up-time"]),
    value(&["T", "connection-active-timeout"]),
    value(&["N", "connection-inactivity-timeout"]),
    value(&["timing-script-file"]),
    value(&["B", "base-uri"]),
    value(&["npn-list", "alpn-list"]),
    switch(&["h1"]),
    switch(&["h3"]),
    switch(&["histogram"]),
    value(&["output-file"]),
    value(&["header-table-size"]),
    value(&["encoder-header-table-size"]),
    value(&["log-file"]),
    value(&["connect-to"]),
    value(&["sni"]),
    value(&["rps"]),
    switch(&["version"]),
    switch(&["h", "help"]),
    refused(&["r", "rate"], "gake's clients start together; use `gake run --users 10..100@10s`"),
    refused(&["rate-period"], "it needs -r, which gake does not have"),
    refused(&["v", "verbose"], "gake does not show single frames; use `nghttp -v`"),
    refused(&["ciphers"], CIPHERS),
    refused(&["tls13-ciphers"], CIPHERS),
    refused(&["groups"], CIPHERS),
    refused(&["tls-session-file"], "gake keeps TLS sessions in memory"),
    refused(&["ktls"], "gake encrypts in its own process"),
    refused(&["qlog-file-base"], QUIC),
    refused(&["no-udp-gso"], QUIC),
    refused(&["max-udp-payload-size"], QUIC),
];

/// The output of `--help`.
pub const USAGE: &str = "\
Usage: h2load [OPTIONS]... [URI]...

Load:
  -n, --requests=N      Requests over all clients (1); with a timing script, of each client
  -c, --clients=N       Clients, each a connection (1)
  -m, --max-concurrent-streams=N   Requests at once on a connection (1)
  -t, --threads=N       Threads (1)
  -D, --duration=TIME   Duration, instead of -n
      --warm-up-time=TIME          With -D: time before the measurement
      --rps=N           Requests a second of each client
      --timing-script-file=PATH    Lines of milliseconds, a tab and a URI
  -T, --connection-active-timeout=TIME      End of a connection, whatever happens on it
  -N, --connection-inactivity-timeout=TIME  Time without an answer

Requests:
  -i, --input-file=PATH URIs, one a line, instead of those of the command line
  -B, --base-uri=URI|unix:PATH     Scheme, host and port of all, or a Unix socket
  -H, --header=HEADER   'Name: value', also ':method: PUT' and ':authority: HOST'
  -d, --data=PATH       Body of a POST

Connections:
  -p, --no-tls-proto=h2c|http/1.1  Protocol of http URIs (h2c)
      --npn-list=LIST   (or --alpn-list) Protocols of https URIs (h2,h2-16,h2-14,http/1.1)
      --h1              HTTP/1.1 for both
      --h3              HTTP/3, for https URIs (as --alpn-list=h3)
  -w, --window-bits=N  -W, --connection-window-bits=N   Windows of 2^N-1 bytes (30)
      --connect-to=HOST[:PORT]   --sni=NAME

Output:
      --histogram       A histogram below each row
      --output-file=PATH           The figures and their samples as JSON
      --log-file=PATH   A line for each request: start, status, microseconds

SIZE may end in K, M or G, TIME in h, m, s or ms.
Differences from h2load, and refused flags: docs/as-h2load.md
gake's own result beside it: --gake-out FILE, --gake-format FORMAT.
";

/// The length of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A number of requests over all clients.
    Requests(u64),
    /// A duration after a warm-up.
    Timed {
        /// The time before the measurement.
        warmup: Duration,
        /// The measured time.
        duration: Duration,
    },
}

/// The protocols of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocols {
    Http1,
    Http2,
    Http3,
    /// The choice of ALPN.
    Either,
}

/// A command line of h2load.
#[derive(Debug)]
pub struct H2loadOptions {
    /// The URIs, in turn, each with the origin of the first.
    pub uris: Vec<String>,
    /// The timing script, if there is one.
    pub script: Option<Script>,
    /// A Unix socket instead of the host.
    pub unix_socket: Option<String>,
    pub extent: Extent,
    pub clients: usize,
    pub streams: usize,
    pub threads: usize,
    /// Requests a second of each client.
    pub rps: Option<f64>,
    /// Bytes of the windows of a stream and of a connection.
    pub windows: (u32, u32),
    pub protocols: Protocols,
    pub method: Option<String>,
    pub headers: Headers,
    /// The file of the body.
    pub data: Option<String>,
    pub active_timeout: Option<Duration>,
    pub inactivity_timeout: Option<Duration>,
    pub connect_to: Option<String>,
    pub log_file: Option<String>,
    /// The file of the figures as JSON.
    pub output_file: Option<String>,
    /// Whether each row has a histogram.
    pub histogram: bool,
}

/// Checks flags that exclude or require each other, and sizes that gake cannot change.
fn check(parsed: &Parsed) -> Result<(), String> {
    let given = |name: &str| parsed.last(name).is_some();
    for (one, other) in [("rps", "timing-script-file"), ("D", "timing-script-file"), ("T", "D")] {
        if given(one) && given(other) {
            return Err(format!("{}, {}: they are mutually exclusive", dashed(one), dashed(other)));
        }
    }
    if given("warm-up-time") && !given("D") {
        return Err("--warm-up-time: it needs -D".to_owned());
    }
    for (name, own) in [
        ("f", FRAME_SIZE),
        ("header-table-size", TABLE_SIZE),
        ("encoder-header-table-size", TABLE_SIZE),
    ] {
        if parsed.read_with(name, size)?.is_some_and(|size| size != own) {
            let name = dashed(name);
            return Err(format!("{name} cannot be honoured: gake's is {}K", own >> 10));
        }
    }
    Ok(())
}

impl H2loadOptions {
    /// Reads a command line.
    pub fn read(args: &[String]) -> Result<CommandLine<Self>, String> {
        CommandLine::read(FLAGS, "h", args, |parsed| {
            check(&parsed)?;
            Self::of(&parsed)
        })
    }

    fn of(parsed: &Parsed) -> Result<Self, String> {
        let count = |name: &str, default: u64| -> Result<u64, String> {
            Ok(parsed.read_with(name, positive)?.unwrap_or(default))
        };
        let (clients, threads) = (count("c", 1)?, count("t", 1)?);
        let streams = usize::try_from(count("m", 1)?).unwrap_or(usize::MAX);
        let script = parsed.last("timing-script-file").map(Script::open).transpose()?;
        let script = match (script, parsed.read_with("n", positive)?) {
            (Some(script), Some(each)) => Some(script.first(each)),
            (script, _) => script,
        };
        let given = match &script {
            Some(script) => script.uris.clone(),
            None => uris::listed(parsed)?,
        };
        let (mut uris, unix_socket) = uris::at_one_origin(&given, parsed.last("B"))?;
        let extent = extent(parsed, script.as_ref(), clients)?;
        if clients < threads {
            return Err(
                "-c, -t: the number of clients must be greater than or equal to the number \
                        of threads"
                    .to_owned(),
            );
        }
        if threads > THREADS_MAX {
            return Err(format!("-t: gake starts up to {THREADS_MAX} threads"));
        }
        let protocols = protocols(parsed, &uris[0])?;
        if protocols == Protocols::Http1 && streams > 1 {
            return Err("-m cannot be honoured with HTTP/1.1: gake does not pipeline".to_owned());
        }
        let (method, mut headers) = headers(parsed)?;
        let origin = match parsed.last("sni") {
            Some(name) => named_in_tls(name, &mut uris, &mut headers)?,
            None => None,
        };
        let time = |name: &str| parsed.read_with(name, positive_time);
        Ok(Self {
            uris,
            script,
            unix_socket,
            extent,
            clients: usize::try_from(clients).unwrap_or(usize::MAX),
            streams,
            threads: threads as usize,
            rps: parsed.read_with("rps", rate)?,
            windows: (window(parsed, "w", 1)?, window(parsed, "W", 16)?),
            protocols,
            method,
            headers,
            data: parsed.last("d").map(str::to_owned),
            active_timeout: time("T")?,
            inactivity_timeout: time("N")?,
            connect_to: parsed.last("connect-to").map(str::to_owned).or(origin),
            log_file: parsed.last("log-file").map(str::to_owned),
            output_file: parsed.last("output-file").map(str::to_owned),
            histogram: parsed.on("histogram")?,
        })
    }

    /// Requests that may be in flight at once.
    pub fn lanes(&self) -> usize {
        self.clients.saturating_mul(self.streams)
    }
}

fn extent(parsed: &Parsed, script: Option<&Script>, clients: u64) -> Result<Extent, String> {
    let time = |name: &str| parsed.read_with(name, time);
    if let Some(duration) = parsed.read_with("D", positive_time)? {
        return Ok(Extent::Timed { warmup: time("warm-up-time")?.unwrap_or_default(), duration });
    }
    if let Some(script) = script {
        return Ok(Extent::Requests(clients.saturating_mul(script.uris.len() as u64)));
    }
    let requests = parsed.read_with("n", positive)?.unwrap_or(1);
    if requests < clients {
        let rule = "the number of requests must be greater than or equal to the clients";
        return Err(format!("-n, -c: {rule}"));
    }
    Ok(Extent::Requests(requests))
}

fn protocols(parsed: &Parsed, uri: &str) -> Result<Protocols, String> {
    let own = parsed.on("h1")?;
    let plain = match parsed.last("p") {
        None | Some("h2c") => Protocols::Http2,
        Some("http/1.1") => Protocols::Http1,
        Some(other) => return Err(format!("-p {other:?}: write h2c or http/1.1")),
    };
    let list = parsed.last("npn-list").unwrap_or("h2,h2-16,h2-14,http/1.1");
    // As in h2load, the first protocol decides about QUIC.
    if parsed.on("h3")? || list.split(',').next() == Some("h3") {
        return match (own, uri.starts_with("https:")) {
            (true, _) => Err("--h1 and --h3 exclude each other".to_owned()),
            (_, true) => Ok(Protocols::Http3),
            (_, false) => Err("--h3: HTTP/3 needs an https: URI".to_owned()),
        };
    }
    let mut offers = (false, false);
    for protocol in list.split(',') {
        match protocol {
            // h2load treats the drafts as HTTP/2; servers no longer support them.
            "h2" => offers.0 = true,
            "h2-14" | "h2-16" => {}
            "http/1.1" => offers.1 = true,
            other => return Err(format!("--npn-list: gake does not speak {other:?}")),
        }
    }
    let secure = match offers {
        (true, true) => Protocols::Either,
        (true, false) => Protocols::Http2,
        (false, true) => Protocols::Http1,
        (false, false) => return Err("--npn-list: it names neither h2 nor http/1.1".to_owned()),
    };
    Ok(match own {
        true => Protocols::Http1,
        false if uri.starts_with("https:") => secure,
        false => plain,
    })
}

/// h2load's User-Agent, on which servers may depend.
const USER_AGENT: &str = "h2load nghttp2/1.52.0";

/// Names and values, in order.
type Headers = Vec<(String, String)>;

/// The method, if a header sets it, and the header lines.
fn headers(parsed: &Parsed) -> Result<(Option<String>, Headers), String> {
    let (mut method, mut headers) = (None, Vec::new());
    for line in parsed.all("H") {
        if let Some(value) = line.strip_prefix(":method:") {
            method = Some(value.trim().to_owned());
        } else if let Some(value) = line.strip_prefix(":authority:") {
            headers.push(("host".to_owned(), value.trim().to_owned()));
        } else if line.starts_with(':') {
            return Err(format!("-H {line:?} cannot be honoured: the URI says it"));
        } else {
            let header = read_header(line).map_err(|error| format!("-H {line:?}: {error}"))?;
            headers.push(header);
        }
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
        headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
    }
    Ok((method, headers))
}

/// Gives `https:` URIs the name that TLS is to send; the header `host` keeps their own. Returns where
/// to connect.
fn named_in_tls(
    name: &str,
    uris: &mut [String],
    headers: &mut Headers,
) -> Result<Option<String>, String> {
    let Some(first) = uris.first().filter(|uri| uri.starts_with("https:")) else {
        return Ok(None);
    };
    let origin = Location::parse(first).map_err(|error| error.to_string())?;
    let (authority, port) = (origin.authority(), origin.port);
    let named = Location::parse(&format!("https://{name}:{port}/"));
    let named = named.map_err(|error| format!("--sni {name:?}: {error}"))?;
    for uri in uris.iter_mut() {
        let own = Location::parse(uri).map_err(|error| error.to_string())?;
        *uri = format!("https://{}{}", named.authority(), own.target);
    }
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        headers.push(("host".to_owned(), authority));
    }
    let host = if origin.host.contains(':') { format!("[{}]", origin.host) } else { origin.host };
    Ok(Some(format!("{host}:{port}")))
}

/// A window of 2^N-1 bytes with a minimum N of `least`.
fn window(parsed: &Parsed, name: &str, least: u32) -> Result<u32, String> {
    let bits = parsed.read_with(name, |text| match text.parse() {
        Ok(bits) if (least..=30).contains(&bits) => Ok(bits),
        _ => Err(format!("it is a number from {least} to 30")),
    })?;
    Ok((1 << bits.unwrap_or(30)) - 1)
}

fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("it must be strictly greater than 0".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("it is a whole number".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("it is a number a second".to_owned()),
    }
}

/// A number of bytes: `16K`.
fn size(text: &str) -> Result<u64, String> {
    let shift = match text.chars().last() {
        Some('k' | 'K') => 10,
        Some('m' | 'M') => 20,
        Some('g' | 'G') => 30,
        _ => 0,
    };
    let digits = if shift > 0 { &text[..text.len() - 1] } else { text };
    let number: Option<u64> = digits.parse().ok();
    number.and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| "write for example 16K".to_owned())
}

/// A time in seconds, or with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let scale = match unit {
        "h" => 3_600_000,
        "m" => 60_000,
        "" | "s" => 1_000,
        "ms" => 1,
        _ => return Err("write for example 10s, 500ms, 2m or 1h".to_owned()),
    };
    let millis = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    millis.map(Duration::from_millis).ok_or_else(|| "it is a whole number of a unit".to_owned())
}

fn positive_time(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        time => Ok(time),
    }
}
