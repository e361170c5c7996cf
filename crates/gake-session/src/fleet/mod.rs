//! The fleet of a command: its NATS server and token, from flags and environment.

mod agent_log;
mod local;
pub mod manifest;
mod run_agents;
mod script_agents;
mod unsupported;

use std::path::Path;
use std::time::Duration;

use gake_core::spec::RunSpec;
use gake_fleet::{
    Fleet, FleetError, FleetSettings, FleetToken, NatsKey, NatsSettings, OnLoss, ScriptListener,
    ScriptParcel,
};
use gake_run::script::SetupResult;
use gake_run::{EachSecond, Interrupt, RecordedRun, ResolvedRun, RunError, RunOptions};
use gake_text::duration::format_duration;
use local::LocalFleet;

use crate::exit::Failure;
use crate::options::{FleetArgs, NatsArgs, OnLossArg};
pub use run_agents::{EndedAgents, RunAgents, assemble};
pub use script_agents::{AgentScript, ScriptAgents, TEARDOWN_STARTED};
pub use unsupported::unsupported;

/// Maximum size of a file with a token, a key or credentials, in bytes.
const SECRET_MAX: u64 = 16_384;

/// How long to wait for agents.
const WAIT: Duration = Duration::from_secs(5);

/// How long agents continue without a coordinator.
const ALONE: Duration = Duration::from_secs(20);

/// The error where the figures of all agents are needed.
pub const AGENT_LOST: &str = "an agent was lost, and the result needs all of them";

/// Assembles the fleets of a command.
#[derive(Debug)]
pub struct FleetMaker {
    settings: FleetSettings,
    /// Processes of `--local`.
    _local: Option<LocalFleet>,
}

impl FleetMaker {
    /// From the flags of a command; `None` if they name no fleet. Starts the agents of `--local`.
    ///
    /// # Errors
    /// When the NATS server or the token is missing, or an agent cannot be started.
    pub fn of(args: &FleetArgs) -> Result<Option<Self>, Failure> {
        let Some(agents) = args.agents.or(args.local) else {
            return match args.is_given() {
                true => Err(Failure::usage("how many agents? give --agents N or --local N")),
                false => Ok(None),
            };
        };
        let local = args.local.map(LocalFleet::start).transpose()?;
        let (nats, token) = match &local {
            Some(local) => (local.nats.clone(), local.token.clone()),
            None => settings(&args.nats)?,
        };
        let settings = FleetSettings {
            nats,
            token,
            agents,
            filter: args.filter.clone(),
            needs_scripts: false,
            on_loss: match args.on_loss {
                Some(OnLossArg::Abort) => OnLoss::Abort,
                Some(OnLossArg::Redistribute) | None => OnLoss::Redistribute,
                Some(OnLossArg::Continue) => OnLoss::Continue,
            },
            version: env!("CARGO_PKG_VERSION").to_owned(),
            wait: args.agents_wait.unwrap_or(WAIT),
            interrupt: None,
            alone_max: args.attach_within.unwrap_or(ALONE),
            keeps_journal: true,
        };
        let is_local = local.is_some();
        if is_local && args.attach_within.is_some_and(|within| within > ALONE) {
            return Err(Failure::usage(
                "--attach-within: the agents of --local end with this process",
            ));
        }
        let maker = Self { settings, _local: local };
        // The agents of a local fleet end with this process.
        Ok(Some(if is_local { maker.without_journal() } else { maker }))
    }

    /// Requires agents that run scripts.
    pub fn of_scripts(self) -> Self {
        self.for_scripts(true)
    }

    /// Requires agents that run scripts if `needed`.
    pub fn for_scripts(mut self, needed: bool) -> Self {
        self.settings.needs_scripts = needed;
        self
    }

    /// Lets `interrupt` end the wait for agents.
    pub fn interrupted_by(mut self, interrupt: &Interrupt) -> Self {
        self.settings.interrupt = Some(interrupt.clone());
        self
    }

    /// Number of agents of each fleet.
    pub fn agents(&self) -> usize {
        self.settings.agents
    }

    /// Keeps no journal: for runs whose result is lost with this process.
    pub fn without_journal(mut self) -> Self {
        self.settings.keeps_journal = false;
        // Without a journal no other process can take over.
        self.settings.alone_max = self.settings.alone_max.min(ALONE);
        self
    }

    /// Checks that enough agents are available.
    ///
    /// # Errors
    /// When there are too few.
    pub fn find(&self) -> Result<(), FleetError> {
        Fleet::find(&self.settings)
    }

