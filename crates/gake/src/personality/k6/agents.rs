//! A script's run on the agents of a fleet: what goes to them, and what comes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use gake_core::spec::RunSpec;
use gake_fleet::{Fleet, Orphan, OtherLoad, ScriptEvent, ScriptListener, ScriptParcel};
use gake_k6::options::{Executor, Options};
use gake_k6::test::{LogLevel, LogLine, ScriptLog, Test};
use gake_run::script::{
    LoadedScript, LostParts, RemoteUsers, ScriptArchives, ScriptRun, ScriptSource, SetUp,
};
use gake_run::{Interrupt, Prepared, RemoteWorkers, RunError};

use super::agent_lines::AgentLines;
use super::archive::pack;
use super::flags::RunFlags;
use super::load::load_source;
use gake_session::Console;
use gake_session::fleet::FleetMaker;

/// Names of the environment that begin so are gake's own: its tokens are no agent's business.
const OWN: &str = "GAKE_";

/// Scripts that come to an agent in archives.
#[derive(Debug)]
pub struct ArchivedScripts;

impl ScriptArchives for ArchivedScripts {
    fn load(
        &self,
        archive: &[u8],
        seed: Option<u64>,
        log: ScriptLog,
    ) -> Result<(LoadedScript, ScriptRun), String> {
        let source = ScriptSource::of_archive(archive).map_err(|error| error.to_string())?;
        let flags = RunFlags::read(&["archive.tar".to_owned()])?;
        let mut flags = flags.ok_or("a script has no options")?;
        flags.seed = seed;
        // What is wrong with options, and what the script says at its first look, the coordinator
        // has told already.
        let is_loaded = Arc::new(AtomicBool::new(false));
        let is_told = Arc::clone(&is_loaded);
        let log: ScriptLog = Arc::new(move |line: &LogLine| {
            if is_told.load(Relaxed) {
                log(line);
            }
        });
        // Nothing of this machine's environment.
        let loaded = load_source(source, &flags, &BTreeMap::new(), log);
        let loaded = loaded.map_err(|refused| refused.why)?;
        is_loaded.store(true, Relaxed);
        Ok((loaded.script, loaded.run))
    }
}

/// What of a script's run agents cannot do, by name; `None` when they can.
pub(super) fn cannot(flags: &RunFlags, options: &Options) -> Option<String> {
    let is_external = options
        .scenarios
        .iter()
        .flatten()
        .any(|(_, scenario)| scenario.executor == Executor::ExternallyControlled);
    let has_segment =
        options.execution_segment.is_some() || options.execution_segment_sequence.is_some();
    let reasons = [
        (
            !flags.out.is_empty(),
            "--out: the samples of agents do not travel one by one; use --sink",
        ),
        (!flags.secret_sources.is_empty(), "--secret-source: secrets stay on this machine"),
        (flags.script_profile, "--script-profile: profiles stay where the script runs"),
        (flags.body_errors, "--body-errors: bodies stay where the script runs"),
        (
            flags.reconcile.is_some(),
            "--reconcile: agents do not tell the methods of requests apart",
        ),
        (flags.body_memory.is_some(), "--body-memory: each takes a quarter of its own memory"),
        (
            options.local_ips.is_some(),
            "--local-ips: agents have addresses of their own, by gake agent --sources",
        ),
        (has_segment, "--execution-segment: each agent has a segment already"),
        (is_external, "the executor externally-controlled: the number of its users is set by hand"),
    ];
    let (_, why) = reasons.into_iter().find(|(is_so, _)| *is_so)?;
    Some(format!("agents cannot do {why}"))
}

/// A script that is loaded here, to be run by agents.
pub(super) struct ForAgents<'a> {
    pub(super) script: &'a LoadedScript,
    /// Its options as they were given.
    pub(super) given: &'a Options,
    /// What its users see as `__ENV`.
    pub(super) environment: &'a [(String, String)],
    pub(super) flags: &'a RunFlags,
    /// How its result is shown, for a process that goes on with the run.
    pub(super) showing: String,
}

impl ForAgents<'_> {
    /// What travels to agents.
    fn parcel(&self, other_load: Option<OtherLoad>) -> Result<ScriptParcel, String> {
        let archive = pack(self.script, self.given, self.told())?;
        // Paths as they are: two users' files must not become one.
        let archive = archive.write_with_paths(0);
        let (seed, is_verbose) = (self.flags.seed, self.flags.verbose);
        let showing = self.showing.clone();
        let parcel = ScriptParcel { archive, seed, is_verbose, other_load, showing };
        parcel.check_size(None).map_err(|error| error.to_string())?;
        Ok(parcel)
    }

    /// The environment that agents are told: without gake's own variables, unless `-e` gives them.
    fn told(&self) -> BTreeMap<String, String> {
        let given = &self.flags.environment;
        let is_told = |name: &String| !name.starts_with(OWN) || given.contains_key(name);
        self.environment.iter().filter(|(name, _)| is_told(name)).cloned().collect()
    }
}

