//! The flags of wrk and wrk2.

use std::time::Duration;

use super::report::{scan_count, scan_time};
use gake_wire::Location;

use crate::flags::{Flag, Grammar, Parsed, refused, switch, value};
use crate::tool_run::THREADS_MAX;
use gake_session::options::values::header as read_header;

/// One of the two tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// wrk: a closed loop.
    Wrk,
    /// wrk2: an open loop at a rate.
    Wrk2,
}

/// The end of a command line without options.
#[derive(Debug, PartialEq, Eq)]
pub enum WrkOptionsError {
    /// The tool shows its usage, after this sentence if there is one.
    Usage(Option<String>),
    /// gake does not support it.
    Refused(String),
}

/// A command line of wrk or wrk2.
#[derive(Debug, Clone, PartialEq)]
pub struct WrkOptions {
    pub tool: Tool,
    /// The target.
    pub url: String,
    pub threads: usize,
    /// Connections over all threads.
    pub connections: usize,
    pub duration: Duration,
    /// The duration from which a request counts as a time-out.
    pub timeout: Duration,
    /// Requests a second over all threads (wrk2).
    pub rate: Option<f64>,
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// Whether the distribution of latencies is shown.
    pub latency: bool,
    /// Whether the distribution of uncorrected latencies is shown, too (wrk2).
    pub uncorrected: bool,
    /// Whether the version is shown first.
    pub version: bool,
    /// The path of a Lua script.
    pub script: Option<String>,
    /// The script's arguments.
    pub script_args: Vec<String>,
}

/// The flags of both, by their names as keys.
const COMMON: [Flag; 9] = [
    value(&["c", "connections"]),
    value(&["d", "duration"]),
    value(&["t", "threads"]),
    value(&["H", "header"]),
    value(&["T", "timeout"]),
    value(&["s", "script"]),
    switch(&["L", "latency"]),
    switch(&["v", "version"]),
    switch(&["h", "help"]),
];

/// Additional flags of wrk2. gake sends one request at a time on a connection, so that each is a
/// batch of its own and `-B` changes nothing.
const WRK2: [Flag; 3] =
    [value(&["R", "rate"]), switch(&["U", "u_latency"]), switch(&["B", "batch_latency"])];

/// Additional flags of wrk: a rate is refused, since it must not pass as a test without one.
const WRK: [Flag; 1] = [refused(&["R", "rate"], "wrk has no rate; use `gake as wrk2`")];

impl WrkOptions {
    /// Reads a command line.
    pub fn read(tool: Tool, args: &[String]) -> Result<Self, WrkOptionsError> {
        let own = match tool {
            Tool::Wrk => &WRK[..],
            Tool::Wrk2 => &WRK2[..],
        };
        let usage = |why| WrkOptionsError::Usage(Some(why));
        let parsed = Parsed::read(Grammar::GetoptLong, &[&COMMON[..], own].concat(), args)
            .map_err(|error| usage(error.into()))?;
        let script = parsed.last("s").map(ToOwned::to_owned);
        let on = |name| parsed.on(name).map_err(usage);
        let (mut url, mut rest) = (None, parsed.operands.iter());
        if !on("h")? {
            url = rest.next();
        }
        let url = url.ok_or(WrkOptionsError::Usage(None))?;
        let script_args: Vec<String> = rest.cloned().collect();
        if let (Some(more), None) = (script_args.first(), &script) {
            return Err(WrkOptionsError::Refused(format!(
                "{more:?} after the URL is for a script, and -s names none"
            )));
        }
        if !url.contains("://") || Location::parse(url).is_err() {
            return Err(usage(format!("invalid URL: {url}")));
        }
        let count = |name, default| -> Result<u64, WrkOptionsError> {
            Ok(parsed.read_with(name, scan_count).map_err(usage)?.unwrap_or(default))
        };
        let time = |name, default| -> Result<Duration, WrkOptionsError> {
            let seconds = parsed.read_with(name, scan_time).map_err(usage)?.unwrap_or(default);
            Ok(Duration::from_secs(seconds))
        };
        let (threads, connections) = (count("t", 2)?, count("c", 10)?);
        let (duration, timeout) = (time("d", 10)?, time("T", 2)?);
        if threads == 0 || duration.is_zero() {
            return Err(WrkOptionsError::Usage(None));
        }
        if connections < threads {
            return Err(usage("number of connections must be >= threads".to_owned()));
        }
        if threads > THREADS_MAX {
            return Err(WrkOptionsError::Refused(format!(
                "-t {threads} is more than the {THREADS_MAX} threads gake starts; more than the \
                 cores only cost"
            )));
        }
        let rate = rate(tool, count("R", 0)?)?;
        let headers = parsed.all("H").map(read_header).collect::<Result<_, _>>();
        Ok(Self {
            tool,
            url: url.clone(),
            threads: threads as usize,
            connections: usize::try_from(connections).unwrap_or(usize::MAX),
            duration,
            timeout,
            rate,
            headers: headers.map_err(usage)?,
            latency: on("L")?,
            uncorrected: on("U")?,
            version: on("v")?,
            script,
            script_args,
        })
    }
}

