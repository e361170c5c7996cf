//! Runs on several machines: agents run slices of it, and a coordinator joins their figures.
//!
//! An [`Agent`] waits at a NATS server for runs. A [`Fleet`] finds agents there, prepares a slice
//! of a spec on each, starts them at one instant and joins their figures into one run, exactly:
//! intervals are sent in the exact encoding of `gake-core`, numbered, and resent until they are
//! acknowledged.
//!
//! Together the agents have the schedule of one machine. Arrivals of a lost agent are counted as
//! dropped and lost, never omitted.
//!
//! A coordinator keeps a journal of its run in JetStream, so that another process can take over
//! when it dies ([`Orphan`]).
//!
//! Every message carries an HMAC with the fleet's token ([`FleetToken`]). This crate does not
//! print, and reads neither arguments nor environment.

#![forbid(unsafe_code)]

mod agent;
mod allow;
mod coordinator;
mod error;
mod files;
mod frame;
mod message;
mod nats;
mod rule;
mod script;
#[cfg(test)]
mod sim;
mod token;

pub use agent::{Agent, AgentEvent};
pub use allow::AgentLimits;
pub use coordinator::{
    AgentList, AgentLogLine, Fleet, FleetListener, FleetSettings, ListedAgent, OnLoss, Orphan,
    StopRecipient, StoppedBy,
};
pub use error::FleetError;
pub use message::AgentWeight;
pub use nats::{NatsKey, NatsSettings};
pub use rule::AllowRule;
pub use script::{OrphanScript, ScriptEvent, ScriptLine, ScriptListener, ScriptParcel};
pub use token::FleetToken;
