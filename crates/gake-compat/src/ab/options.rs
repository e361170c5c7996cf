//! ab's flags, their defaults and the resulting spec.

use std::sync::Arc;
use std::time::Duration;

use super::report::HiddenParts;
use gake_core::Load;
use gake_core::spec::{
    BodySpec, ConnectionSpec, HttpVersion, RequestDefaults, RequestSource, RunSpec, ScenarioSpec,
    TlsSpec,
};
use gake_wire::fault::system_text;
use gake_wire::{Location, Scheme, basic_authorization_as_given};

use super::AbUsageError;
use crate::flags::{Flag, Grammar, Parsed, refused, switch, value};
use gake_run::body_file;
use gake_session::options::values::header as read_header;

/// ab's User-Agent, on which servers may depend.
const USER_AGENT: &str = "ApacheBench/2.3";

/// The number of requests with `-t` when `-n` does not set it.
const TIMED_REQUESTS: u64 = 50_000;

/// The number of requests from which progress is shown.
const PROGRESS_FROM: u64 = 150;

const FLAGS: &[Flag] = &[
    value(&["n"]),
    value(&["c"]),
    value(&["t"]),
    value(&["s"]),
    value(&["B"]),
    value(&["p"]),
    value(&["u"]),
    value(&["T"]),
    value(&["v"]),
    value(&["C"]),
    value(&["H"]),
    value(&["A"]),
    value(&["P"]),
    value(&["x"]),
    value(&["y"]),
    value(&["z"]),
    value(&["g"]),
    value(&["e"]),
    value(&["m"]),
    value(&["E"]),
    switch(&["w"]),
    switch(&["i"]),
    switch(&["k"]),
    switch(&["d"]),
    switch(&["S"]),
    switch(&["q"]),
    switch(&["l"]),
    switch(&["r"]),
    switch(&["V"]),
    switch(&["h"]),
    value(&["X"]),
    refused(&["b"], "the system sizes the buffers of a connection"),
    refused(&["I"], "gake always sends the server name (SNI)"),
    refused(&["Z"], "gake offers the ciphers of rustls"),
    refused(&["f"], "gake offers TLS 1.2 and 1.3"),
];

/// The output of `-h` and after a command line that is not valid.
pub const USAGE: &str = "\
Usage: ab [options] [http[s]://]hostname[:port]/path
AbOptions are:
    -n requests     Number of requests. Default 1
    -c concurrency  Concurrent requests. Default 1
    -t timelimit    Maximum seconds; 50000 requests without -n
    -s timeout      Seconds for each request. Default 30
    -B address      Address to connect from
    -p postfile     File to POST
    -u putfile      File to PUT
    -T content-type Content-Type of the body. Default text/plain
    -m method       Method
    -i              HEAD instead of GET
    -C attribute    Cookie, as name=value; of several the last
    -H attribute    Header line (repeatable)
    -A attribute    user:password for basic authentication
    -P attribute    user:password for a proxy
    -X proxy:port   HTTP proxy
    -k              Keep connections open
    -r              Continue after socket errors
    -l              Allow responses of different lengths
    -d              No percentages
    -S              No median, deviation and warnings
    -q              No progress
    -v verbosity    0 or 1
    -g filename     Write every request, for gnuplot
    -e filename     Write percentages as CSV
    -w              HTML tables
    -x attributes   Attributes of the table
    -y attributes   Attributes of its rows
    -z attributes   Attributes of its cells
    -E certfile     Client certificate and key
    -V              Version
    -h              This help
Refused: -b -f -I -X -Z.
gake's own result beside it: --gake-out FILE, --gake-format FORMAT.
";

/// The body of a request, if there is one.
type Body = Option<Arc<[u8]>>;

/// A command line of ab.
#[derive(Debug)]
pub struct AbOptions {
    /// The target.
    pub location: Location,
    /// Requests at once.
    pub concurrency: usize,
    /// The number of requests between progress lines, if there are any.
    pub progress: Option<u64>,
    /// Whether the run continues after socket errors.
    pub continues_after_errors: bool,
    /// Whether the lengths of responses may vary.
    pub any_length: bool,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether requests have a body.
    pub sends_body: bool,
    /// The parts that are left out of the text.
    pub hidden: HiddenParts,
    /// HTML, with attributes of table, rows and cells.
    pub html: Option<[Option<String>; 3]>,
    /// The file of `-g`.
    pub samples: Option<String>,
    /// The file of `-e`.
    pub percentages: Option<String>,
    url: String,
    requests: u64,
    limit: Option<Duration>,
    timeout: Duration,
    method: String,
    headers: Vec<(String, String)>,
    body: Body,
    source: Option<String>,
    certificate: Option<String>,
    /// The proxy of `-X`.
    pub proxy: Option<String>,
}

