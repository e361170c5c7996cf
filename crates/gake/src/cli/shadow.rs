//! The flags of `gake shadow`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use gake_shadow::compare::judge::Terms;
use gake_shadow::hooks::{HookScript, SelectFailure};

use super::{serve, values};
use gake_session::options::RedactionArgs;
use gake_session::options::output::{self, OutputSpec};

/// Run the shadow proxy: the master responds to clients, other backends get copies.
///
/// No client ever waits for a shadow: copies have their own queues, connections and time-outs, and
/// are dropped and counted when a shadow cannot keep up. Requests that may change something (POST,
/// PUT ...) are not copied unless --shadow-methods allows it. The first line on standard output is
/// the proxy's URL. On SIGINT or SIGTERM it prints what became of every copy and exits.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake shadow --listen :8080 --master production=http://127.0.0.1:8081 \\
              --shadow sandbox=http://127.0.0.1:8082
                                        all GETs go to the sandbox too
  gake shadow ... --percentage 10 --sample cookie:session
                                        the requests of one user in ten
  gake shadow ... --shadow-methods all --shadow-rate 100/1s
                                        writes too, at most 100 copies a second
  gake shadow ... --admin 127.0.0.1:9901
  curl 127.0.0.1:9901/ledger            what became of every request
  curl -X POST -H 'Authorization: Bearer TOKEN' 127.0.0.1:9901/kill
                                        no more copies, at once
  gake shadow --config shadow.toml      rules by path, tokens, ramps: see docs/shadow.md
  gake shadow ... --script hooks.js     select, change and look at requests in JavaScript
  gake shadow ... --noise second=http://127.0.0.1:8083 --diff-out diff.json
                                        compare the responses; `second` is another instance of the master
  gake shadow report diff.json          what differs, and what is noise
  gake shadow ... --record traffic.gakerec
  gake run traffic.gakerec --speed 2x --target http://127.0.0.1:8082
                                        record the traffic, and replay it

Exit codes: 0 done; 99 the responses differ by more than the tolerance.")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ShadowArgs {
    /// A command other than serving
    #[command(subcommand)]
    pub command: Option<ShadowCommand>,

    /// Where to listen: ADDRESS:PORT, or PORT on loopback; port 0 takes a free one
    #[arg(long, value_name = "ADDR", value_parser = serve::listen)]
    pub listen: Option<SocketAddr>,

    /// The backend that responds to clients, as NAME=URL; h2c:// or h2:// selects HTTP/2
    #[arg(long, value_name = "NAME=URL", required_unless_present = "config")]
    pub master: Option<String>,

    /// A backend that gets copies, as NAME=URL; may be repeated
    #[arg(long, value_name = "NAME=URL")]
    pub shadow: Vec<String>,

    /// A second instance of the master that gets copies, or `master` to send it safe requests
    /// twice: differences between the two responses are noise
    #[arg(long, value_name = "NAME=URL|master")]
    pub noise: Vec<String>,

    /// Read settings from a TOML file; flags override it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub copies: CopyArgs,

    #[command(flatten)]
    pub http: ProxyArgs,

    #[command(flatten)]
    pub script: ScriptArgs,

    #[command(flatten)]
    pub taps: TapArgs,

    #[command(flatten)]
    pub service: ServiceArgs,
}

/// Hooks in JavaScript.
#[derive(Debug, Args)]
#[command(next_help_heading = "Script")]
pub struct ScriptArgs {
    /// A module with selectBackends, mungeRequest and backendsFinished: see
    /// docs/shadow-hooks.md
    #[arg(long, value_name = "FILE.js")]
    pub script: Option<PathBuf>,

    /// How long selectBackends and mungeRequest may run for a request before the default applies
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::positive_duration,
        default_value = "50ms",
        requires = "script"
    )]
    pub script_timeout: Duration,

    /// How long a request may wait for a script thread before the default applies
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::positive_duration,
        default_value = "1s",
        requires = "script"
    )]
    pub script_wait: Duration,

    /// Threads for selectBackends and mungeRequest, each with its own variables (default:
    /// the number of cores, at most 8)
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=64),
        requires = "script"
    )]
    pub script_threads: Option<u8>,

    /// Who gets a request when selectBackends fails or takes too long
    #[arg(long, value_name = "WHO", value_enum, default_value = "master", requires = "script")]
    pub on_select_failure: SelectFailureArg,
}

impl ScriptArgs {
    /// The script with its settings, if there is one.
    pub fn hooks(&self) -> Option<HookScript> {
        const THREADS_MAX: usize = 8;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        Some(HookScript {
            path: self.script.clone()?,
            threads: self.script_threads.map_or_else(|| cores().min(THREADS_MAX), usize::from),
            limit: self.script_timeout,
            wait: self.script_wait,
            on_select_failure: self.on_select_failure.into(),
        })
    }
}

