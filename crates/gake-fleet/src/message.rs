//! Messages between coordinators and agents, apart from figures: JSON. Requests to one agent and
//! their replies are encrypted, other messages are sealed.

use std::collections::BTreeMap;

use bytes::Bytes;
use gake_core::schedule::Slice;
use gake_run::Stop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::token::FleetToken;

/// The version of the protocol.
pub(crate) const PROTOCOL: u32 = 7;

/// The subject of discoveries.
pub(crate) const DISCOVER: &str = "gake.discover";

/// The subject of requests of one kind to agent `id`.
pub(crate) fn agent_subject(id: &str, kind: &str) -> String {
    format!("gake.agent.{id}.{kind}")
}

/// The subject of control messages of a run.
pub(crate) fn control_subject(run: &str) -> String {
    format!("gake.run.{run}.control")
}

/// The subject of figures of the agent with this index; `*` for all agents.
pub(crate) fn figures_subject(run: &str, index: &str) -> String {
    format!("gake.run.{run}.figures.{index}")
}

/// The subject of requests to stop a run.
pub(crate) fn stop_subject(run: &str) -> String {
    format!("gake.run.{run}.stop")
}

/// The subject of a run's journal.
pub(crate) fn journal_subject(run: &str) -> String {
    format!("gake.run.{run}.journal")
}

/// The purpose of seals of journal entries.
pub(crate) fn journal_purpose(run: &str) -> String {
    format!("journal {run}")
}

/// The purpose of seals of a slice's figures.
pub(crate) fn figures_purpose(run: &str, index: usize) -> String {
    format!("figures {run} {index}")
}

/// The purpose of seals of control messages.
pub(crate) fn control_purpose(run: &str) -> String {
    format!("control {run}")
}

/// A request to stop a run, to its coordinator, or to an agent without one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StopRequest {
    pub(crate) run: String,
    /// Whether to abort requests in flight.
    pub(crate) now: bool,
    /// Part of the purpose of the reply, so that no other reply fits.
    pub(crate) challenge: String,
}

/// Whether the recipient has the run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StopReply {
    pub(crate) is_there: bool,
}

/// A request for the events of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogQuestion {
    /// Part of the purpose of the reply, so that no other reply fits.
    pub(crate) challenge: String,
}

/// The latest events of an agent, the oldest first, with Unix seconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogReply {
    pub(crate) events: Vec<(u64, String)>,
}

/// Discovers agents.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Discover {
    /// Part of the purpose of the reply, so that no other reply fits.
    pub(crate) challenge: String,
}

/// The reply to a discovery. It is not sealed as a whole.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    /// An [`AgentHello`], sealed, in hexadecimal.
    Hello(String),
    /// The question was sealed with another token.
    OtherToken {
        /// The agent's name.
        name: String,
    },
}

/// The introduction of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentHello {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The machine.
    pub(crate) host: String,
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) cores: usize,
    pub(crate) weight: AgentWeight,
    /// Whether it runs scripts.
    pub(crate) takes_scripts: bool,
    /// The run of which it has a slice.
    pub(crate) run: Option<String>,
    /// The nonce of the next offer, which prevents replays.
    pub(crate) nonce: String,
}

/// The weight of an agent: how much of a run it takes relative to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentWeight {
    /// This weight, independent of cores.
    Fixed(u32),
    /// This weight for each core that the run uses.
    PerCore(u32),
}

/// The units of a run that an agent has: `width` of `of` equal units, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitRange {
    pub(crate) first: usize,
    pub(crate) width: usize,
    pub(crate) of: usize,
}

impl UnitRange {
    /// Converts to a slice; `None` if the range is not valid.
    pub(crate) fn slice(self) -> Option<Slice> {
        let Self { first, width, of } = self;
        let is_there = width > 0 && first < of && width <= of - first;
        is_there.then(|| Slice::weighted(first, width, of))
    }
}

/// The offer of a slice to an agent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) run: String,
    pub(crate) nonce: String,
    /// The index of the agent in the run.
    pub(crate) index: usize,
    pub(crate) part: UnitRange,
    /// How long the agent continues without a coordinator, in ns.
    pub(crate) alone: u64,
    /// The exact encoding of the spec, or its last chunk; empty for a script with the load of its
    /// options.
    pub(crate) spec: String,
    /// The scripts of the run, in the order of the spec.
    pub(crate) scripts: Vec<ScriptOffer>,
}

/// A script, with the load of its options or of a spec.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptOffer {
    /// The hash of its archive.
    pub(crate) archive: String,
    /// The hash of the return value of `setup`, as JSON.
    pub(crate) data: Option<String>,
    /// The seed of `Math.random`.
    pub(crate) seed: Option<u64>,
    /// Whether to send lines of `console.debug`.
    pub(crate) is_verbose: bool,
    /// Tags by which sub-metrics are selected, if a spec describes the load.
    pub(crate) keys: Option<Vec<String>>,
}

/// A chunk of a spec that is too long for one message. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpecChunk {
    pub(crate) nonce: String,
    /// Its number, from 0.
    pub(crate) index: usize,
    pub(crate) text: String,
}