    /// Runs to the end on agents, none of which may be lost; `each` sees each second and may return
    /// a reason to end the run.
    ///
    /// # Errors
    /// When it cannot be run, or an agent is lost.
    pub fn run(
        &self,
        spec: &RunSpec,
        prepared: &ResolvedRun,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let mut fleet = self.assemble(spec, prepared).map_err(RunError::cannot)?;
        let recorded = prepared.run_remote(&mut fleet, options, each)?;
        match fleet.lost() {
            0 => Ok(recorded),
            _ => Err(RunError::cannot(AGENT_LOST)),
        }
    }

    /// Assembles the agents for a run with scripts, as [`Fleet::assemble_scripts`] does. `interrupt`
    /// ends the wait for them.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble).
    pub fn assemble_scripts(
        &self,
        of: (&RunSpec, &ResolvedRun),
        (parcels, set_up, interrupt): (&[ScriptParcel], &[SetupResult], Option<&Interrupt>),
        listener: ScriptListener,
    ) -> Result<Fleet, FleetError> {
        let interrupt = interrupt.or(self.settings.interrupt.as_ref()).cloned();
        let settings = FleetSettings { interrupt, ..self.settings.clone() };
        self.attachable(Fleet::assemble_scripts(settings, of, (parcels, set_up), listener)?)
    }

    /// Whether another process may continue its runs.
    pub fn keeps_journal(&self) -> bool {
        self.settings.keeps_journal
    }

    /// Assembles the agents for a run, ready to start.
    ///
    /// # Errors
    /// When there are too few, one refuses, or `--attach-within` needs a journal and there is none.
    pub fn assemble(&self, spec: &RunSpec, prepared: &ResolvedRun) -> Result<Fleet, FleetError> {
        self.attachable(Fleet::assemble(self.settings.clone(), spec, prepared)?)
    }

    /// Refuses a long `--attach-within` for a fleet without a journal.
    fn attachable(&self, fleet: Fleet) -> Result<Fleet, FleetError> {
        let is_long = self.settings.keeps_journal && self.settings.alone_max > ALONE;
        match fleet.why_no_journal().filter(|_| is_long) {
            // Dropping the fleet releases its agents.
            Some(why) => Err(FleetError::System(format!(
                "--attach-within is {} at most without a journal of the run: {why}",
                format_duration(ALONE)
            ))),
            None => Ok(fleet),
        }
    }
}

/// The NATS server and the token, from flags and environment.
///
/// # Errors
/// When one of them is missing or cannot be read.
pub fn settings(args: &NatsArgs) -> Result<(NatsSettings, FleetToken), Failure> {
    let missing = "which NATS server? give --nats URL or the variable GAKE_NATS";
    let url = args.nats.clone().or_else(|| variable("GAKE_NATS"));
    let nats = NatsSettings {
        url: url.ok_or_else(|| Failure::usage(missing))?,
        ca_certificates: args.nats_ca.clone(),
        identity: args.nats_cert.clone().zip(args.nats_key.clone()),
        key: key(args)?,
    };
    let secret = match &args.fleet_token_file {
        Some(path) => read(path, "token")?,
        None => variable("GAKE_FLEET_TOKEN").ok_or_else(|| {
            Failure::usage(
                "a fleet needs a token: give --fleet-token-file FILE or the variable \
                 GAKE_FLEET_TOKEN",
            )
        })?,
    };
    Ok((nats, FleetToken::new(&secret).map_err(failure)?))
}

fn key(args: &NatsArgs) -> Result<Option<NatsKey>, Failure> {
    if let Some(path) = &args.nats_creds {
        return Ok(Some(NatsKey::Credentials(read(path, "credentials")?)));
    }
    let Some(path) = &args.nats_nkey else { return Ok(None) };
    let text = read(path, "nkey")?;
    // `nk -gen user -pubout` writes the public key on a second line.
    let seed = text.lines().map(str::trim).find(|line| NatsKey::is_seed(line));
    let seed = seed.ok_or_else(|| {
        let path = path.display();
        Failure::usage(format!(
            "--nats-nkey {path}: no seed of a user key found: a line with SU and 56 more \
             characters, as `nk -gen user` writes it"
        ))
    })?;
    Ok(Some(NatsKey::Seed(seed.to_owned())))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn read(path: &Path, what: &'static str) -> Result<String, Failure> {
    let bytes = gake_files::read(path, what, SECRET_MAX).map_err(Failure::could_not)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("the {what} in {} is not UTF-8", path.display())))
}

/// An error of a fleet as a failure of the command.
pub fn failure(error: FleetError) -> Failure {
    match error {
        FleetError::Spec(_) | FleetError::Token(_) => Failure::usage(error),
        error => Failure::could_not(error),
    }
}
