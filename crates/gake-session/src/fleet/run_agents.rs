//! The agents of a run: how they are assembled, and what is reported of them.

use std::sync::Arc;

use gake_core::record::AgentRecord;
use gake_core::spec::RunSpec;
use gake_fleet::{Fleet, FleetListener, StoppedBy};
use gake_judge::agent_lines;
use gake_run::script::{PreparedScript, SetupResult};
use gake_run::search::{EachSecond, PreparedTrial};
use gake_run::{Interrupt, PreparedRun, RecordedRun, RunError, RunOptions, SecondUpdate};

use super::{AGENT_LOST, AgentScript, FleetMaker, ScriptAgents, TEARDOWN_STARTED, failure};
use crate::console::Console;
use crate::exit::{Exit, Failure};

/// The agents that do a run.
#[derive(Debug)]
pub enum RunAgents<'a> {
    /// They send the requests of its spec.
    Requests(Box<Fleet>),
    /// They run the users of its script, with what `setup` gave in the process that began the run,
    /// if that was another one.
    Script(Box<ScriptAgents<'a>>, Option<Box<SetupResult>>),
}

impl RunAgents<'_> {
    /// Reports to `report` what happens to them; `interrupt` ends their run.
    pub fn follow(
        &mut self,
        report: Option<impl Fn(&str) + Send + Sync + 'static>,
        interrupt: &Interrupt,
    ) {
        let events =
            report.map(|report| -> FleetListener { Arc::new(move |event| report(&event.text)) });
        match (self, events) {
            (Self::Requests(fleet), Some(events)) => fleet.tell(events),
            (Self::Requests(_), None) => {}
            (Self::Script(agents, _), events) => agents.follow(events, interrupt),
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it cannot be run.
    pub fn run(
        &mut self,
        prepared: &PreparedRun,
        options: RunOptions<'_>,
        each: impl FnMut(&SecondUpdate<'_>) -> Option<String> + Send,
    ) -> Result<RecordedRun, RunError> {
        match self {
            Self::Requests(fleet) => prepared.run_remote(fleet.as_mut(), options, each),
            Self::Script(agents, earlier) => {
                let earlier = earlier.take().map(|set_up| *set_up);
                prepared.run_remote_users((agents.as_mut(), earlier), options, each)
            }
        }
    }

    /// The agents after the run, if it came to them.
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
    /// Whether it is the run of a script that another process began.
    is_resumed: bool,
}

impl EndedAgents {
    /// Deletes the journal of the run, whose result is where it belongs. Blocks.
    pub fn forget(&self) {
        self.fleet.forget();
    }

    /// Whether a signal ended the run, in the process that began it too.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.fleet.stopped_by() == Some(StoppedBy::Interrupt)
    }

    /// What is reported of `teardown` where the process that began the run had come to it.
    #[must_use]
    pub fn teardown_note(&self, prepared: &PreparedRun) -> Option<&'static str> {
        let tears_down =
            |one: &PreparedScript| one.run.teardown.is_some() && one.script.has("teardown");
        let has_torn_down = self.fleet.was_over() && prepared.scripts.iter().any(tears_down);
        has_torn_down.then_some(TEARDOWN_STARTED)
    }

    /// What is reported of the agents after a run that would end with `exit`, and how it ends.
    /// `quiet` leaves out the line about each agent.
    #[must_use]
    pub fn conclude(
        &self,
        (prepared, agents): (&PreparedRun, &[AgentRecord]),
        quiet: bool,
        exit: Exit,
        console: &Console,
    ) -> Exit {
        let fleet = &self.fleet;
        let is_aborted = prepared.scripts.iter().any(|one| one.script.test.aborted().is_some());
        let has_own_reason = is_aborted || exit.code() == Exit::ObjectiveFailed.code();
        // A run that ended early, and not by request, ended by its script or its objectives.
        let is_own_end = self.is_resumed && fleet.stopped_by().is_none() && has_own_reason;
        match is_own_end && fleet.is_stopped() {
            true => exit,
            false => conclude((fleet, agents), quiet, exit, console),
        }
    }
}

/// The agents for a run of `spec`, ready to start; those of `script` are looked for only, since
/// `setup` comes first. `None` when this process does it alone.
///
/// # Errors
/// When there are too few, or one refuses.
pub fn assemble<'a>(
    maker: Option<&'a FleetMaker>,
    (spec, script): (&RunSpec, Option<&AgentScript<'_>>),
    prepared: &'a PreparedRun,
    quiet: bool,
    console: &'a Console,
) -> Result<Option<RunAgents<'a>>, Failure> {
    let Some(maker) = maker else { return Ok(None) };
    if let (Some(script), Some(fired)) = (script, prepared.scripts.first()) {
        let agents = ScriptAgents::new(maker, script, (&fired.run, prepared)).map_err(failure)?;
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
    /// Runs a trial of a search on agents, all of which it needs; `setup` and `teardown` of its
    /// script run here.
    pub(crate) fn run_trial(
        &self,
        of: PreparedTrial<'_>,
        options: RunOptions<'_>,
        each: &mut EachSecond<'_>,
    ) -> Result<RecordedRun, RunError> {
        let PreparedTrial { loaded, prepared, spec, .. } = of;
        let (Some(script), Some(fired)) = (loaded.scripts().next(), prepared.scripts.first())
        else {
            return self.run(&loaded.inlined(spec), prepared, options, each);
        };
        let users = ScriptAgents::new(self, &AgentScript::of(script), (&fired.run, prepared));
        let mut users = users.map_err(RunError::cannot)?;
        let recorded = prepared.run_remote_users((&mut users, None), options, each)?;
        match users.finish().map_or(0, |fleet| fleet.lost()) {
            0 => Ok(recorded),
            _ => Err(RunError::cannot(AGENT_LOST)),
        }
    }
}

/// What is said of the agents after a run that would end with `exit`, and how it ends. With `quiet`,
/// nothing is said of each one.
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
        console.warn("the run was told to stop");
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
    // Users of a closed loop just stop: no count shows that they are missing.
    if fleet.unreplaced() > 0 && exit == Exit::Done {
        console.error("agents were lost: the load was not what was asked for");
        return Exit::Invalid;
    }
    exit
}