impl AbOptions {
    /// Reads a command line.
    ///
    /// # Errors
    /// When it is not valid, in ab's words where it has some.
    pub fn read(args: &[String]) -> Result<Self, AbUsageError> {
        let parsed = Parsed::read(Grammar::Getopt, FLAGS, args)
            .map_err(|error| AbUsageError::Usage(error.into()))?;
        let on = |name| parsed.on(name).map_err(AbUsageError::Usage);
        if on("V")? {
            return Err(AbUsageError::Version);
        }
        if on("h")? {
            return Err(AbUsageError::Help);
        }
        // ab reads these while it reads the flags.
        let (limit, given) = (number(&parsed, "t"), number(&parsed, "n"));
        if given.is_some_and(|requests| requests <= 0) {
            return Err(AbUsageError::Plain("Invalid number of requests\n".to_owned()));
        }
        let (method, body) = method_and_body(&parsed)?;
        let [operand] = parsed.operands.as_slice() else {
            return Err(AbUsageError::Usage("wrong number of arguments".to_owned()));
        };
        let (url, location) = target(operand)?;
        if number(&parsed, "v").unwrap_or(0) > 1 {
            let why = "-v over 1 prints what is sent and received, which gake does not; see one \
                       answer with curl -v";
            return Err(AbUsageError::Plain(why.to_owned()));
        }
        let limit = limit.filter(|seconds| *seconds > 0);
        let limit = limit.map(|seconds| Duration::from_secs(seconds.unsigned_abs()));
        let requests = given.map(i64::unsigned_abs);
        let requests = requests.unwrap_or(if limit.is_some() { TIMED_REQUESTS } else { 1 });
        let concurrency = match number(&parsed, "c").unwrap_or(1) {
            concurrency @ 1.. => concurrency.unsigned_abs(),
            _ => return Err(AbUsageError::Usage("Invalid Concurrency: less than 1".to_owned())),
        };
        if concurrency > requests {
            return Err(AbUsageError::Usage(
                "Cannot use concurrency level greater than total number of requests".to_owned(),
            ));
        }
        let headers = headers(&parsed, &location, body.as_ref().map(|bytes| bytes.len()))?;
        let step = (requests / 10).max(100);
        let attribute = |name| parsed.last(name).map(str::to_owned);
        let attributes = ["x", "y", "z"].map(attribute);
        let asks_html = on("w")? || attributes.iter().any(Option::is_some);
        Ok(Self {
            location,
            concurrency: concurrency as usize,
            progress: (requests > PROGRESS_FROM && !on("q")?).then_some(step),
            continues_after_errors: on("r")?,
            any_length: on("l")?,
            keep_alive: on("k")?,
            sends_body: body.is_some(),
            hidden: HiddenParts { percentages: on("d")?, confidence: on("S")? },
            html: asks_html.then_some(attributes),
            samples: attribute("g"),
            percentages: attribute("e"),
            url,
            requests,
            limit,
            timeout: Duration::from_secs(number(&parsed, "s").unwrap_or(30).max(1).unsigned_abs()),
            method,
            headers,
            body,
            source: attribute("B"),
            certificate: attribute("E"),
            proxy: attribute("X"),
        })
    }

    pub fn spec(&self) -> RunSpec {
        let url = RequestSource::Url(self.url.clone());
        let scenario = ScenarioSpec {
            request: RequestDefaults {
                method: Some(self.method.clone()),
                headers: self.headers.clone(),
                body: self.body.clone().map(BodySpec::Bytes),
                user: None,
            },
            requests: Some(self.requests),
            duration: self.limit,
            // At its time limit ab discards requests in flight.
            graceful_stop: if self.limit.is_some() { Duration::ZERO } else { self.timeout },
            ..ScenarioSpec::new(url, Load::closed(self.concurrency))
        };
        let (connect, total) = (self.timeout, self.timeout);
        RunSpec {
            connection: ConnectionSpec {
                timeout: total,
                connect_timeout: connect,
                keepalive: self.keep_alive,
                proxy: self.proxy.clone(),
                http: HttpVersion::Http10,
                keep_answers: Some(1),
                sources: self.source.iter().cloned().collect(),
                ..ConnectionSpec::default()
            },
            tls: TlsSpec {
                insecure: true,
                certificate: self.certificate.as_ref().map(Into::into),
                key: self.certificate.as_ref().map(Into::into),
                ..TlsSpec::default()
            },
            ..RunSpec::new(scenario)
        }
    }

    /// Whether it uses TLS.
    pub fn is_tls(&self) -> bool {
        self.location.scheme == Scheme::Https
    }
}

/// The URL and its target; ab requires a path, at least `/`.
fn target(operand: &str) -> Result<(String, Location), AbUsageError> {
    let invalid = || AbUsageError::Usage("invalid URL".to_owned());
    let rest = operand.split_once("://").map_or(operand, |(_, rest)| rest);
    let location = Location::parse(operand).map_err(|_| invalid())?;
    if !rest.contains('/') {
        return Err(invalid());
    }
    let url =
        if location.scheme_assumed { format!("http://{operand}") } else { operand.to_owned() };
    Ok((url, location))
}

