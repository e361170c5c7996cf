//! `gake agent`: a process that executes slices of runs.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use gake_fleet::{Agent, AgentEvent, AgentLimits, AgentWeight};
use gake_run::SliceLog;

use crate::cli::{AgentArgs, WeightArg};
use crate::cmd::doctor;
use gake_session::Console;
use gake_session::redaction::redactor;
use gake_session::{Exit, Failure};

use crate::parent;
use gake_session::recording::RecordedTraffic;
use gake_session::{descriptors, fleet, origin, signals};

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
    if let Some(log) = &args.log {
        // Invalid names are reported at the start, not with the first run.
        SliceLog::create(log).map_err(|error| gake_session::spec_error::failure(&error))?;
    }
    let agent = Agent {
        name: args.name.clone().unwrap_or_else(default_name),
        host: origin::host(),
        tags: args.tags.iter().cloned().collect::<BTreeMap<_, _>>(),
        cores: args.cores,
        weight: weight(args, console)?,
        sources: args.sources.clone(),
        recordings: Some(Arc::new(RecordedTraffic)),
        scripts: args.scripts,
        limits: AgentLimits {
            allow: args.allow.clone(),
            max_rate: args.max_rate,
            max_connections: args.max_connections,
            max_users: Some(args.max_users),
            max_duration: args.max_duration,
        },
        log: args.log.clone(),
        redactor: redactor(&args.redaction, console)?,
        nats,
        token,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let tell = |event: AgentEvent| match event {
        AgentEvent::Refused(_)
        | AgentEvent::Aborted(_)
        | AgentEvent::Disconnected
        | AgentEvent::LogIncomplete(_) => {
            console.warn(&event.to_string());
        }
        _ if args.quiet => {}
        event => console.note(&event.to_string()),
    };
    agent.serve(&ended, tell).map_err(fleet::failure)?;
    Ok(Exit::Done)
}

/// How long the speed of a core is measured.
const MEASURED: Duration = Duration::from_millis(500);

/// The agent's share of a run: with `auto`, hundreds of requests a second for each core.
fn weight(args: &AgentArgs, console: &Console) -> Result<AgentWeight, Failure> {
    if let WeightArg::Given(weight) = args.weight {
        return Ok(AgentWeight::Fixed(weight));
    }
    let rate = doctor::rate_of_core(MEASURED).map_err(|why| {
        Failure::could_not(format!("--weight auto: this machine could not be measured: {why}"))
    })?;
    if !args.quiet {
        console.note(&format!("a core of this machine sends {rate:.0} requests a second"));
    }
    Ok(AgentWeight::PerCore((rate / 100.0).round().max(1.0) as u32))
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
