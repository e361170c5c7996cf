//! The agents of a run: assembling them, following them, and their part of the exit code.

use std::sync::Arc;

use gake_core::record::AgentRecord;
use gake_core::spec::RunSpec;
use gake_fleet::{Fleet, FleetListener, StoppedBy};
use gake_judge::agent_lines;
use gake_run::script::{PreparedScript, SetupResult};
use gake_run::search::PreparedTrial;
use gake_run::{EachSecond, Interrupt, RecordedRun, ResolvedRun, RunError, RunOptions};

use super::{AGENT_LOST, AgentScript, FleetMaker, ScriptAgents, TEARDOWN_STARTED, failure};
use crate::console::Console;
use crate::exit::{Exit, Failure};

/// The agents of a run.
#[derive(Debug)]
pub enum RunAgents<'a> {
    /// They send the requests of a spec.
    Requests(Box<Fleet>),
    /// They run the users of a script. If another process began the run: the result of its `setup`.
    Script(Box<ScriptAgents<'a>>, Option<Box<SetupResult>>),
}

impl RunAgents<'_> {
    /// Passes events of the agents to `report`; `interrupt` ends the run.
    pub fn follow(
        &mut self,
        report: Option<impl Fn(&str) + Send + Sync + 'static>,
        interrupt: &Interrupt,
    ) {
        let events =
            report.map(|report| -> FleetListener { Arc::new(move |event| report(&event.text)) });
        match (self, events) {
            (Self::Requests(fleet), Some(events)) => fleet.set_listener(events),
            (Self::Requests(_), None) => {}
            (Self::Script(agents, _), events) => agents.follow(events, interrupt),
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn run(
        &mut self,
        prepared: &ResolvedRun,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        match self {
            Self::Requests(fleet) => prepared.run_remote(fleet.as_mut(), options, each),
            Self::Script(agents, earlier) => {
                let earlier = earlier.take().map(|set_up| *set_up);
                prepared.run_remote_users((agents.as_mut(), earlier), options, each)
            }
        }
    }

    /// The agents after the run; `None` if they were never assembled.
    #[must_use]
    pub fn finish(self) -> Option<EndedAgents> {
        let (fleet, is_resumed) = match self {
            Self::Requests(fleet) => (*fleet, false),
            Self::Script(agents, _) => {
                let is_resumed = agents.is_resumed();
                (agents.finish()?, is_resumed)
            }
        };
        Some(EndedAgents { fleet, is_resumed })
    }
}

/// The agents of a run that has ended.
#[derive(Debug)]
pub struct EndedAgents {
    /// The agents.
    pub fleet: Fleet,
    /// Whether another process began the run, which is that of a script.
    is_resumed: bool,
}

impl EndedAgents {
    /// Deletes the journal of the run once the result is stored. Blocks.
    pub fn forget(&self) {
        self.fleet.forget();
    }

    /// Whether a signal ended the run, here or in the process that began it.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.fleet.stopped_by() == Some(StoppedBy::Interrupt)
    }

    /// A warning if the process that began the run had already started `teardown`.
    #[must_use]
    pub fn teardown_note(&self, prepared: &ResolvedRun) -> Option<&'static str> {
        let tears_down =
            |one: &PreparedScript| one.run.teardown.is_some() && one.script.has("teardown");
        let has_torn_down = self.fleet.was_over() && prepared.scripts.iter().any(tears_down);
        has_torn_down.then_some(TEARDOWN_STARTED)
    }

    /// Reports the agents, and returns the exit of a run that would otherwise end with `exit`.
    /// `quiet` omits the line about each agent.
    #[must_use]
    pub fn conclude(
        &self,
        (prepared, agents): (&ResolvedRun, &[AgentRecord]),
        quiet: bool,
        exit: Exit,
        console: &Console,
    ) -> Exit {
        let fleet = &self.fleet;
        let is_aborted = prepared.scripts.iter().any(|one| one.script.test.aborted().is_some());
        let has_own_reason = is_aborted || exit.code() == Exit::ObjectiveFailed.code();
        // A run that ended early without a request was ended by its script or objectives.
        let is_own_end = self.is_resumed && fleet.stopped_by().is_none() && has_own_reason;
        match is_own_end && fleet.is_stopped() {
            true => exit,
            false => conclude((fleet, agents), quiet, exit, console),
        }
    }
}

/// Assembles the agents for a run of `spec`. With scripts it only checks that there are enough, since
/// `setup` comes first. `None` without a fleet.
///
/// # Errors
/// When there are too few, or one refuses.
pub fn assemble<'a>(
    maker: Option<&'a FleetMaker>,
    (spec, scripts): (&RunSpec, &[AgentScript<'_>]),
    prepared: &'a ResolvedRun,
    quiet: bool,
    console: &'a Console,
) -> Result<Option<RunAgents<'a>>, Failure> {
    let Some(maker) = maker else { return Ok(None) };
    if !scripts.is_empty() {
        let agents = ScriptAgents::new(maker, scripts, (spec.clone(), prepared));
        let agents = agents.map_err(failure)?;
        agents.find().map_err(failure)?;
        let agents = agents.described_on((!quiet).then_some(console));
        return Ok(Some(RunAgents::Script(Box::new(agents), None)));
    }
    let fleet = maker.assemble(spec, prepared).map_err(failure)?;
    if !quiet {
        console.note(&fleet.describe());
        if maker.keeps_journal() {
            console.note(&fleet.describe_journal());
        }
    }
    Ok(Some(RunAgents::Requests(Box::new(fleet))))
}

impl FleetMaker {
    /// Runs a trial of a search on agents, none of which may be lost; `setup` and `teardown` of its
    /// script run here.
    pub(crate) fn run_trial(
        &self,
        of: PreparedTrial<'_>,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let PreparedTrial { loaded, prepared, spec, .. } = of;
        let spec = loaded.inlined(spec);
        let scripts: Vec<_> = loaded.scripts().map(AgentScript::of).collect();
        if scripts.is_empty() {
            return self.run(&spec, prepared, options, each);
        }
        let users = ScriptAgents::new(self, &scripts, (spec, prepared));
        let mut users = users.map_err(RunError::cannot)?;
        let recorded = prepared.run_remote_users((&mut users, None), options, each)?;
        match users.finish().map_or(0, |fleet| fleet.lost()) {
            0 => Ok(recorded),
            _ => Err(RunError::cannot(AGENT_LOST)),
        }
    }
}

/// Reports the agents, and returns the exit. `quiet` omits the line about each agent.
fn conclude(
    (fleet, agents): (&Fleet, &[AgentRecord]),
    quiet: bool,
    exit: Exit,
    console: &Console,
) -> Exit {
    if !quiet {
        agent_lines(agents).for_each(|line| console.note(&line));
    }
    if fleet.is_stopped() {
        console.warn("the run was stopped by request");
        return Exit::Interrupted;
    }
    if let Some(why) = fleet.left() {
        console.error(&format!("these figures end early: {why}"));
        return Exit::CouldNot;
    }
    if let Some(why) = fleet.aborted() {
        console.error(&format!("the run was ended: {why}"));
        return Exit::CouldNot;
    }
    // Lost users of a closed loop leave no trace in the counts.
    if fleet.unreplaced() > 0 && exit == Exit::Done {
        console.error("agents were lost: the load was not what was asked for");
        return Exit::Invalid;
    }
    exit
}