/// The method and the body: `-i`, `-p` and `-u` follow none of each other and no `-m`, which may
/// follow them.
fn method_and_body(parsed: &Parsed) -> Result<(String, Body), AbUsageError> {
    let (mut method, mut body) = (None, None);
    for (name, value) in parsed.given() {
        let own = match name {
            "i" => "HEAD",
            "p" => "POST",
            "u" => "PUT",
            "m" => {
                method = Some(value);
                continue;
            }
            _ => continue,
        };
        if method.is_some() {
            return Err(AbUsageError::Plain(format!("Cannot mix {own} with other methods\n")));
        }
        method = Some(own);
        if name != "i" {
            body = Some(read_body(value)?);
        }
    }
    Ok((method.unwrap_or("GET").to_owned(), body))
}

/// The file of a body; ab's error names POST for PUT, too.
fn read_body(path: &str) -> Result<Arc<[u8]>, AbUsageError> {
    let bytes = body_file(path).map_err(|error| {
        let why = system_text(&error);
        AbUsageError::Plain(format!("ab: Could not open POST data file ({path}): {why}"))
    })?;
    Ok(bytes.into())
}

/// The header lines in ab's order; of several cookies the last one counts, as in ab.
fn headers(
    parsed: &Parsed,
    location: &Location,
    content_length: Option<usize>,
) -> Result<Vec<(String, String)>, AbUsageError> {
    let given: Vec<(String, String)> = parsed
        .all("H")
        .map(|line| read_header(line).map_err(|why| AbUsageError::Usage(format!("-H: {why}"))))
        .collect::<Result<_, _>>()?;
    let is_given = |name: &str| given.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let unless_given =
        |name: &str, value: &str| (!is_given(name)).then(|| (name.to_owned(), value.to_owned()));
    let line = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut headers: Vec<(String, String)> = Vec::new();
    if parsed.on("k").map_err(AbUsageError::Usage)? {
        headers.push(line("Connection", "Keep-Alive"));
    }
    headers.extend(parsed.last("C").map(|cookie| ("Cookie".to_owned(), cookie.to_owned())));
    headers.extend(parsed.last("A").map(basic_authorization_as_given));
    headers.extend(parsed.last("P").map(|user| {
        let (_, value) = basic_authorization_as_given(user);
        ("Proxy-Authorization".to_owned(), value)
    }));
    if let Some(length) = content_length {
        headers.extend(unless_given("Content-length", &length.to_string()));
        headers.push(line("Content-type", parsed.last("T").unwrap_or("text/plain")));
    }
    let own = [
        unless_given("Host", &location.authority()),
        unless_given("User-Agent", USER_AGENT),
        unless_given("Accept", "*/*"),
    ];
    headers.extend(given);
    headers.extend(own.into_iter().flatten());
    Ok(headers)
}

/// A number as C's `atoi` reads it: the digits at the start, or 0.
fn number(parsed: &Parsed, name: &str) -> Option<i64> {
    let text = parsed.last(name)?.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    Some(text[..sign + digits].parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_comes_back, words};

    #[test]
    fn header_lines_are_in_abs_order() {
        let line = "-k -C a=1 -C b=2 -A u:p -H X:y -H accept:z http://h:81/";
        let options = AbOptions::read(&words(line)).unwrap();
        let names: Vec<_> = options.headers.iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["Connection", "Cookie", "Authorization", "X", "accept", "Host", "User-Agent"];
        assert_eq!(names, expected);
        assert_eq!(options.headers[1].1, "b=2");
        assert_eq!(options.headers[5].1, "h:81");
    }

    #[test]
    fn given_headers_stand_beside_abs_own() {
        let line = "-k -H Connection:close -H Content-Type:a/b -p /dev/null http://h/";
        let options = AbOptions::read(&words(line)).unwrap();
        let values = |name: &str| -> Vec<&str> {
            let all = options.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
            all.map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(values("connection"), ["Keep-Alive", "close"]);
        assert_eq!(values("content-type"), ["text/plain", "a/b"]);
    }

    #[test]
    fn numbers_are_those_of_atoi() {
        let read = |line: &str| AbOptions::read(&words(line));
        assert_eq!(read("-n 12x -c 3, http://h/").unwrap().requests, 12);
        assert_eq!(read("-s x -t x http://h/").unwrap().requests, 1);
        let invalid = AbUsageError::Plain("Invalid number of requests\n".to_owned());
        for line in ["-n x http://h/", "-n -5 http://h/", "-n 0"] {
            assert_eq!(read(line).unwrap_err(), invalid);
        }
    }

    #[test]
    fn a_spec_of_ab_comes_back() {
        for line in ["http://h/", "-n 100 -c 5 -k -B 127.0.0.2 http://h/", "-t 2 -s 9 http://h/a"] {
            assert_comes_back(&AbOptions::read(&words(line)).unwrap().spec());
        }
    }
}
