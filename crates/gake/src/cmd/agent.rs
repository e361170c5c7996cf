//! `gake agent`: a process that does slices of runs.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use gake_fleet::{Agent, AgentEvent, AgentLimits};

use crate::cli::AgentArgs;
use crate::console::Console;
use crate::exit::{Exit, Failure};
use crate::personality::k6::agents::ArchivedScripts;
use crate::spec::RecordedTraffic;
use crate::{descriptors, fleet, origin, parent, signals};

/// Waits for runs until SIGINT or SIGTERM.
///
/// # Errors
/// When the NATS server cannot be used.
pub fn run(args: &AgentArgs, console: &Console) -> Result<Exit, Failure> {
    if let Some(parent) = args.parent {
        parent::end_with(parent)?;
    }
    if args.serve_nats {
        return Err(serve_nats());
    }
    descriptors::raise();
    let ended = signals::receive().map_err(Failure::signals)?;
    let (nats, token) = fleet::settings(&args.nats)?;
    if args.allow.is_empty() {
        console.warn("it may load nothing: name its targets with --allow");
    }
    let agent = Agent {
        name: args.name.clone().unwrap_or_else(default_name),
        host: origin::host(),
        tags: args.tags.iter().cloned().collect::<BTreeMap<_, _>>(),
        cores: args.cores,
        sources: args.sources.clone(),
        recordings: Some(Arc::new(RecordedTraffic)),
        scripts: args.scripts.then(|| Arc::new(ArchivedScripts) as _),
        limits: AgentLimits {
            allow: args.allow.clone(),
            max_rate: args.max_rate,
            max_connections: args.max_connections,
            max_users: Some(args.max_users),
            max_duration: args.max_duration,
        },
        nats,
        token,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let tell = |event: AgentEvent| match event {
        AgentEvent::Refused(_) | AgentEvent::GivenUp(_) => console.warn(&event.to_string()),
        _ if args.quiet => {}
        event => console.note(&event.to_string()),
    };
    agent.serve(&ended, tell).map_err(fleet::failure)?;
    Ok(Exit::Done)
}

/// Becomes a NATS server that is configured by standard input, and ends with the parent of this
/// process; why it cannot.
fn serve_nats() -> Failure {
    let error = Command::new("nats-server").args(["-c", "/dev/stdin"]).exec();
    Failure::could_not(format!("nats-server: {error}"))
}

fn default_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "agent" } else { name.trim() };
    format!("{name}-{}", std::process::id())
}
