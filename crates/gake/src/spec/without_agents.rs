//! Replaces scripts on agents in a build without the feature `fleet`.

use gake_run::LoadedRequests;
use gake_session::Failure;
use gake_session::fleet::AgentScript;

use super::CommandSpec;

impl CommandSpec {
    /// Refuses nothing: without the feature, agents are refused earlier.
    ///
    /// # Errors
    /// Never.
    pub fn check_agents(&self, _: &LoadedRequests) -> Result<(), Failure> {
        Ok(())
    }

    /// Gives agents no scripts.
    pub fn agent_scripts<'a>(&'a self, _: &'a LoadedRequests, _: bool) -> Vec<AgentScript<'a>> {
        Vec::new()
    }
}
