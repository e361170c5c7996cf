//! The flags of `gake agent`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gake_fleet::AllowRule;
use gake_wire::SourceAddresses;

use super::values;
use gake_session::options::RedactionArgs;
use gake_session::options::{NatsArgs, fleet::tag};

/// Wait at a NATS server for runs, and do a slice of each: `gake run ... --agents N` joins the
/// figures of its agents into one run.
///
/// An agent does only what is sealed with the fleet's token, and loads nothing but what --allow
/// names. It runs until SIGINT or SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export GAKE_FLEET_TOKEN=$(openssl rand -hex 32)  the same for agents and coordinator
  gake agent --nats nats://10.0.0.1:4222 --allow 10.0.0.0/8
  gake agent --nats tls://nats.example.org --allow api.example.org --tags zone=a --max-rate 5k
  gake run http://10.0.0.9:8080/ -r 20k -d 5m --nats nats://10.0.0.1:4222 --agents 4
  gake agent --nats nats://10.0.0.1:4222 --allow 10.0.0.0/8 --scripts
  gake run journey.js --nats nats://10.0.0.1:4222 --agents 4")]
pub struct AgentArgs {
    #[command(flatten)]
    pub nats: NatsArgs,

    /// Its name in reports (default: the machine's name and the number of the process)
    #[arg(long)]
    pub name: Option<String>,

    /// What runs choose it by: zone=a,disk=ssd
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = tag)]
    pub tags: Vec<(String, String)>,

    /// Maximum number of worker threads (default: the number of cores)
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub cores: Option<usize>,

    /// How much of a run it takes, in proportion to others: a number, or `auto` for what its cores
    /// can send, which `gake doctor` measures as well (half a second at the start)
    #[arg(long, value_name = "N|auto", value_parser = weight, default_value = "1")]
    pub weight: WeightArg,

    /// Source addresses of its connections, instead of those that a run names: an address,
    /// 127.0.0.2-127.0.0.20, 127.0.1.0/28, or an interface's name; may be repeated
    #[arg(long, value_name = "SOURCES", value_parser = sources)]
    pub sources: Vec<String>,

    /// A target that it may load: an address, a network as 10.0.0.0/8, or the host of a URL; may be
    /// repeated. Without it, none. Loopback and private addresses need a network within their
    /// range: neither 0.0.0.0/0 nor the name of a host allows them
    #[arg(long, value_name = "TARGET", help_heading = "Limits")]
    pub allow: Vec<AllowRule>,

    /// Run scripts too: JavaScript from any holder of the token, which connects only to what --allow
    /// names and reads no files of this machine
    #[arg(long, help_heading = "Limits")]
    pub scripts: bool,

    /// Highest rate of its slice; closed loops and scripts are refused then
    #[arg(long, value_name = "RATE", value_parser = values::finite_rate, help_heading = "Limits")]
    pub max_rate: Option<f64>,

    /// Maximum number of connections of its slice; of a script, those open at once
    #[arg(long, value_name = "N", value_parser = values::connections, help_heading = "Limits")]
    pub max_connections: Option<usize>,

    /// Maximum number of users that a script has here, each with up to 512 MB of heap
    #[arg(
        long,
        value_name = "N",
        value_parser = values::connections,
        default_value_t = 10_000,
        help_heading = "Limits"
    )]
    pub max_users: usize,

    /// Longest run, counted from its start: what is in flight then is cut 5 s later
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::positive_duration,
        help_heading = "Limits"
    )]
    pub max_duration: Option<Duration>,

    /// Log every request of its latest run: .csv, or .json for one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    #[command(flatten)]
    pub redaction: RedactionArgs,

    /// Print nothing but warnings
    #[arg(short, long)]
    pub quiet: bool,

    /// End with the process that started it, whose number this is
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<u32>,

    /// Become a NATS server that is configured by standard input
    #[arg(long, hide = true, requires = "parent")]
    pub serve_nats: bool,
}

/// How much of a run an agent takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightArg {
    /// What it can send.
    Auto,
    /// A number.
    Given(u32),
}

/// A weight: a number from 1 on, or `auto`.
fn weight(text: &str) -> Result<WeightArg, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(WeightArg::Auto),
        (_, Ok(weight @ 1..=1_000_000)) => Ok(WeightArg::Given(weight)),
        _ => Err("write a weight as a number from 1 to 1000000, or auto".to_owned()),
    }
}

/// Source addresses, as written.
fn sources(text: &str) -> Result<String, String> {
    SourceAddresses::default().add(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
