//! A script as what `gake find` loads: its journey, an iteration of one function.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gake_core::spec::{RequestSource, RunSpec, ScenarioSpec, ScriptSpec};
use gake_k6::test::{LogLevel, LogLine, ScriptLog};
use gake_run::script::{ConfiguredScript, LoadedScript, ScriptRun, ScriptSettings};
use gake_run::{Beside, Moment, Prepared, Recorded, RunError};

use super::{environment, source};
use crate::fleet::{AGENT_LOST, AgentScript, FleetMaker, ScriptAgents, unsupported};
use crate::{Console, Failure};

/// Whether the first error of an iteration has been shown: the others of a search say the same.
pub type Shown = Arc<AtomicBool>;

/// A script for one run of one scenario, whose load is not set yet.
#[derive(Debug)]
pub struct Journey {
    /// The script with its options.
    pub loaded: ConfiguredScript,
    settings: ScriptSettings,
}

/// Loads the script at `path`, with its options and the environment. A script can be run once.
///
/// # Errors
/// Why it cannot be run, or has no single function to load.
pub fn journey(path: &str, console: &Console, shown: &Shown) -> Result<Journey, Failure> {
    let system = environment();
    let settings = ScriptSettings { system, shows_system: true, ..ScriptSettings::default() };
    let could_not = |why: String| Failure::could_not(format!("{path}: {why}"));
    let source = source(path).map_err(could_not)?;
    let loaded = ConfiguredScript::load(source, &settings, log(console, Arc::clone(shown)));
    let mut loaded = loaded.map_err(|refusal| could_not(refusal.with_stack()))?;
    if loaded.options.paused == Some(true) {
        let why = "a search starts at once: remove the option paused";
        return Err(Failure::usage(format!("{path}: {why}")));
    }
    loaded.run.spec.scenarios = vec![only(path, &loaded.script, &loaded.run)?];
    // A search has a rate of its own: it is no scenario of the script's any more.
    loaded.run.executors = vec!["constant-arrival-rate".to_owned()];
    Ok(Journey { loaded, settings })
}

impl Journey {
    /// Why agents cannot fire it, if they cannot.
    #[must_use]
    pub fn cannot_on_agents(&self) -> Option<String> {
        let Self { loaded, settings } = self;
        // A search replaces its scenarios.
        let spec = RunSpec { scenarios: Vec::new(), ..loaded.run.spec.clone() };
        unsupported(settings, &loaded.options, &spec, ["--local-ips", "--execution-segment"])
    }

    /// Runs it to its end on agents, all of which it needs; `setup` and `teardown` run here.
    ///
    /// # Errors
    /// When the run cannot be made, or an agent is lost. What `teardown` threw is in the result.
    pub fn run_on_agents(
        &self,
        maker: &FleetMaker,
        prepared: &Prepared,
        beside: Beside<'_>,
        each: impl FnMut(&Moment<'_>) -> Option<String> + Send,
    ) -> Result<Recorded, RunError> {
        let script = AgentScript::new(&self.loaded, &self.settings);
        let script = AgentScript { has_other_load: true, ..script };
        let agents = ScriptAgents::new(maker, &script, (&self.loaded.run, prepared));
        let mut agents = agents.map_err(RunError::cannot)?;
        let recorded = prepared.run_users_elsewhere((&mut agents, None), beside, each)?;
        match agents.finish().map_or(0, |fleet| fleet.lost()) {
            0 => Ok(recorded),
            _ => Err(RunError::cannot(AGENT_LOST)),
        }
    }
}

/// The one scenario whose function, environment and tags a search takes; of several the default
/// function.
fn only(path: &str, script: &LoadedScript, run: &ScriptRun) -> Result<ScenarioSpec, Failure> {
    let scenarios = &run.spec.scenarios;
    if let [only] = scenarios.as_slice() {
        return Ok(only.clone());
    }
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    if !script.has("default") {
        return Err(Failure::usage(format!(
            "{path} has the scenarios {}: a search loads one function, so export the journey as \
             the default function",
            names.join(", ")
        )));
    }
    let source = RequestSource::Script(ScriptSpec {
        path: Path::new(path).to_owned(),
        function: None,
        environment: Vec::new(),
    });
    Ok(ScenarioSpec::new(source, scenarios[0].load.clone()))
}

/// What a script logs while it is searched: errors of iterations once, and nothing else.
fn log(console: &Console, shown: Shown) -> ScriptLog {
    let console = *console;
    Arc::new(move |line: &LogLine| {
        if line.level == LogLevel::Error && !shown.swap(true, Relaxed) {
            console.warn(&format!("an iteration failed: {}", line.message.trim_end()));
        }
    })
}
