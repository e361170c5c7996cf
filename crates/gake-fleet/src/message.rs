//! What coordinator and agents say to each other, apart from figures: JSON. Requests to one agent
//! and their answers are encrypted, the rest is sealed.

use std::collections::BTreeMap;

use bytes::Bytes;
use gake_core::schedule::Slice;
use gake_run::Stop;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::other_load::OtherLoad;
use crate::token::FleetToken;

/// The version of the protocol.
pub(crate) const PROTOCOL: u32 = 6;

/// Where agents listen for coordinators.
pub(crate) const DISCOVER: &str = "gake.discover";

/// Where agent `id` takes requests of one kind.
pub(crate) fn agent_subject(id: &str, kind: &str) -> String {
    format!("gake.agent.{id}.{kind}")
}

/// Where the coordinator of a run tells its agents how it goes.
pub(crate) fn control_subject(run: &str) -> String {
    format!("gake.run.{run}.control")
}

/// Where the agent with a slice of a run sends its figures; `*` for all of them.
pub(crate) fn figures_subject(run: &str, index: &str) -> String {
    format!("gake.run.{run}.figures.{index}")
}

/// Where the coordinator of a run is asked to end it.
pub(crate) fn stop_subject(run: &str) -> String {
    format!("gake.run.{run}.stop")
}

/// Where the coordinator of a run writes its journal.
pub(crate) fn journal_subject(run: &str) -> String {
    format!("gake.run.{run}.journal")
}

/// What the entries of a run's journal are sealed for.
pub(crate) fn journal_purpose(run: &str) -> String {
    format!("journal {run}")
}

/// What the figures of a slice are sealed for.
pub(crate) fn figures_purpose(run: &str, index: usize) -> String {
    format!("figures {run} {index}")
}

/// What control messages of a run are sealed for.
pub(crate) fn control_purpose(run: &str) -> String {
    format!("control {run}")
}

/// Asks a coordinator, or an agent without one, to end a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StopRequest {
    pub(crate) run: String,
    /// Whether what is in flight is cut.
    pub(crate) now: bool,
    /// What the answer is meant for.
    pub(crate) challenge: String,
}

/// Whether a run that was to end is there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StopReply {
    pub(crate) is_there: bool,
}

/// Asks an agent what happened to it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogQuestion {
    /// What the answer is meant for.
    pub(crate) challenge: String,
}

/// The last events of an agent, the oldest first: seconds since 1970, and what happened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogReply {
    pub(crate) events: Vec<(u64, String)>,
}

/// Asks who is there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Discover {
    /// What the answer is meant for.
    pub(crate) challenge: String,
}

/// The answer of an agent, or why it has none; not sealed as a whole.
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

/// An agent introduces itself.
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
    /// How much of a run it takes.
    pub(crate) weight: AgentWeight,
    /// Whether it runs scripts.
    pub(crate) takes_scripts: bool,
    /// The run that it has a slice of.
    pub(crate) run: Option<String>,
    /// What the next offer must hold, so that no offer can be made twice.
    pub(crate) nonce: String,
}

/// How much of a run an agent takes, in proportion to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentWeight {
    /// This weight, whatever the agent has.
    Fixed(u32),
    /// This weight for each core that a run uses on it.
    PerCore(u32),
}

/// The part of a run that an agent has: `width` of its `of` equal units, from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitRange {
    pub(crate) first: usize,
    pub(crate) width: usize,
    pub(crate) of: usize,
}

impl UnitRange {
    /// The same as a slice; `None` when there are no such units.
    pub(crate) fn slice(self) -> Option<Slice> {
        let Self { first, width, of } = self;
        let is_there = width > 0 && first < of && width <= of - first;
        is_there.then(|| Slice::weighted(first, width, of))
    }
}

/// Offers an agent a slice of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) run: String,
    pub(crate) nonce: String,
    /// Its number among the agents of the run.
    pub(crate) index: usize,
    /// What it is to do.
    pub(crate) part: UnitRange,
    /// How long the agent goes on without a word of the coordinator, in ns.
    pub(crate) alone: u64,
    /// The exact encoding of the spec, or what is left of it after the parts sent before; empty for
    /// a script whose options say what is to be done.
    pub(crate) spec: String,
    /// The script, if it is the run of one.
    pub(crate) script: Option<ScriptOffer>,
}

/// A script, whose options say what is to be done, unless it has another load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ScriptOffer {
    /// The hash of its archive.
    pub(crate) archive: String,
    /// The hash of what `setup` returned, as JSON.
    pub(crate) data: Option<String>,
    /// What the `Math.random` of its users begins with.
    pub(crate) seed: Option<u64>,
    /// Whether `console.debug` is to be told.
    pub(crate) is_verbose: bool,
    /// What goes with the scenarios of the spec, where these take the place of its own.
    pub(crate) other_load: Option<OtherLoad>,
}

