//! Settings of a fleet.

use std::time::Duration;

use gake_run::Interrupt;
use serde::{Deserialize, Serialize};

use crate::{FleetToken, NatsSettings};

/// Settings of a fleet.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// The NATS server.
    pub nats: NatsSettings,
    /// The fleet's token.
    pub token: FleetToken,
    /// The number of agents.
    pub agents: usize,
    /// Tags that each agent must have: keys and values.
    pub filter: Vec<(String, String)>,
    /// Whether each agent must run scripts.
    pub needs_scripts: bool,
    /// What happens when an agent is lost.
    pub on_loss: OnLoss,
    /// The version of gake; agents of other versions are refused.
    pub version: String,
    /// How long to wait for agents.
    pub wait: Duration,
    /// Ends the wait for agents. The journal records whether it ended the run.
    pub interrupt: Option<Interrupt>,
    /// How long agents continue without a coordinator.
    pub alone_max: Duration,
    /// Whether to keep a journal of the run in JetStream, so that another process can take over
    /// ([`Orphan`](crate::Orphan)).
    pub keeps_journal: bool,
}

/// What happens to a run when an agent is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnLoss {
    /// The others continue; the remaining arrivals of the lost agent are dropped.
    Continue,
    /// The others take over its arrivals from the next second on. Only for open loops that a time
    /// ends: users and counts are not taken over.
    Redistribute,
    /// The run ends.
    Abort,
}
