//! Scripts of a run on the agents of a fleet: the parcels for them, and the events from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use gake_core::spec::RunSpec;
use gake_fleet::{
    Fleet, FleetError, FleetListener, Orphan, ScriptEvent, ScriptListener, ScriptParcel,
};
use gake_k6::options::K6Options;
use gake_k6::test::Test;
use gake_run::script::{
    ConfiguredScript, LoadedScript, LostSlices, RemoteUsers, ScriptRun, ScriptSettings, SetupResult,
};
use gake_run::{Interrupt, RemoteWorkers, ResolvedRun, RunError};

use super::FleetMaker;
use super::agent_log::AgentLog;
use crate::Console;

/// Variables with this prefix are gake's own, and may hold tokens that agents must not see.
const OWN: &str = "GAKE_";

/// The warning if another process had already started `teardown`, or was about to.
pub const TEARDOWN_STARTED: &str = "the process that had started the run had completed it and begun \
                                 teardown: teardown is not run again, and its samples are not in the \
                                 summary";

/// A loaded script that agents are to run.
#[derive(Debug, Clone)]
pub struct AgentScript<'a> {
    /// The script.
    pub script: &'a LoadedScript,
    /// Its options as given, before scenarios replace the shortcuts.
    pub given: &'a K6Options,
    /// `__ENV` of its users.
    pub environment: &'a [(String, String)],
    /// Names of variables from the command line.
    pub variables: BTreeSet<&'a str>,
    /// The seed of `Math.random`.
    pub seed: Option<u64>,
    /// Whether `console.debug` is logged.
    pub is_verbose: bool,
    /// Whether the run has other scenarios and connections than its options describe.
    pub has_other_load: bool,
    /// How to show the result, for a process that takes over the run.
    pub showing: String,
}

impl<'a> AgentScript<'a> {
    /// A script with the scenarios and connections of a spec.
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

    /// A script that was loaded with `settings` and has the load of its options.
    #[must_use]
    pub fn new(script: &'a ConfiguredScript, settings: &'a ScriptSettings) -> Self {
        Self {
            variables: settings.variables.keys().map(String::as_str).collect(),
            seed: settings.seed,
            has_other_load: false,
            ..Self::of(script)
        }
    }

    fn parcel(&self, run: &ScriptRun) -> Result<ScriptParcel, FleetError> {
        let archive = self.script.archive(self.given, self.travelling_environment());
        let archive = archive.map_err(FleetError::Spec)?;
        let (seed, is_verbose, showing) = (self.seed, self.is_verbose, self.showing.clone());
        let keys = self.has_other_load.then(|| run.keys.clone());
        // Real paths: anonymized ones could make two files one.
        let archive = archive.write_with_paths(0);
        let parcel = ScriptParcel { archive, seed, is_verbose, keys, showing };
        parcel.check_size(None)?;
        Ok(parcel)
    }

    /// The environment without gake's own variables, unless they come from the command line.
    fn travelling_environment(&self) -> BTreeMap<String, String> {
        let travels =
            |name: &String| !name.starts_with(OWN) || self.variables.contains(name.as_str());
        self.environment.iter().filter(|(name, _)| travels(name)).cloned().collect()
    }
}

/// The agents of a run with scripts.
pub struct ScriptAgents<'a> {
    source: AgentSource<'a>,
    prepared: &'a ResolvedRun,
    /// By script.
    lines: Vec<AgentLog>,
    listener: ScriptListener,
    /// Where to describe the agents once they are assembled.
    console: Option<&'a Console>,
    /// Receives events of the agents.
    events: Option<FleetListener>,
    /// Ends the run, or the wait for agents.
    interrupt: Option<Interrupt>,
    lost: Arc<OnceLock<LostSlices>>,
    /// Assembled once `setup` has completed.
    fleet: Option<Fleet>,
}

impl std::fmt::Debug for ScriptAgents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptAgents").field("fleet", &self.fleet).finish_non_exhaustive()
    }
}

enum AgentSource<'a> {
    /// To be found.
    New { maker: &'a FleetMaker, spec: Box<RunSpec>, parcels: Vec<ScriptParcel> },
    /// Another process started them. `None` once this one has taken over.
    Orphan(Option<Box<Orphan>>),
}

