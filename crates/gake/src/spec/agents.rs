//! Scripts on agents: settings that agents do not support, and what agents receive.

use gake_core::spec::RequestSource;
use gake_run::LoadedRequests;
use gake_run::script::{ONE_SCRIPT, ScriptSettings};
use gake_session::Failure;
use gake_session::fleet::{AgentScript, unsupported};
use gake_session::script::ScriptLoader;

use super::CommandSpec;

/// How the result of a script's run on agents is shown: the result of gake itself.
pub const SHOWING: &str = "gake run";

/// The names of flags of `gake run` for settings that agents have of their own.
const NAMES: [&str; 2] = ["--interface", "the option executionSegment"];

impl CommandSpec {
    /// Refuses settings that agents do not support in a run with scripts, before anything starts.
    ///
    /// # Errors
    /// The unsupported settings.
    pub fn check_agents(&self, loaded: &LoadedRequests) -> Result<(), Failure> {
        let scripts: Vec<_> = loaded.scripts().collect();
        let (Some(script), Some(settings)) = (scripts.first(), self.settings()) else {
            return Ok(());
        };
        let is_script = |source: &RequestSource| matches!(source, RequestSource::Script(_));
        if scripts.len() > 1 || !self.spec.scenarios.iter().all(|one| is_script(&one.source)) {
            return Err(Failure::usage(ONE_SCRIPT));
        }
        let why = unsupported(settings, &script.options, &self.spec, NAMES);
        why.map_or(Ok(()), |why| Err(Failure::usage(why)))
    }

    /// The script for agents, if the run has one.
    pub fn agent_script<'a>(
        &'a self,
        loaded: &'a LoadedRequests,
        is_verbose: bool,
    ) -> Option<AgentScript<'a>> {
        let script = AgentScript::new(loaded.scripts().next()?, self.settings()?);
        let showing = SHOWING.to_owned();
        Some(AgentScript { is_verbose, has_other_load: true, showing, ..script })
    }

    fn settings(&self) -> Option<&ScriptSettings> {
        self.scripts.as_ref().map(ScriptLoader::settings)
    }
}