/// Requests a second, which wrk2 requires.
fn rate(tool: Tool, rate: u64) -> Result<Option<f64>, WrkOptionsError> {
    match (tool, rate) {
        (Tool::Wrk, _) => Ok(None),
        (Tool::Wrk2, 0) => {
            let why = "Throughput MUST be specified with the --rate or -R option";
            Err(WrkOptionsError::Usage(Some(why.to_owned())))
        }
        (Tool::Wrk2, rate) => Ok(Some(rate as f64)),
    }
}

impl Tool {
    /// The help text.
    pub fn usage(self) -> &'static str {
        match self {
            Self::Wrk => WRK_USAGE,
            Self::Wrk2 => WRK2_USAGE,
        }
    }
}

const WRK_USAGE: &str = "\
Usage: wrk <options> <url>
  Options:
    -c, --connections <N>  Connections, each a user (default 10)
    -d, --duration    <T>  Length of the test (default 10s)
    -t, --threads     <N>  Threads (default 2)

    -s, --script      <S>  Lua script file; after the URL, its arguments
    -H, --header      <H>  Header line, 'Name: value'
        --latency          Show the latency distribution
        --timeout     <T>  Count slower requests as time-outs (default 2s)
    -v, --version          Show the version

  <N> may end in k, M or G, and <T> in s, m or h
";

const WRK2_USAGE: &str = "\
Usage: wrk2 <options> <url>
  Options:
    -R, --rate        <N>  Requests a second in all (required)
    -c, --connections <N>  Connections (default 10)
    -d, --duration    <T>  Length of the test (default 10s)
    -t, --threads     <N>  Threads (default 2)

    -s, --script      <S>  Lua script file; after the URL, its arguments
    -H, --header      <H>  Header line, 'Name: value'
    -L, --latency          Show the latency distribution
    -U, --u_latency        Show the uncorrected one too
        --timeout     <T>  Count slower requests as time-outs (default 2s)
    -B, --batch_latency    Accepted: every request is a batch
    -v, --version          Show the version

  <N> may end in k, M or G, and <T> in s, m or h
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::words;

    fn read(tool: Tool, line: &str) -> Result<WrkOptions, WrkOptionsError> {
        WrkOptions::read(tool, &words(line))
    }

    #[test]
    fn defaults_are_wrks() {
        let options = read(Tool::Wrk, "http://h/").unwrap();
        assert_eq!((options.threads, options.connections), (2, 10));
        assert_eq!(options.duration, Duration::from_secs(10));
        assert_eq!(options.timeout, Duration::from_secs(2));
        assert!(options.rate.is_none() && !options.latency && !options.uncorrected);
    }

    #[test]
    fn units_and_long_names() {
        let line = "-t4 -c 1k --duration 2m --latency http://h/x --timeout=1m -H A:b";
        let options = read(Tool::Wrk, line).unwrap();
        assert_eq!((options.threads, options.connections), (4, 1_000));
        assert_eq!(options.duration, Duration::from_secs(120));
        assert_eq!(options.timeout, Duration::from_secs(60));
        assert_eq!(options.headers, [("A".to_owned(), "b".to_owned())]);
        let options = read(Tool::Wrk2, "-R2k -LU -B http://h/x").unwrap();
        assert_eq!(options.rate, Some(2_000.0));
        assert!(options.latency && options.uncorrected);
    }

    #[test]
    fn what_wrk_objects_to() {
        for (line, expected) in [
            ("-c 1 -t 2 http://h/", "number of connections must be >= threads"),
            ("localhost/", "invalid URL: localhost/"),
            ("--bad http://h/", "no flag --bad"),
            ("-c x http://h/", "-c \"x\""),
            ("-H nocolon http://h/", "Name: value"),
            ("-R 5 http://h/", "gake as wrk2"),
        ] {
            let Err(WrkOptionsError::Usage(Some(why))) = read(Tool::Wrk, line) else {
                panic!("{line}")
            };
            assert!(why.contains(expected), "{line}: {why}");
        }
        for line in ["", "-h http://h/", "-d 0 http://h/", "-t 0 http://h/"] {
            assert_eq!(read(Tool::Wrk, line), Err(WrkOptionsError::Usage(None)), "{line}");
        }
        assert!(matches!(read(Tool::Wrk2, "http://h/"), Err(WrkOptionsError::Usage(Some(_)))));
    }

    #[test]
    fn what_gake_refuses() {
        for line in ["http://h/ -- a", "-c 2k -t 2k http://h/"] {
            assert!(matches!(read(Tool::Wrk, line), Err(WrkOptionsError::Refused(_))), "{line}");
        }
    }
}
