//! Listing agents.

use std::collections::BTreeMap;

use super::finder::{ROUND, greetings};
use crate::{FleetError, FleetToken, NatsSettings};

/// An agent at a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAgent {
    /// Its name.
    pub name: String,
    /// The machine: name, system, cores.
    pub host: String,
    /// The version of gake.
    pub version: String,
    /// Maximum number of worker threads.
    pub cores: usize,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// The run of which it has a slice.
    pub run: Option<String>,
}

/// The agents at a NATS server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentList {
    /// Agents with this token, in order of their names.
    pub agents: Vec<ListedAgent>,
    /// The names of agents with another token.
    pub other_token: Vec<String>,
}

impl AgentList {
    /// Discovers agents once. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used.
    pub fn fetch(nats: &NatsSettings, token: &FleetToken) -> Result<Self, FleetError> {
        let mut list = Self::default();
        super::runtime()?.block_on(async {
            let client = nats.connect("gake").await?;
            greetings((&client, nats), token, ROUND, |greeting| match greeting {
                Err(name) => list.other_token.push(name),
                Ok(hello) => list.agents.push(ListedAgent {
                    name: hello.name,
                    host: hello.host,
                    version: hello.version,
                    cores: hello.cores,
                    tags: hello.tags,
                    run: hello.run,
                }),
            })
            .await
        })?;
        list.agents.sort_by(|a, b| a.name.cmp(&b.name));
        list.other_token.sort();
        Ok(list)
    }
}
