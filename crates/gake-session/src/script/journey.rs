//! A script as what `gake find` loads: its journey, an iteration of one function.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gake_core::spec::ScenarioSpec;
use gake_k6::options::Options;
use gake_k6::test::{LogLevel, LogLine, ScriptLog};
use gake_run::script::{ConfiguredScript, LoadedScript, ScriptRun};
use gake_run::{Beside, Moment, Prepared, Recorded, RunError};

use super::agents::{agent_script, cannot};
use super::flags::RunFlags;
use super::load::load;
use gake_session::Console;
use gake_session::Failure;
use gake_session::fleet::{AGENT_LOST, AgentScript, FleetMaker, ScriptAgents};

/// A loaded script, for one run.
pub struct Journey {
    /// The script.
    pub script: LoadedScript,
    /// Its run: one scenario, whose load is not set yet.
    pub run: ScriptRun,
    /// Its thresholds, as objectives are written.
    pub thresholds: Vec<String>,
    flags: RunFlags,
    options: Options,
    /// The options as they were given.
    given: Options,
    /// What its users see as `__ENV`.
    environment: Vec<(String, String)>,
}

/// Whether the first error of an iteration has been shown: the others of a search say the same.
pub type Shown = Arc<AtomicBool>;

/// Loads the script at `path`, with its options and the environment. A script can be run once.
///
/// # Errors
/// Why it cannot be run, or has no single function to load.
pub fn journey(path: &str, console: &Console, shown: &Shown) -> Result<Journey, Failure> {
    let flags = RunFlags::read(&[path.to_owned()]).map_err(Failure::usage)?;
    let flags = flags.ok_or_else(|| Failure::usage(format!("{path} is not a script")))?;
    let loaded = load(&flags, log(console, Arc::clone(shown)));
    let loaded =
        loaded.map_err(|refused| Failure::could_not(format!("{path}: {}", refused.why)))?;
    let thresholds = loaded.threshold_texts();
    let ConfiguredScript { script, options, mut run, given, environment, .. } = loaded;
    if options.paused == Some(true) {
        let why = "a search starts at once: remove the option paused";
        return Err(Failure::usage(format!("{path}: {why}")));
    }
    run.spec.scenarios = vec![only(path, &script, &run)?];
    // A search has a rate of its own: it is no scenario of the script's any more.
    run.executors = vec!["constant-arrival-rate".to_owned()];
    Ok(Journey { script, run, thresholds, flags, options, given, environment })
}

impl Journey {
    /// Why agents cannot fire it, if they cannot.
    pub fn cannot_on_agents(&self) -> Option<String> {
        // A search replaces its scenarios.
        let options = Options { scenarios: None, ..self.options.clone() };
        cannot(&self.flags, &options)
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
        let Self { script, run, given, flags, environment, .. } = self;
        let travelling =
            AgentScript { has_other_load: true, ..agent_script(flags, script, given, environment) };
        let agents = ScriptAgents::new(maker, &travelling, (run, prepared));
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
    let source = gake_core::spec::RequestSource::Script(gake_core::spec::ScriptSpec {
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
