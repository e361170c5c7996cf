//! The fleet that a command uses: its NATS server and token, from flags and environment.

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
use gake_run::{Interrupt, PreparedRun, RecordedRun, RunError, RunOptions, SecondUpdate};
use gake_text::duration::format_duration;
use local::LocalFleet;

use crate::exit::Failure;
use crate::options::{FleetArgs, NatsArgs, OnLossArg};
pub use run_agents::{EndedAgents, RunAgents, assemble};
pub use script_agents::{AgentScript, ScriptAgents, TEARDOWN_STARTED};
pub use unsupported::unsupported;

/// Bytes that are read of a file with a token, a key or credentials.
const SECRET_MAX: u64 = 16_384;

/// How long agents are waited for.
const WAIT: Duration = Duration::from_secs(5);

/// How long agents go on without their coordinator.
const ALONE: Duration = Duration::from_secs(20);

/// What is said where a figure is worth nothing without every agent.
pub const AGENT_LOST: &str = "an agent was lost, and the figures need all of them";

/// Makes the fleets of a command.
#[derive(Debug)]
pub struct FleetMaker {
    settings: FleetSettings,
    /// The processes that were started for the command.
    _local: Option<LocalFleet>,
}

impl FleetMaker {
    /// What makes the fleets that are asked for; `None` when this process does it alone. Starts the
    /// agents of `--local`.
    ///
    /// # Errors
    /// When the NATS server or the token is missing, or an agent cannot be started.
    pub fn of(args: &FleetArgs) -> Result<Option<Self>, Failure> {
        let Some(agents) = args.agents.or(args.local) else {
            return match args.is_given() {
                true => Err(Failure::usage("how many agents? say it with --agents N or --local N")),
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

    /// The same with agents that run scripts.
    pub fn of_scripts(self) -> Self {
        self.for_scripts(true)
    }

    /// The same with agents that run scripts, if those are `needed`.
    pub fn for_scripts(mut self, needed: bool) -> Self {
        self.settings.needs_scripts = needed;
        self
    }

    /// The same with a wait for agents that `interrupt` ends.
    pub fn interrupted_by(mut self, interrupt: &Interrupt) -> Self {
        self.settings.interrupt = Some(interrupt.clone());
        self
    }

    /// How many agents a fleet has.
    pub fn agents(&self) -> usize {
        self.settings.agents
    }

    /// The same for runs that are worth nothing without the process that asked for them.
    pub fn without_journal(mut self) -> Self {
        self.settings.keeps_journal = false;
        // Nobody can take its agents over.
        self.settings.alone_max = self.settings.alone_max.min(ALONE);
        self
    }

    /// Looks for the agents of a run, and leaves them alone.
    ///
    /// # Errors
    /// When there are too few.
    pub fn find(&self) -> Result<(), FleetError> {
        Fleet::find(&self.settings)
    }

    /// Runs it to its end on agents, all of which it needs; each second goes to `each`, which may
    /// end it.
    ///
    /// # Errors
    /// When it cannot be run, or an agent is lost.
    pub fn run(
        &self,
        spec: &RunSpec,
        prepared: &PreparedRun,
        options: RunOptions<'_>,
        each: impl FnMut(&SecondUpdate<'_>) -> Option<String> + Send,
    ) -> Result<RecordedRun, RunError> {
        let mut fleet = self.assemble(spec, prepared).map_err(RunError::cannot)?;
        let recorded = prepared.run_remote(&mut fleet, options, each)?;
        match fleet.lost() {
            0 => Ok(recorded),
            _ => Err(RunError::cannot(AGENT_LOST)),
        }
    }

    /// The agents for a script's run, ready to start, as [`Fleet::assemble_script`] has them.
    /// `interrupt` ends the wait for them.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble).
    pub fn assemble_script(
        &self,
        of: (&RunSpec, &PreparedRun),
        (parcel, set_up, interrupt): (&ScriptParcel, &SetupResult, Option<&Interrupt>),
        listener: ScriptListener,
    ) -> Result<Fleet, FleetError> {
        let interrupt = interrupt.or(self.settings.interrupt.as_ref()).cloned();
        let settings = FleetSettings { interrupt, ..self.settings.clone() };
        self.attachable(Fleet::assemble_script(settings, of, (parcel, set_up), listener)?)
    }

    /// Whether another process may go on with its runs.
    pub fn keeps_journal(&self) -> bool {
        self.settings.keeps_journal
    }

    /// The agents for a run, ready to start.
    ///
    /// # Errors
    /// When there are too few, one refuses, or they were to wait for another process and there is
    /// no journal from which it could go on.
    pub fn assemble(&self, spec: &RunSpec, prepared: &PreparedRun) -> Result<Fleet, FleetError> {
        self.attachable(Fleet::assemble(self.settings.clone(), spec, prepared)?)
    }

    /// The same agents, unless they were to wait for another process and there is no journal from
    /// which it could go on.
    fn attachable(&self, fleet: Fleet) -> Result<Fleet, FleetError> {
        let is_long = self.settings.keeps_journal && self.settings.alone_max > ALONE;
        match fleet.why_no_journal().filter(|_| is_long) {
            // Dropped, the fleet calls its agents off.
            Some(why) => Err(FleetError::System(format!(
                "--attach-within is {} at most without a journal of the run: {why}",
                format_duration(ALONE)
            ))),
            None => Ok(fleet),
        }
    }
}

/// The NATS server and the token.
///
/// # Errors
/// When one of them is missing or cannot be read.
pub fn settings(args: &NatsArgs) -> Result<(NatsSettings, FleetToken), Failure> {
    let missing = "which NATS server? give it by --nats URL or in the variable GAKE_NATS";
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
                "a fleet needs a token: give it by --fleet-token-file FILE or in the variable \
                 GAKE_FLEET_TOKEN",
            )
        })?,
    };
    Ok((nats, FleetToken::new(&secret).map_err(failure)?))
}

/// The key of NATS, when one is given.
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
            "--nats-nkey {path}: it has no seed of a user's key, a line with SU and 56 more \
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

/// What a fleet cannot do, as an error of the command line.
pub fn failure(error: FleetError) -> Failure {
    match error {
        FleetError::Spec(_) | FleetError::Token(_) => Failure::usage(error),
        error => Failure::could_not(error),
    }
}