/// The number of chunks received.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpecReceived {
    pub(crate) parts: usize,
}

/// Asks which files of a spec an agent lacks. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilesQuestion {
    pub(crate) nonce: String,
    /// Hashes of their contents.
    pub(crate) hashes: Vec<String>,
}

/// The files that an agent lacks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilesMissing {
    pub(crate) hashes: Vec<String>,
}

/// A chunk of a file. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileChunk {
    pub(crate) nonce: String,
    pub(crate) hash: String,
    /// Its offset in the file.
    pub(crate) at: usize,
    /// In hexadecimal.
    pub(crate) bytes: String,
    pub(crate) is_last: bool,
}

/// The number of bytes received.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileReceived {
    pub(crate) bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OfferReply {
    /// The workers are ready and wait for the start.
    Ready { workers: usize },
    /// The reason, in a sentence.
    Refused { why: String },
}

/// A request for the agent's clock.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockQuestion {
    pub(crate) run: String,
    pub(crate) round: u32,
}

/// The agent's monotonic clock, in ns.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockReply {
    pub(crate) round: u32,
    pub(crate) now: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) run: String,
    /// The epoch on the agent's monotonic clock, in ns.
    pub(crate) epoch: u64,
}

/// The reply to the order to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StartReply {
    Started,
    Refused { why: String },
}

/// The state of a run for its agents, sent several times a second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Control {
    /// Increases with every message.
    pub(crate) number: u64,
    pub(crate) stop: StopOrder,
    /// The number of acknowledged frames by agent.
    pub(crate) taken: Vec<u64>,
    /// The indices of lost agents, which must stop.
    pub(crate) lost: Vec<usize>,
    /// Whether the run is over.
    pub(crate) over: bool,
    /// Arrivals of lost agents that others are to send. Repeated until each has a reply.
    pub(crate) handovers: Vec<Handover>,
}

/// Asks an agent to take over arrivals of a lost one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handover {
    pub(crate) id: u64,
    /// The index of the recipient.
    pub(crate) to: usize,
    pub(crate) scenario: usize,
    /// The arrivals whose number modulo `of` is `index`.
    pub(crate) index: usize,
    pub(crate) of: usize,
    /// Earlier arrivals, in ns since the epoch, already count as dropped.
    pub(crate) not_before: u64,
}

/// The reply to a [`Handover`], sent as a frame before any figure of these arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverReply {
    pub(crate) id: u64,
    /// The agent sends arrivals from this instant on, in ns since the epoch; `None` if it refuses.
    pub(crate) from: Option<u64>,
}

/// The stop state of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum StopOrder {
    /// The run continues.
    #[default]
    Go,
    /// No new arrivals.
    Drain,
    /// Abort.
    Now,
}

impl From<Stop> for StopOrder {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Go => Self::Go,
            Stop::Drain => Self::Drain,
            Stop::Now => Self::Now,
        }
    }
}

impl From<StopOrder> for Stop {
    fn from(order: StopOrder) -> Self {
        match order {
            StopOrder::Go => Self::Go,
            StopOrder::Drain => Self::Drain,
            StopOrder::Now => Self::Now,
        }
    }
}

/// The end of an agent's slice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentEnd {
    /// The maximum during the run.
    pub(crate) rss_bytes: u64,
    pub(crate) cores: usize,
}

pub(crate) fn seal_json(token: &FleetToken, purpose: &str, value: &impl Serialize) -> Vec<u8> {
    // Keys are strings and numbers are finite: this cannot fail, and empty output would not decode.
    let json = serde_json::to_vec(value).unwrap_or_default();
    token.seal(purpose, &json)
}

pub(crate) fn seal_bytes(token: &FleetToken, purpose: &str, body: &[u8]) -> Bytes {
    token.seal(purpose, body).into()
}

pub(crate) fn encrypt_json(token: &FleetToken, purpose: &str, value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).unwrap_or_default();
    // If encryption fails, nothing readable is sent.
    token.encrypt(purpose, &json).unwrap_or_default()
}

/// Decrypts a value for `purpose`.
pub(crate) fn decrypt_json<T: DeserializeOwned>(
    token: &FleetToken,
    purpose: &str,
    bytes: &[u8],
) -> Option<T> {
    serde_json::from_slice(&token.decrypt(purpose, bytes)?).ok()
}

/// Opens a sealed value for `purpose`.
pub(crate) fn open_json<T: DeserializeOwned>(
    token: &FleetToken,
    purpose: &str,
    bytes: &[u8],
) -> Option<T> {
    serde_json::from_slice(token.open(purpose, bytes)?).ok()
}

/// Encodes bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes hexadecimal text.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks(2);
    pairs.map(|pair| Some((value(pair[0])? * 16 + value(pair[1])?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_decoded() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&hex(&bytes)), Some(bytes));
        assert_eq!((from_hex("abc"), from_hex("zz")), (None, None));
        assert_eq!(from_hex("é"), None);
    }
}