impl<'a> ScriptAgents<'a> {
    /// Agents of `maker` for a run of `spec` with these scripts, assembled once each `setup` has
    /// completed.
    ///
    /// # Errors
    /// When agents cannot do the run, or a script is too large to send.
    pub fn new(
        maker: &'a FleetMaker,
        scripts: &[AgentScript<'_>],
        (spec, prepared): (RunSpec, &'a ResolvedRun),
    ) -> Result<Self, FleetError> {
        Fleet::check(&spec)?;
        let parcels = scripts.iter().zip(&prepared.scripts);
        let parcels = parcels.map(|(script, prepared)| script.parcel(&prepared.run));
        let parcels = parcels.collect::<Result<_, _>>()?;
        Self::of(AgentSource::New { maker, spec: Box::new(spec), parcels }, prepared)
    }

    /// The agents of a run whose coordinator has died.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn of_orphan(orphan: Orphan, prepared: &'a ResolvedRun) -> Result<Self, FleetError> {
        Self::of(AgentSource::Orphan(Some(Box::new(orphan))), prepared)
    }

    fn of(source: AgentSource<'a>, prepared: &'a ResolvedRun) -> Result<Self, FleetError> {
        let tests: Vec<_> =
            prepared.scripts.iter().map(|one| Arc::clone(&one.script.test)).collect();
        let lines: Vec<_> = tests
            .iter()
            .map(AgentLog::start)
            .collect::<Result<_, _>>()
            .map_err(|error| FleetError::System(error.to_string()))?;
        Ok(Self {
            source,
            prepared,
            listener: listener(tests, lines.clone()),
            lines,
            console: None,
            events: None,
            interrupt: None,
            lost: Arc::default(),
            fleet: None,
        })
    }

    /// Waits until there are enough agents, before anything runs.
    ///
    /// # Errors
    /// When there are too few that run scripts.
    pub fn find(&self) -> Result<(), FleetError> {
        match &self.source {
            AgentSource::New { maker, .. } => maker.find(),
            AgentSource::Orphan(_) => Ok(()),
        }
    }

    /// Describes the agents on `console` once they are assembled.
    #[must_use]
    pub fn described_on(self, console: Option<&'a Console>) -> Self {
        Self { console, ..self }
    }

    /// Passes events of the agents to `events`. `interrupt` ends the run, and the wait for agents
    /// before it.
    pub fn follow(&mut self, events: Option<FleetListener>, interrupt: &Interrupt) {
        (self.events, self.interrupt) = (events, Some(interrupt.clone()));
    }

    /// Whether another process began the run.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        matches!(self.source, AgentSource::Orphan(_))
    }

    /// Flushes the log and returns the agents; `None` if they were never assembled.
    #[must_use]
    pub fn finish(self) -> Option<Fleet> {
        self.lines.iter().for_each(AgentLog::flush);
        self.fleet
    }
}

impl RemoteUsers for ScriptAgents<'_> {
    fn assemble(&mut self, set_up: &[SetupResult]) -> Result<&mut dyn RemoteWorkers, RunError> {
        let listener = Arc::clone(&self.listener);
        let (fleet, has_journal) = match &mut self.source {
            AgentSource::New { maker, spec, parcels } => {
                let scripts = (parcels.as_slice(), set_up, self.interrupt.as_ref());
                let fleet = maker.assemble_scripts((&**spec, self.prepared), scripts, listener);
                (fleet, maker.keeps_journal())
            }
            AgentSource::Orphan(orphan) => {
                let gone = || RunError::cannot("the agents have been taken over already");
                let orphan = orphan.take().ok_or_else(gone)?;
                let interrupt = self.interrupt.clone().unwrap_or_default();
                (orphan.adopt_script(self.prepared, listener, &interrupt), false)
            }
        };
        let mut fleet = fleet.map_err(RunError::cannot)?;
        if let Some(events) = self.events.take() {
            fleet.set_listener(events);
        }
        if let Some(console) = self.console {
            console.note(&fleet.describe());
            if has_journal {
                console.note(&fleet.describe_journal());
            }
        }
        // Fails only on a second run, and a script runs once.
        let _ = self.lost.set(fleet.lost_slices());
        Ok(self.fleet.insert(fleet))
    }

    fn needs_teardown(&self) -> bool {
        self.fleet.as_ref().is_none_or(|fleet| fleet.left().is_none() && !fleet.was_over())
    }

    fn give_up(&mut self) {
        // Dropping the fleet ends the run of its agents.
        self.fleet = None;
    }

    fn lost(&self) -> LostSlices {
        let lost = Arc::clone(&self.lost);
        Arc::new(move || lost.get().map(|lost| lost()).unwrap_or_default())
    }
}

/// Repeats events of scripts on an agent here: writes their logs, ends or fails their tests.
fn listener(tests: Vec<Arc<Test>>, lines: Vec<AgentLog>) -> ScriptListener {
    Arc::new(move |agent, number, event| {
        let (Some(test), Some(lines)) = (tests.get(number), lines.get(number)) else { return };
        match event {
            ScriptEvent::Line(line) => lines.line(agent, line.into()),
            ScriptEvent::LinesLost(count) => lines.lost(agent, count),
            ScriptEvent::Aborted(reason) => test.abort(reason),
            ScriptEvent::Failed => test.fail(),
        }
    })
}