/// Who gets a request when selectBackends fails or takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SelectFailureArg {
    /// Only the master
    Master,
    /// All backends that the rules select
    All,
}

impl From<SelectFailureArg> for SelectFailure {
    fn from(who: SelectFailureArg) -> Self {
        match who {
            SelectFailureArg::Master => Self::Master,
            SelectFailureArg::All => Self::All,
        }
    }
}

/// Commands for the files that the proxy wrote.
#[derive(Debug, Subcommand)]
pub enum ShadowCommand {
    /// Judge comparisons that --diff-out wrote: what differs, and what is noise
    Report(ShadowReportArgs),
    /// Write a recording in another format: .gakerec or .gor; access logs are read too
    Convert(ConvertArgs),
}

/// Comparing and recording traffic.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparison and recording")]
pub struct TapArgs {
    /// Compare the responses of master and shadows, and print the differences at the end
    #[arg(long)]
    pub diff: bool,

    /// Compare, and write the comparison to this file, for `gake shadow report`
    #[arg(long, value_name = "FILE")]
    pub diff_out: Option<PathBuf>,

    /// Rules for what to ignore (TOML); may be repeated
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,

    #[command(flatten)]
    pub terms: TermArgs,

    /// Record the requests to this file, for `gake run FILE --target URL`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// The same as --redact none
    #[arg(long, requires = "record", hide = true)]
    pub record_secrets: bool,

    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// What counts as a difference.
#[derive(Debug, Args)]
pub struct TermArgs {
    /// Share of an endpoint's responses that may differ in a field, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percentage, default_value = "0")]
    pub tolerance: f64,

    /// How much slower an endpoint may be, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percentage, default_value = "5")]
    pub latency_tolerance: f64,
}

impl TermArgs {
    /// The terms of a judgement.
    pub fn terms(&self) -> Terms {
        Terms {
            tolerance: self.tolerance / 100.0,
            latency: self.latency_tolerance / 100.0,
            ..Terms::default()
        }
    }
}

/// Judge comparisons: what differs, and what is noise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake shadow report diff.json
  gake shadow report monday.json tuesday.json --rules ignore.toml --tolerance 0.1
  gake shadow report diff.json --format json
  gake shadow report diff.json --html diff.html              to read in a browser

Exit codes: 0 alike; 99 the responses differ by more than the tolerance.")]
pub struct ShadowReportArgs {
    /// Files from `gake shadow --diff-out`; files of the same shadow are added up
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// text, json (a list with one gake.shadow-report/1 for each shadow) or html; with =FILE into a
    /// file. May be repeated
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_SEARCH, hide_possible_values = true)]
    pub formats: Vec<OutputSpec>,

    /// Write the report as one HTML file: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html)]
    pub html: Option<OutputSpec>,

    /// Rules for what to ignore (TOML); may be repeated
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,

    #[command(flatten)]
    pub terms: TermArgs,

    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// Write a recording in another format.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gake shadow convert requests.gor traffic.gakerec
  gake shadow convert traffic.gakerec requests.gor       for GoReplay
  gake shadow convert access.log traffic.gakerec")]
pub struct ConvertArgs {
    /// A .gakerec, a .gor, or an access log
    #[arg(value_name = "IN")]
    pub input: PathBuf,

    /// A .gakerec or a .gor
    #[arg(value_name = "OUT")]
    pub output: PathBuf,

    /// The same as --redact none
    #[arg(long, hide = true)]
    pub secrets: bool,

    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// What is copied. Each limit holds per shadow.
#[derive(Debug, Args)]
#[command(next_help_heading = "Copies")]
pub struct CopyArgs {
    /// Share of the eligible requests to copy, in percent (default: 100)
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    pub percentage: Option<f64>,

    /// Ramp the percentage up from 0 over this time
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub ramp: Option<Duration>,

    /// How to choose the requests: random, path, header:NAME or cookie:NAME
    #[arg(long, value_name = "HOW")]
    pub sample: Option<String>,

    /// Methods that may be copied, separated by commas; safe and all stand for groups of methods
    /// (default: safe)
    #[arg(long, value_name = "METHODS", value_delimiter = ',')]
    pub shadow_methods: Vec<String>,

    /// The header that marks copies, or none (default: 'X-Gake-Shadow: 1'); clients' own is dropped
    #[arg(long, value_name = "HEADER")]
    pub marker: Option<String>,

    /// Sign the markers of copies with the secret in this file, so that a service can tell a copy
    /// from a client that forges the marker: see docs/shadow.md
    #[arg(long, value_name = "FILE", conflicts_with = "marker_secret")]
    pub marker_secret_file: Option<PathBuf>,

