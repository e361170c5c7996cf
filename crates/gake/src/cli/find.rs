//! The flags of `gake find`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use gake_judge::Objective;
use gake_judge::search::Dimension;

use super::run::{Arrivals, ConnectionArgs, RequestArgs};
use super::values::{self, WatchedSource};
use gake_session::options::FleetArgs;
use gake_session::options::RedactionArgs;
use gake_session::options::output::{self, OutputSpec};

/// Find the highest load at which every objective holds, with its confidence interval.
///
/// A closed loop of 1, 2, 4 ... users gives a rough capacity. Steps at rates around it are then
/// pooled until the capacity is known to the precision asked for, or the budget is spent.
#[derive(Debug, Args)]
#[command(
    before_help = "\
Examples:
  gake find http://localhost:8080/ --slo 'p99<50ms' --slo 'errors<0.1%'
  gake find http://localhost:8080/ --budget 5m --precision 2%
  gake find http://localhost:8080/ --map                      what happens beyond the capacity
  gake find journey.js --slo 'checks>99%'                     iterations of a k6 script",
    before_long_help = "\
Examples:
  gake find http://localhost:8080/ --slo 'p99<50ms' --slo 'errors<0.1%'
  gake find http://localhost:8080/ --budget 5m --precision 2%
  gake find targets.http --slo 'p95<200ms' --max-rate 2000    never more than 2,000/s
  gake find http://localhost:8080/ --dimension users --slo 'p99<1s'
  gake find http://localhost:8080/ --map                      what happens beyond the capacity
  gake find http://localhost:8080/ --html capacity.html       with charts
  gake find http://10.0.0.9/ --nats nats://10.0.0.1 --agents 4    more than one machine can send
  gake find journey.js --slo 'checks>99%' --slo 'http_req_duration{name:login}:p95<300ms'
                                                              iterations of a k6 script

A script is searched in iterations a second. Its environment is that of the command; without
--slo its thresholds are the objectives.",
    after_help = "\
Exit codes: 0 a capacity (or a lower bound) was found; 1 the search failed; 2 bad usage;
3 inconclusive: the generator was the limit; 99 the objectives do not hold under any load;
130 interrupted (after the result so far)."
)]
pub struct FindArgs {
    /// A URL (http:// unless it has a scheme), a targets file, a k6 script, or `demo`
    #[arg(value_name = "TARGET")]
    pub target: String,

    #[command(flatten)]
    pub search: SearchArgs,

    #[command(flatten)]
    pub request: RequestArgs,

    #[command(flatten)]
    pub connection: ConnectionArgs,

    /// Sample the target during the search, for objectives like cpu<80% and to find what limits
    /// it: pid:1234, port:8080, prometheus:URL, actuator:URL, mysql://..., postgres://...; may be
    /// repeated
    #[arg(
        long,
        value_name = "SOURCE",
        help_heading = "Target",
        value_parser = values::WATCHED,
        hide_possible_values = true
    )]
    pub watch: Vec<WatchedSource>,

    #[command(flatten)]
    pub output: FindOutputArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,

    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// The search.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// Objective: 'p99<50ms', 'errors<0.1%'; may be repeated (default, also if only the watched
    /// target has objectives: p99 < 5 times the unloaded p99, at least 100ms; errors < 0.1%)
    #[arg(long, value_name = "OBJECTIVE")]
    pub slo: Vec<Objective>,

    /// Time for all steps
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration, default_value = "2m")]
    pub budget: Duration,

    /// Load of one user before the search, which does not count (a target that warms up later starts
    /// the search again)
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "0s", hide_default_value = true)]
    pub warmup: Duration,

    /// Stop when half the 95 % interval is this narrow
    #[arg(long, value_name = "PERCENT", value_parser = values::precision, default_value = "5%")]
    pub precision: f64,

    /// The kind of load to search
    #[arg(long, value_enum, default_value_t = DimensionArg::Rate)]
    pub dimension: DimensionArg,

    /// Never exceed this load: a rate, or a number of users, connections or streams
    #[arg(long, value_name = "RATE", value_parser = values::finite_rate)]
    pub max_rate: Option<f64>,

    /// Go beyond the capacity and back: what kind of cliff is it, and does the target recover?
    #[arg(long)]
    pub map: bool,

    /// How arrivals are distributed; users arrive independently of each other
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    pub arrivals: Arrivals,

    /// Make the arrivals repeatable
    #[arg(long, default_value_t = 1, hide_default_value = true)]
    pub seed: u64,

    /// Maximum number of connections of a search by rate (default 1000, or as many as the objective
    /// needs). For a script: maximum number of users (default 50, or as many as needed). With
    /// --dimension streams: the connections that share the streams (default 1)
    #[arg(short, long, value_parser = values::connections)]
    pub connections: Option<usize>,

    /// Threads (default: as many as the load needs, at most one per core)
    #[arg(short, long, value_parser = values::connections)]
    pub threads: Option<usize>,
}

/// The results and where they go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct FindOutputArgs {
    /// text, json (the schema gake.find/1) or html; with =FILE into a file. May be repeated
    #[arg(short = 'o', long = "format", value_name = "FORMAT[=FILE]", value_parser = output::OF_SEARCH, hide_possible_values = true)]
    pub formats: Vec<OutputSpec>,

    /// Write the report with charts, one HTML file: short for -o html=FILE
    #[arg(long, value_name = "FILE", value_parser = output::html)]
    pub html: Option<OutputSpec>,

    /// Write a run file for each step into this folder, for `gake report`
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Keep the result in the history of the project, .gake/history.db: see `gake history`
    #[arg(long)]
    pub save: bool,

    /// Print only the result
    #[arg(short, long)]
    pub quiet: bool,

    /// No colour: short for --color=never
    #[arg(long)]
    pub no_color: bool,
}

impl FindOutputArgs {
    /// Every file asked for, and the folder of the steps.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let results = output::files(self.formats.iter().chain(&self.html));
        results.chain(self.out.as_deref())
    }
}

/// The kind of load to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DimensionArg {
    /// Requests a second
    Rate,
    /// Users who each wait for their response
    Users,
    /// Connections held open during a light load
    Connections,
    /// New connections a second, one for each request
    ConnectRate,
    /// Handshakes of TLS a second, one for each request
    TlsHandshakes,
    /// Concurrent requests on the connections of HTTP/2
    Streams,
}

impl From<DimensionArg> for Dimension {
    fn from(dimension: DimensionArg) -> Self {
        match dimension {
            DimensionArg::Rate => Self::Rate,
            DimensionArg::Users => Self::Users,
            DimensionArg::Connections => Self::Connections,
            DimensionArg::ConnectRate => Self::ConnectRate,
            DimensionArg::TlsHandshakes => Self::TlsHandshakes,
            DimensionArg::Streams => Self::Streams,
        }
    }
}
