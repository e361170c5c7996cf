//! Scripts on agents: settings that agents do not support, and what agents receive.

use gake_run::LoadedRequests;
use gake_run::script::ScriptSettings;
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
        let Some(settings) = self.settings() else { return Ok(()) };
        let mut reasons = loaded
            .scripts()
            .filter_map(|script| unsupported(settings, &script.options, &self.spec, NAMES));
        reasons.next().map_or(Ok(()), |why| Err(Failure::usage(why)))
    }

    /// The scripts of the run for agents.
    pub fn agent_scripts<'a>(
        &'a self,
        loaded: &'a LoadedRequests,
        is_verbose: bool,
    ) -> Vec<AgentScript<'a>> {
        let Some(settings) = self.settings() else { return Vec::new() };
        let of = |script| AgentScript {
            is_verbose,
            has_other_load: true,
            showing: SHOWING.to_owned(),
            ..AgentScript::new(script, settings)
        };
        loaded.scripts().map(of).collect()
    }

    fn settings(&self) -> Option<&ScriptSettings> {
        self.scripts.as_ref().map(ScriptLoader::settings)
    }
}
