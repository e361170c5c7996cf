//! A script's run on the agents of a fleet: what goes to them, and what comes back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use gake_core::spec::RunSpec;
use gake_fleet::{
    Fleet, FleetError, FleetListener, Orphan, OtherLoad, ScriptEvent, ScriptListener, ScriptParcel,
};
use gake_k6::options::K6Options;
use gake_k6::test::Test;
use gake_run::script::{
    ConfiguredScript, LoadedScript, LostParts, RemoteUsers, ScriptRun, ScriptSettings, SetUp,
};
use gake_run::{Interrupt, Prepared, RemoteWorkers, RunError};

use super::FleetMaker;
use super::agent_lines::AgentLines;
use crate::Console;

/// Names of the environment that begin so are gake's own: its tokens are no agent's business.
const OWN: &str = "GAKE_";

/// What is reported where another process began `teardown`, or was about to.
pub const TORN_DOWN: &str = "the process that had started the run had all of its figures and began \
                             teardown: it is not run again, and what it recorded is not in the \
                             summary";

/// A loaded script that agents are to run.
#[derive(Debug, Clone)]
pub struct AgentScript<'a> {
    /// The script.
    pub script: &'a LoadedScript,
    /// Its options as they were given.
    pub given: &'a K6Options,
    /// What its users see as `__ENV`.
    pub environment: &'a [(String, String)],
    /// The names of variables that the command line adds to it.
    pub variables: BTreeSet<&'a str>,
    /// What `Math.random` begins with.
    pub seed: Option<u64>,
    /// Whether `console.debug` is logged.
    pub is_verbose: bool,
    /// Whether the run's scenarios and connections are not those of its options.
    pub has_other_load: bool,
    /// How its result is shown, for a process that goes on with the run.
    pub showing: String,
}

impl<'a> AgentScript<'a> {
    /// A script whose scenarios and connections are those of a spec.
    #[must_use]
    pub fn of(script: &'a ConfiguredScript) -> Self {
        Self {
            script: &script.script,
            given: &script.given,
            environment: &script.environment,
            variables: BTreeSet::new(),
            seed: None,
            is_verbose: false,
            has_other_load: true,
            showing: String::new(),
        }
    }

    /// A script that was loaded with `settings`, and whose load is that of its options.
    #[must_use]
    pub fn new(script: &'a ConfiguredScript, settings: &'a ScriptSettings) -> Self {
        Self {
            variables: settings.variables.keys().map(String::as_str).collect(),
            seed: settings.seed,
            has_other_load: false,
            ..Self::of(script)
        }
    }

    /// What travels to agents.
    fn parcel(&self, run: &ScriptRun) -> Result<ScriptParcel, FleetError> {
        let archive = self.script.archive(self.given, self.travelling_environment());
        let archive = archive.map_err(FleetError::Spec)?;
        let (seed, is_verbose, showing) = (self.seed, self.is_verbose, self.showing.clone());
        let other_load = self.has_other_load.then(|| OtherLoad::of(run));
        // Paths as they are: two users' files must not become one.
        let archive = archive.write_with_paths(0);
        let parcel = ScriptParcel { archive, seed, is_verbose, other_load, showing };
        parcel.check_size(None)?;
        Ok(parcel)
    }

    /// The environment without gake's own variables, unless the command line gives them.
    fn travelling_environment(&self) -> BTreeMap<String, String> {
        let travels =
            |name: &String| !name.starts_with(OWN) || self.variables.contains(name.as_str());
        self.environment.iter().filter(|(name, _)| travels(name)).cloned().collect()
    }
}

/// The agents of a script's run.
pub struct ScriptAgents<'a> {
    origin: Origin<'a>,
    prepared: &'a Prepared,
    lines: AgentLines,
    listener: ScriptListener,
    /// Where the agents are described once they are there.
    console: Option<&'a Console>,
    /// Hears what happens to the agents.
    events: Option<FleetListener>,
    /// What may end the run, or the wait for agents.
    interrupt: Option<Interrupt>,
    lost: Arc<OnceLock<LostParts>>,
    /// They are there once `setup` has completed.
    fleet: Option<Fleet>,
}

impl std::fmt::Debug for ScriptAgents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptAgents").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

/// Where agents come from.
enum Origin<'a> {
    /// They are to be found.
    New { maker: &'a FleetMaker, spec: &'a RunSpec, parcel: Box<ScriptParcel> },
    /// Another process started them; until this one goes on with them.
    Orphan(Option<Box<Orphan>>),
}