/// A part of a spec that is too long for one message. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpecChunk {
    pub(crate) nonce: String,
    /// Its number, from 0.
    pub(crate) index: usize,
    pub(crate) text: String,
}

/// How many parts of a spec are there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpecReceived {
    pub(crate) parts: usize,
}

/// Asks which files of a spec an agent does not have. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilesQuestion {
    pub(crate) nonce: String,
    /// Hashes of their contents.
    pub(crate) hashes: Vec<String>,
}

/// The files that an agent does not have.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FilesMissing {
    pub(crate) hashes: Vec<String>,
}

/// A part of a file. It belongs to the offer with this nonce.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileChunk {
    pub(crate) nonce: String,
    pub(crate) hash: String,
    /// Where it begins.
    pub(crate) at: usize,
    /// In hexadecimal.
    pub(crate) bytes: String,
    pub(crate) is_last: bool,
}

/// How many bytes of a file are there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileReceived {
    pub(crate) bytes: usize,
}

/// An answer to an offer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum OfferReply {
    /// The workers are ready and wait for the start.
    Ready { workers: usize },
    /// Why not, in a sentence.
    Refused { why: String },
}

/// Asks for the agent's clock.
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

/// Starts a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) run: String,
    /// The epoch on the agent's monotonic clock, in ns.
    pub(crate) epoch: u64,
}

/// An answer to the order to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum StartReply {
    Started,
    Refused { why: String },
}

/// How a run is to go on; comes several times a second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Control {
    /// Increases with every message.
    pub(crate) number: u64,
    pub(crate) stop: StopOrder,
    /// How many frames of each agent are taken.
    pub(crate) taken: Vec<u64>,
    /// Agents that are given up; they stop.
    pub(crate) lost: Vec<usize>,
    /// Whether the run is over, and nothing more is wanted.
    pub(crate) over: bool,
    /// Arrivals of lost agents that others are to send. ReporterState until it is answered.
    pub(crate) handovers: Vec<Handover>,
}

/// Asks an agent to send arrivals of another one, which is lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handover {
    /// Its number in the run.
    pub(crate) id: u64,
    /// The agent that is asked.
    pub(crate) to: usize,
    pub(crate) scenario: usize,
    /// The arrivals: those whose number modulo `of` is `index`.
    pub(crate) index: usize,
    pub(crate) of: usize,
    /// What is due earlier, in ns since the epoch, counts as dropped already.
    pub(crate) not_before: u64,
}

/// The answer to a [`Handover`]. It travels as a frame, before any figure of these arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoverReply {
    pub(crate) id: u64,
    /// The agent sends what is due from here on, in ns since the epoch; `None` when it does not.
    pub(crate) from: Option<u64>,
}

/// Whether a run is to stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum StopOrder {
    /// It goes on.
    #[default]
    Go,
    /// No new arrivals.
    Drain,
    /// At once.
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

/// What an agent says at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentEnd {
    /// The highest during the run.
    pub(crate) rss_bytes: u64,
    pub(crate) cores: usize,
}

/// `value` as JSON, sealed for `purpose`.
pub(crate) fn seal_json(token: &FleetToken, purpose: &str, value: &impl Serialize) -> Vec<u8> {
    // Maps have texts as keys and numbers are finite: this cannot fail, and nothing reads as empty.
    let json = serde_json::to_vec(value).unwrap_or_default();
    token.seal(purpose, &json)
}

/// `body`, sealed for `purpose`.
pub(crate) fn seal_bytes(token: &FleetToken, purpose: &str, body: &[u8]) -> Bytes {
    token.seal(purpose, body).into()
}

/// `value` as JSON, encrypted for `purpose`.
pub(crate) fn encrypt_json(token: &FleetToken, purpose: &str, value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).unwrap_or_default();
    // Without random bytes nothing is sent that could be read.
    token.encrypt(purpose, &json).unwrap_or_default()
}

/// The value that was encrypted for `purpose` with this token.
pub(crate) fn decrypt_json<T: DeserializeOwned>(
    token: &FleetToken,
    purpose: &str,
    bytes: &[u8],
) -> Option<T> {
    serde_json::from_slice(&token.decrypt(purpose, bytes)?).ok()
}

/// The value that was sealed for `purpose` with this token.
pub(crate) fn open_json<T: DeserializeOwned>(
    token: &FleetToken,
    purpose: &str,
    bytes: &[u8],
) -> Option<T> {
    serde_json::from_slice(token.open(purpose, bytes)?).ok()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a text in hexadecimal.
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
    fn hexadecimal_comes_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&hex(&bytes)), Some(bytes));
        assert_eq!((from_hex("abc"), from_hex("zz")), (None, None));
        assert_eq!(from_hex("é"), None);
    }
}
