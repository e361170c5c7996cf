//! What stands for scripts on agents in a build without the feature `fleet`.

use gake_run::LoadedRequests;
use gake_session::Failure;
use gake_session::fleet::AgentScript;

use super::Asked;

impl Asked {
    /// Refuses nothing: agents that are asked for are refused before a run.
    ///
    /// # Errors
    /// Never.
    pub fn check_agents(&self, _: &LoadedRequests) -> Result<(), Failure> {
        Ok(())
    }

    /// Gives agents no script.
    pub fn agent_script<'a>(&'a self, _: &'a LoadedRequests, _: bool) -> Option<AgentScript<'a>> {
        None
    }
}
