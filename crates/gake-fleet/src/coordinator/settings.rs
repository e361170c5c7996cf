//! What is wanted of a fleet.

use std::time::Duration;

use gake_run::Interrupt;
use serde::{Deserialize, Serialize};

use crate::{FleetToken, NatsSettings};

/// What is wanted of a fleet.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// The NATS server.
    pub nats: NatsSettings,
    /// The fleet's token.
    pub token: FleetToken,
    /// How many agents.
    pub agents: usize,
    /// Tags that each of them has: keys and values.
    pub filter: Vec<(String, String)>,
    /// Whether each must run scripts.
    pub needs_scripts: bool,
    /// What happens when one is lost.
    pub on_loss: OnLoss,
    /// The version of gake; agents of other versions are not taken.
    pub version: String,
    /// How long agents are waited for.
    pub wait: Duration,
    /// Ends the wait for agents, until they are ready; none with `None`. Whether it ended the run
    /// stands in the journal.
    pub interrupt: Option<Interrupt>,
    /// How long agents go on without their coordinator.
    pub alone_max: Duration,
    /// Whether a journal of the run is kept in JetStream, so that another process can go on with
    /// it ([`Orphan`](crate::Orphan)).
    pub keeps_journal: bool,
}

/// What happens to a run when an agent is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnLoss {
    /// The others go on; what the lost one was to send is not sent.
    Continue,
    /// The others send, from the next second on, what the lost one was to send. Only open loops
    /// that end after a time: users and counts are not taken over.
    Redistribute,
    /// The run ends.
    Abort,
}