    /// The same from the environment; other users see the flags of a process
    #[arg(
        long,
        env = "GAKE_MARKER_SECRET",
        value_name = "SECRET",
        hide_env_values = true,
        hide = true
    )]
    pub marker_secret: Option<String>,

    /// Largest request body that is copied (default: 1MiB)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub shadow_body_limit: Option<u64>,

    /// Maximum number of bytes read from the body of a shadow's response (default: 1MiB)
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub answer_body_limit: Option<u64>,

    /// Time-out for a copy, response included (default: 10s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub shadow_timeout: Option<Duration>,

    /// Maximum number of copies a second
    #[arg(long, value_name = "RATE", value_parser = values::finite_rate)]
    pub shadow_rate: Option<f64>,

    /// Maximum number of waiting copies per shadow (default: 1024)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub shadow_queue: Option<usize>,

    /// Connections per shadow, and so the maximum number of copies in flight (default: 128)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub shadow_connections: Option<usize>,

    /// Consecutive failures after which a shadow gets no copies for 5 s; 0 disables this (default:
    /// 20)
    #[arg(long, value_name = "N")]
    pub breaker: Option<u32>,

    /// Niceness of the threads that send copies, 0 to 19 (default: 0)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=19))]
    pub shadow_nice: Option<u8>,

    /// Make sampling repeatable (default: 1)
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// HTTP settings.
#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP")]
pub struct ProxyArgs {
    /// Host header for backends: preserve, backend or a literal host (default: preserve)
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,

    /// What to do with X-Forwarded-*, X-Real-IP and Forwarded (default: append)
    #[arg(long, value_enum, value_name = "HOW")]
    pub forwarded: Option<ForwardedArg>,

    /// Pass on header names with `_` and other characters that many servers take for `-`
    #[arg(long)]
    pub underscores_in_headers: bool,

    /// Speak TLS to clients with this certificate chain (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Key of the certificate (PEM; default: in the certificate's file)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Accept any certificate of a backend
    #[arg(long)]
    pub insecure: bool,

    /// Trust the certificates in this file (PEM) instead of the system's
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,

    /// Time for a client to send a whole request head; after that its connection is closed
    /// (default: 60s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub head_timeout: Option<Duration>,

    /// Longest pause while a client sends a body; after that it gets a 408 (default: 30s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub client_timeout: Option<Duration>,

    /// Time to connect to a backend (default: 5s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub connect_timeout: Option<Duration>,

    /// Time to the master's first byte; after that the client gets a 504 (default: 60s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub first_byte_timeout: Option<Duration>,

    /// Maximum time between two bytes of a response or a tunnel (default: 60s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub idle_timeout: Option<Duration>,
}

/// How the proxy runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Service")]
pub struct ServiceArgs {
    /// Threads that serve clients, each paired with one for copies (default: the number of cores)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub threads: Option<usize>,

    /// Maximum number of client connections; further ones wait in the backlog (default: 10000, or
    /// what the file descriptors allow)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub max_connections: Option<usize>,

    /// Serve status, ledger and metrics at this address, on loopback only
    #[arg(long, value_name = "ADDR", value_parser = serve::listen)]
    pub admin: Option<SocketAddr>,

    /// The token for changes through the admin service (default: a new one, printed at the start)
    #[arg(long, value_name = "FILE", conflicts_with = "admin_token")]
    pub admin_token_file: Option<PathBuf>,

    /// The same from the environment; other users see the flags of a process
    #[arg(
        long,
        env = "GAKE_ADMIN_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true,
        hide = true
    )]
    pub admin_token: Option<String>,

    /// Time to finish requests and copies in flight when the proxy stops
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "10s")]
    pub drain: Duration,

    /// Print nothing but the URL and, at the end, the ledger
    #[arg(short, long)]
    pub quiet: bool,

    /// End with the process that started it, whose number this is
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<u32>,
}

/// What happens to the headers that name the origin of a request.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ForwardedArg {
    /// Append the client
    Append,
    /// Discard what the client sent
    Replace,
    /// Leave them unchanged
    Off,
}

fn percentage(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    number
        .filter(|number| (0.0..=100.0).contains(number))
        .ok_or_else(|| format!("{text:?} is not a valid percentage; write 0 to 100"))
}

fn size(text: &str) -> Result<u64, String> {
    gake_text::size::parse_size(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_between_nothing_and_all() {
        assert_eq!(percentage("12.5"), Ok(12.5));
        assert_eq!(percentage("100%"), Ok(100.0));
        for text in ["", "-1", "101", "NaN", "ten"] {
            assert!(percentage(text).is_err(), "{text}");
        }
    }
}