/// The agents of a script's run.
pub(super) struct ScriptAgents<'a> {
    origin: Origin<'a>,
    prepared: &'a Prepared,
    lines: AgentLines,
    listener: ScriptListener,
    test: Arc<Test>,
    /// Where what is said of them goes, if anything is.
    console: Option<&'a Console>,
    lost: Arc<OnceLock<LostParts>>,
    /// They are there once `setup` has completed.
    fleet: Option<Fleet>,
}

/// Where agents come from.
enum Origin<'a> {
    /// They are to be found.
    New { maker: &'a FleetMaker, spec: &'a RunSpec, parcel: Box<ScriptParcel> },
    /// Another process started them; until this one, which may be interrupted, goes on with them.
    Orphan(Option<Box<Orphan>>, Interrupt),
}

impl<'a> ScriptAgents<'a> {
    /// Looks for the agents, before anything runs.
    ///
    /// # Errors
    /// When there are too few that run scripts, or the script cannot travel.
    pub(super) fn find(
        maker: &'a FleetMaker,
        script: &ForAgents<'_>,
        of: (&'a ScriptRun, &'a Prepared),
        console: &'a Console,
    ) -> Result<Self, String> {
        let agents = Self::new(maker, script, of, None)?;
        maker.find().map_err(|error| error.to_string())?;
        Ok(Self { console: (!script.flags.quiet).then_some(console), ..agents })
    }

    /// Agents that are looked for silently once `setup` has completed.
    ///
    /// # Errors
    /// When the script cannot travel.
    pub(super) fn new(
        maker: &'a FleetMaker,
        script: &ForAgents<'_>,
        (run, prepared): (&'a ScriptRun, &'a Prepared),
        other_load: Option<OtherLoad>,
    ) -> Result<Self, String> {
        let parcel = Box::new(script.parcel(other_load)?);
        let origin = Origin::New { maker, spec: &run.spec, parcel };
        Self::of(origin, &script.script.test, prepared)
    }

    /// The agents of a run whose coordinator is gone.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub(super) fn of_orphan(
        orphan: Orphan,
        test: &Arc<Test>,
        prepared: &'a Prepared,
        (interrupt, console): (&Interrupt, Option<&'a Console>),
    ) -> Result<Self, String> {
        let origin = Origin::Orphan(Some(Box::new(orphan)), interrupt.clone());
        let agents = Self::of(origin, test, prepared)?;
        Ok(Self { console, ..agents })
    }

    fn of(origin: Origin<'a>, test: &Arc<Test>, prepared: &'a Prepared) -> Result<Self, String> {
        let lines = AgentLines::start(test).map_err(|error| error.to_string())?;
        Ok(Self {
            origin,
            prepared,
            listener: listener(test, lines.clone()),
            test: Arc::clone(test),
            lines,
            console: None,
            lost: Arc::default(),
            fleet: None,
        })
    }

    /// The agents after the run. What they said is in the log then.
    pub(super) fn finish(self) -> Option<Fleet> {
        self.lines.flush();
        self.fleet
    }
}

impl RemoteUsers for ScriptAgents<'_> {
    fn assemble(&mut self, set_up: &SetUp) -> Result<&mut dyn RemoteWorkers, RunError> {
        let listener = Arc::clone(&self.listener);
        let (fleet, has_journal) = match &mut self.origin {
            Origin::New { maker, spec, parcel } => {
                let of = (*spec, self.prepared);
                (maker.assemble_script(of, (&**parcel, set_up), listener), maker.keeps_journal())
            }
            Origin::Orphan(orphan, interrupt) => {
                let gone = || RunError::cannot("the agents have been taken over already");
                let orphan = orphan.take().ok_or_else(gone)?;
                (orphan.adopt_script(self.prepared, listener, interrupt), false)
            }
        };
        let mut fleet = fleet.map_err(RunError::cannot)?;
        if let Some(console) = self.console {
            let test = Arc::clone(&self.test);
            fleet.tell(Arc::new(move |event| test.log(LogLevel::Warning, &event.text, &[])));
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
