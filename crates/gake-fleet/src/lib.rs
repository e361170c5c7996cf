//! A run on several machines: agents do slices of it, and a coordinator joins their figures.
//!
//! An [`Agent`] waits at a NATS server for runs. A [`Fleet`] finds agents there, gives each a slice
//! of a spec, starts them at one instant and joins what they record into one run, exactly: seconds
//! travel in the exact encoding of `gake-core`, numbered, and are sent again until they are taken.
//!
//! The arrivals of all agents are the schedule of one machine. What a lost agent was to send is
//! counted as dropped and lost, never left out.
//!
//! A coordinator keeps a journal of its run in JetStream, so that another process can go on with it
//! when it dies ([`Orphan`]).
//!
//! Every message carries an HMAC with the fleet's token ([`FleetToken`]). This crate prints nothing
//! and sees neither arguments nor environment.

#![forbid(unsafe_code)]

mod agent;
mod allow;
mod coordinator;
mod error;
mod files;
mod frame;
mod message;
mod nats;
mod other_load;
mod rule;
mod script;
#[cfg(test)]
mod sim;
mod token;

pub use agent::{Agent, AgentEvent};
pub use allow::AgentLimits;
pub use coordinator::{
    AgentList, AgentLogLine, Fleet, FleetListener, FleetSettings, ListedAgent, OnLoss, Orphan,
    Stopped, StoppedBy,
};
pub use error::FleetError;
pub use message::AgentWeight;
pub use nats::{NatsKey, NatsSettings};
pub use other_load::OtherLoad;
pub use rule::AllowRule;
pub use script::{OrphanScript, ScriptEvent, ScriptLine, ScriptListener, ScriptParcel};
pub use token::FleetToken;
