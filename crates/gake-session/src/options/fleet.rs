//! The flags of fleets: those that agents and coordinators share, and the coordinator's own.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use super::{OutputArgs, RedactionArgs, SaveArgs, WebArgs, values};

/// How the NATS server of a fleet is reached, and the fleet's token.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub struct NatsArgs {
    /// The NATS server: nats://HOST:PORT or tls://HOST:PORT, with USER:PASSWORD@ or TOKEN@ before
    /// the host (default: the variable GAKE_NATS)
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,

    /// The file with the fleet's token, a secret of at least 16 bytes (default: the variable
    /// GAKE_FLEET_TOKEN)
    #[arg(long, value_name = "FILE")]
    pub fleet_token_file: Option<PathBuf>,

    /// Trust the certificates in this PEM file for NATS; may be repeated
    #[arg(long, value_name = "FILE")]
    pub nats_ca: Vec<PathBuf>,

    /// Client certificate for NATS (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    pub nats_cert: Option<PathBuf>,

    /// Key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    pub nats_key: Option<PathBuf>,

    /// Credentials file for NATS, as `nsc` writes it: a JWT and the seed of its nkey
    #[arg(long, value_name = "FILE", conflicts_with = "nats_nkey")]
    pub nats_creds: Option<PathBuf>,

    /// File with the seed of an nkey for NATS, SU...
    #[arg(long, value_name = "FILE")]
    pub nats_nkey: Option<PathBuf>,
}

/// A run on several machines.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Fleet", mut_args(hidden_if_absent))]
pub struct FleetArgs {
    /// Run on N agents (`gake agent`) that wait at a NATS server, each with its slice of the load
    #[arg(long, value_name = "N", value_parser = values::connections)]
    pub agents: Option<usize>,

    /// Run on N agents that are started on this machine for the run, with a NATS server
    #[arg(
        long,
        value_name = "N",
        value_parser = values::connections,
        conflicts_with_all = ["agents", "nats", "nats_ca", "nats_cert", "nats_key", "nats_creds", "nats_nkey", "fleet_token_file"]
    )]
    pub local: Option<usize>,

    /// The NATS server and the token.
    #[command(flatten)]
    pub nats: NatsArgs,

    /// Only agents with these tags: zone=a,disk=ssd
    #[arg(
        long = "where",
        value_name = "KEY=VALUE",
        value_delimiter = ',',
        value_parser = tag,
        requires = "agents"
    )]
    pub filter: Vec<(String, String)>,

    /// What to do when an agent is lost (default redistribute)
    #[arg(long, value_name = "ACTION", value_enum)]
    pub on_loss: Option<OnLossArg>,

    /// How long agents continue without this process, so that `gake fleet attach` can take over the
    /// run (default 20s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub attach_within: Option<std::time::Duration>,

    /// How long to wait for the agents (default 5s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub agents_wait: Option<std::time::Duration>,
}

/// Hides the flags of a fleet in a build without it.
fn hidden_if_absent(arg: Arg) -> Arg {
    let is_absent = cfg!(not(feature = "fleet")) && arg.get_help_heading() == Some("Fleet");
    let is_hidden = is_absent || arg.is_hide_set();
    arg.hide(is_hidden)
}

impl FleetArgs {
    /// Whether any of the flags is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let nats = &self.nats;
        self.agents.is_some()
            || self.local.is_some()
            || nats.nats.is_some()
            || !nats.nats_ca.is_empty()
            || nats.nats_cert.is_some()
            || nats.nats_creds.is_some()
            || nats.nats_nkey.is_some()
            || nats.fleet_token_file.is_some()
            || self.on_loss.is_some()
            || self.attach_within.is_some()
            || self.agents_wait.is_some()
    }
}

/// A run to take over, and the destinations of its result.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Its id, as `gake run` and `gake fleet ls` show it
    pub run: String,

    /// The NATS server and the token.
    #[command(flatten)]
    pub nats: NatsArgs,

    /// Formats and files of the results.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The live page.
    #[command(flatten)]
    pub web: WebArgs,

    /// The history of runs.
    #[command(flatten)]
    pub history: SaveArgs,

    /// Redaction of secrets.
    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// What happens when an agent is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnLossArg {
    /// The others continue; its share of the load is not sent, and reported as lost
    Continue,
    /// From the next second on, the others send its share of the load
    Redistribute,
    /// The run ends
    Abort,
}

/// A tag: a key and a value.
pub fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a tag as KEY=VALUE".to_owned()),
    }
}
