//! The flags of fleets: what agents and coordinators have in common, and the coordinator's own.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
#[command(next_help_heading = "Fleet")]
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

    /// How long agents go on without this process, so that `gake fleet attach` can go on with the
    /// run (default 20s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub attach_within: Option<std::time::Duration>,

    /// How long to wait for the agents (default 5s)
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub agents_wait: Option<std::time::Duration>,
}

/// A run to continue, and where its result goes.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// Its id, as `gake run` and `gake fleet ls` show it
    pub run: String,

    /// The NATS server and the token.
    #[command(flatten)]
    pub nats: NatsArgs,

    /// Its results.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The live page.
    #[command(flatten)]
    pub web: WebArgs,

    /// The history of runs.
    #[command(flatten)]
    pub history: SaveArgs,

    /// What is hidden.
    #[command(flatten)]
    pub redaction: RedactionArgs,
}

/// What happens when an agent is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnLossArg {
    /// The others go on; what it was to send is not sent, and said
    Continue,
    /// From the next second on, the others send what it was to send
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
