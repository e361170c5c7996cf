//! The flags of `gake fleet`.

use clap::{Args, Subcommand};
use gake_session::options::{AttachArgs, ManifestArgs, NatsArgs};

/// Look at a fleet, end its runs.
#[derive(Debug, Args)]
pub struct FleetCommandArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: FleetCommand,
}

/// What to do with a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// List the agents at a NATS server: name, free or the id of its run, cores, version, tags,
    /// machine
    Ls {
        #[command(flatten)]
        nats: NatsArgs,
    },
    /// End a run: no new arrivals, and its coordinator shows what there is
    Stop {
        /// Its id, as `gake run` and `gake fleet ls` show it
        run: String,

        /// End it at once: what is in flight is cut
        #[arg(long)]
        now: bool,

        #[command(flatten)]
        nats: NatsArgs,
    },
    /// Go on with a run whose coordinator died: its agents have its load, JetStream its figures
    Attach(Box<AttachArgs>),
    /// Print a fleet on Kubernetes for `kubectl apply -f -`: agents as an Indexed Job, NATS with
    /// JetStream, accounts, roles, limits
    Manifest(ManifestArgs),
    /// Show the last events of agents: runs taken, refused, done, given up
    Logs {
        /// Names of agents (default: all)
        #[arg(value_name = "AGENT")]
        agents: Vec<String>,

        #[command(flatten)]
        nats: NatsArgs,
    },
}