impl<'a> ScriptAgents<'a> {
    /// Agents of `maker`, which are looked for once `setup` has completed.
    ///
    /// # Errors
    /// When agents cannot do the run, or the script cannot travel.
    pub fn new(
        maker: &'a FleetMaker,
        script: &AgentScript<'_>,
        (run, prepared): (&'a ScriptRun, &'a Prepared),
    ) -> Result<Self, FleetError> {
        Fleet::check(&run.spec)?;
        let test = &script.script.test;
        let lines =
            AgentLines::start(test).map_err(|error| FleetError::System(error.to_string()))?;
        let parcel = Box::new(script.parcel(run)?);
        Ok(Self::of(Origin::New { maker, spec: &run.spec, parcel }, lines, test, prepared))
    }

    /// The agents of a run whose coordinator is gone.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn of_orphan(
        orphan: Orphan,
        test: &Arc<Test>,
        prepared: &'a Prepared,
    ) -> Result<Self, FleetError> {
        let lines =
            AgentLines::start(test).map_err(|error| FleetError::System(error.to_string()))?;
        let origin = Origin::Orphan(Some(Box::new(orphan)));
        Ok(Self::of(origin, lines, test, prepared))
    }

    fn of(origin: Origin<'a>, lines: AgentLines, test: &Arc<Test>, prepared: &'a Prepared) -> Self {
        Self {
            origin,
            prepared,
            listener: listener(test, lines.clone()),
            lines,
            console: None,
            events: None,
            interrupt: None,
            lost: Arc::default(),
            fleet: None,
        }
    }

    /// Waits until there are enough agents, before anything runs.
    ///
    /// # Errors
    /// When there are too few that run scripts.
    pub fn find(&self) -> Result<(), FleetError> {
        match &self.origin {
            Origin::New { maker, .. } => maker.find(),
            Origin::Orphan(_) => Ok(()),
        }
    }

    /// The same, described on `console` once they are there.
    #[must_use]
    pub fn described_on(self, console: Option<&'a Console>) -> Self {
        Self { console, ..self }
    }

    /// Reports to `events` what happens to the agents. `interrupt` ends the run, and the wait for
    /// agents before it.
    pub fn follow(&mut self, events: Option<FleetListener>, interrupt: &Interrupt) {
        (self.events, self.interrupt) = (events, Some(interrupt.clone()));
    }

    /// Whether another process began the run.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        matches!(self.origin, Origin::Orphan(_))
    }

    /// The agents after the run. Their log is written then.
    #[must_use]
    pub fn finish(self) -> Option<Fleet> {
        self.lines.flush();
        self.fleet
    }
}

impl RemoteUsers for ScriptAgents<'_> {
    fn assemble(&mut self, set_up: &SetUp) -> Result<&mut dyn RemoteWorkers, RunError> {
        let listener = Arc::clone(&self.listener);
        let (fleet, has_journal) = match &mut self.origin {
            Origin::New { maker, spec, parcel } => {
                let script = (&**parcel, set_up, self.interrupt.as_ref());
                let fleet = maker.assemble_script((*spec, self.prepared), script, listener);
                (fleet, maker.keeps_journal())
            }
            Origin::Orphan(orphan) => {
                let gone = || RunError::cannot("the agents have been taken over already");
                let orphan = orphan.take().ok_or_else(gone)?;
                let interrupt = self.interrupt.clone().unwrap_or_default();
                (orphan.adopt_script(self.prepared, listener, &interrupt), false)
            }
        };
        let mut fleet = fleet.map_err(RunError::cannot)?;
        if let Some(events) = self.events.take() {
            fleet.tell(events);
        }
        if let Some(console) = self.console {
            console.note(&fleet.describe());
            if has_journal {
                console.note(&fleet.describe_journal());
            }
        }
        // Set once: a script runs once.
        let _ = self.lost.set(fleet.lost_parts());
        Ok(self.fleet.insert(fleet))
    }

    fn needs_teardown(&self) -> bool {
        self.fleet.as_ref().is_none_or(|fleet| fleet.left().is_none() && !fleet.was_over())
    }

    fn give_up(&mut self) {
        // Dropped, the fleet ends what its agents do.
        self.fleet = None;
    }

    fn lost(&self) -> LostParts {
        let lost = Arc::clone(&self.lost);
        Arc::new(move || lost.get().map(|lost| lost()).unwrap_or_default())
    }
}

/// Lets what a script does on an agent happen here: its log is written, and it ends the run of all.
fn listener(test: &Arc<Test>, lines: AgentLines) -> ScriptListener {
    let test = Arc::clone(test);
    Arc::new(move |agent, event| match event {
        ScriptEvent::Line(line) => lines.line(agent, line.into()),
        ScriptEvent::LinesLost(count) => lines.lost(agent, count),
        ScriptEvent::Aborted(reason) => test.abort(reason),
        ScriptEvent::Failed => test.fail(),
    })
}
