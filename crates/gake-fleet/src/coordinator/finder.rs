//! Finding agents and assigning slices to them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_nats::{Client, Request};
use futures_util::StreamExt;
use futures_util::future::join_all;
use gake_core::exact;
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_core::spec::RunSpec;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clock_offset::ClockOffset;
use super::clocks::CandidateAgent;
use super::settings::FleetSettings;
use super::weights;
use crate::files::FileContents;
use crate::message::{
    AgentHello, DISCOVER, Discover, FileChunk, FileReceived, FilesMissing, FilesQuestion, Greeting,
    Offer, OfferReply, PROTOCOL, ScriptOffer, SpecChunk, SpecReceived, StartOrder, StartReply,
    UnitRange, agent_subject, decrypt_json, encrypt_json, from_hex, hex, open_json, seal_json,
};
use crate::token::{SEAL, random_text};
use crate::{FleetError, FleetToken, NatsSettings};

/// Time limit for replies without preparation.
pub(super) const REPLY_MAX: Duration = Duration::from_secs(5);

/// How long replies to a discovery are collected.
pub(super) const ROUND: Duration = Duration::from_millis(300);

/// The same for the last discovery, so that the reason for refusing a distant agent is known.
const LAST_ROUND: Duration = Duration::from_secs(1);

/// Polling interval for an interrupt.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Time limit for agents to prepare a run: they resolve names.
const PREPARE_MAX: Duration = Duration::from_secs(30);

/// The same for a script, whose users are loaded. Agents wait longer than that for the start.
const LOAD_MAX: Duration = Duration::from_secs(50);

/// A chunk takes at most this fraction of a message, since it grows when it is escaped.
const PAYLOAD_DIVISOR: usize = 4;

/// An offer to agents, without the slice.
pub(crate) struct SliceOffer {
    /// The exact encoding of the spec; empty for a script with the load of its options.
    spec: String,
    scripts: Vec<ScriptOffer>,
    files: FileContents,
}

impl SliceOffer {
    /// Offers a spec, with the files that it names by hash.
    pub(crate) fn spec(spec: &RunSpec, files: FileContents) -> Result<Self, FleetError> {
        Ok(Self { spec: encoded(spec)?, scripts: Vec::new(), files })
    }

    /// Offers scripts, with `spec` unless a script's options describe the load.
    pub(crate) fn scripts(
        (scripts, files): (Vec<ScriptOffer>, FileContents),
        spec: &RunSpec,
    ) -> Result<Self, FleetError> {
        let has_own_load = scripts.iter().any(|script| script.keys.is_none());
        let spec = if has_own_load { String::new() } else { encoded(spec)? };
        Ok(Self { spec, scripts, files })
    }
}

/// The exact encoding of a spec.
fn encoded(spec: &RunSpec) -> Result<String, FleetError> {
    let spec = exact::encode(spec).map_err(|error| FleetError::Spec(error.to_string()))?;
    Ok(String::from_utf8_lossy(&spec).into_owned())
}

/// An agent with a slice of the run.
#[derive(Debug, Clone)]
pub(crate) struct AssignedAgent {
    pub(crate) hello: AgentHello,
    pub(crate) workers: usize,
    pub(crate) offset: ClockOffset,
    pub(crate) part: UnitRange,
}

impl AssignedAgent {
    pub(crate) fn slice(&self) -> Slice {
        // Offered ranges are valid.
        self.part.slice().unwrap_or(Slice::WHOLE)
    }
}

/// Finds and prepares the agents of a run.
pub(crate) struct Finder<'a> {
    pub(crate) client: &'a Client,
    pub(crate) settings: &'a FleetSettings,
    pub(crate) run: &'a str,
}

impl Finder<'_> {
    /// Finds as many suitable agents as the settings require, in order of their names.
    pub(crate) async fn agents(&self) -> Result<Vec<CandidateAgent>, FleetError> {
        let begun = Instant::now();
        let wanted = self.settings.agents;
        let mut refusals = BTreeMap::new();
        loop {
            let is_last = begun.elapsed() + ROUND >= self.settings.wait;
            let round = if is_last { LAST_ROUND } else { ROUND };
            let there = self.ask(round, &mut refusals).await?;
            let mut found = there.len();
            if found >= wanted {
                let fit = self.with_fit_clocks(there, &mut refusals).await;
                if fit.len() >= wanted {
                    return Ok(fit);
                }
                found = fit.len();
            }
            if is_last {
                let refusals = refusals.into_values().collect();
                return Err(FleetError::TooFew { found, wanted, refusals });
            }
        }
    }

    /// Discovers agents once, collecting replies for `round`. Returns suitable agents in order of
    /// their names; reasons against others go to `refusals`.
    async fn ask(
        &self,
        round: Duration,
        refusals: &mut BTreeMap<String, String>,
    ) -> Result<Vec<AgentHello>, FleetError> {
        let mut found = BTreeMap::new();
        let (nats, token) = (&self.settings.nats, &self.settings.token);
        greetings((self.client, nats), token, round, |greeting| match greeting {
            Err(name) => {
                let why = format!("agent {name} has another token");
                refusals.insert(name, why);
            }
            Ok(hello) => match self.unfit(&hello) {
                None => {
                    refusals.remove(&hello.name);
                    found.insert((hello.name.clone(), hello.id.clone()), hello);
                }
                Some(why) => {
                    let text = format!("agent {} {why}", hello.name);
                    refusals.insert(hello.name, text);
                }
            },
        })
        .await?;
        Ok(found.into_values().collect())
    }

    /// Why an agent cannot take part in the run, if so.
    fn unfit(&self, hello: &AgentHello) -> Option<String> {
        let own = &self.settings.version;
        if hello.protocol != PROTOCOL || hello.version != *own {
            return Some(format!("is gake {}, and this is gake {own}", hello.version));
        }
        let missing =
            self.settings.filter.iter().find(|(key, value)| hello.tags.get(key) != Some(value));
        if let Some((key, value)) = missing {
            return Some(format!("does not have {key}={value}"));
        }
        if self.settings.needs_scripts && !hello.takes_scripts {
            return Some("runs no scripts: start it with --scripts".to_owned());
        }
        hello.run.is_some().then(|| "already has a run".to_owned())
    }

    /// Awaits `work` until the interrupt.
    pub(crate) async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let Some(interrupt) = &self.settings.interrupt else { return work.await };
        let interrupted = async {
            while !interrupt.came() {
                tokio::time::sleep(POLL_EVERY).await;
            }
        };
        tokio::select! {
            done = work => done,
            () = interrupted => Err(FleetError::Interrupted),
        }
    }

    /// Offers each agent its slice of `load`, and waits until all are ready.
    pub(crate) async fn offer(
        &self,
        agents: Vec<CandidateAgent>,
        load: &SliceOffer,
        plan: &Plan,
    ) -> Result<Vec<AssignedAgent>, FleetError> {
        let SliceOffer { spec, scripts, files } = load;
        let patience = if scripts.is_empty() { PREPARE_MAX } else { LOAD_MAX };
        let parts = weights::unit_ranges(plan, agents.iter().map(|found| &found.hello));
        let (before, last) = &split(spec, self.client.max_payload() / PAYLOAD_DIVISOR);
        // Files are sent before any offer, since they may take longer than a ready agent waits for
        // the start.
        let sent = agents.iter().map(|CandidateAgent { hello, .. }| async move {
            self.send_files(hello, files).await?;
            self.send_chunks(hello, before).await
        });
        join_all(sent).await.into_iter().collect::<Result<(), _>>()?;
        let numbered = agents.into_iter().zip(parts).enumerate();
        let offers = numbered.map(|(index, (CandidateAgent { hello, clock }, part))| {
            let (run, nonce) = (self.run.to_owned(), hello.nonce.clone());
            async move {
                let alone = super::nanos(self.settings.alone_max);
                let (spec, scripts) = ((*last).to_owned(), scripts.clone());
                let offer = Offer { run, nonce, index, part, alone, spec, scripts };
                let purpose = format!("offer-answer {}", offer.nonce);
                let reply: OfferReply =
                    self.request(&hello, "offer", &offer, &purpose, patience).await?;
                match reply {
                    OfferReply::Ready { workers } => {
                        let offset = self.offset_since(&hello, clock).await?;
                        Ok(AssignedAgent { hello, workers, offset, part })
                    }
                    OfferReply::Refused { why } => {
                        Err(FleetError::Refused { agent: hello.name, why })
                    }
                }
            }
        });
        join_all(offers).await.into_iter().collect()
    }

    /// Sends files of a spec that the agent lacks.
    async fn send_files(&self, hello: &AgentHello, files: &FileContents) -> Result<(), FleetError> {
        let hashes: Vec<_> = files.keys().cloned().collect();
        let question = FilesQuestion { nonce: hello.nonce.clone(), hashes };
        let purpose = format!("files-answer {}", hello.nonce);
        let missing: FilesMissing =
            self.request(hello, "files", &question, &purpose, REPLY_MAX).await?;
        let purpose = format!("file-answer {}", hello.nonce);
        let size = self.client.max_payload() / PAYLOAD_DIVISOR;
        for hash in missing.hashes {
            let Some(content) = files.get(&hash) else { continue };
            // An empty file has one chunk.
            for at in (0..content.len().max(1)).step_by(size.max(1)) {
                let end = content.len().min(at + size.max(1));
                let (nonce, bytes) = (hello.nonce.clone(), hex(&content[at..end]));
                let is_last = end == content.len();
                let part = FileChunk { nonce, hash: hash.clone(), at, bytes, is_last };
                let taken: FileReceived =
                    self.request(hello, "file", &part, &purpose, REPLY_MAX).await?;
                if taken.bytes != end {
                    let why = "a file of the spec did not arrive".to_owned();
                    return Err(FleetError::Refused { agent: hello.name.clone(), why });
                }
            }
        }
        Ok(())
    }

    /// Sends the chunks of a spec that do not fit into the offer.
    async fn send_chunks(&self, hello: &AgentHello, chunks: &[&str]) -> Result<(), FleetError> {
        let purpose = format!("spec-answer {}", hello.nonce);
        for (index, text) in chunks.iter().enumerate() {
            let (nonce, text) = (hello.nonce.clone(), (*text).to_owned());
            let part = SpecChunk { nonce, index, text };
            let taken: SpecReceived =
                self.request(hello, "spec", &part, &purpose, REPLY_MAX).await?;
            if taken.parts != index + 1 {
                let why = "the spec is too long".to_owned();
                return Err(FleetError::Refused { agent: hello.name.clone(), why });
            }
        }
        Ok(())
    }

    /// Orders all agents to start at `epoch`, an instant of this machine's monotonic clock.
    pub(crate) async fn start(
        &self,
        agents: &[AssignedAgent],
        epoch: u64,
    ) -> Result<(), FleetError> {
        let orders = agents.iter().map(|AssignedAgent { hello, offset, .. }| async move {
            let order = StartOrder { run: self.run.to_owned(), epoch: offset.theirs(epoch) };
            let purpose = format!("start-answer {}", self.run);
            let reply: StartReply =
                self.request(hello, "start", &order, &purpose, REPLY_MAX).await?;
            match reply {
                StartReply::Started => Ok(()),
                StartReply::Refused { why } => {
                    Err(FleetError::Refused { agent: hello.name.clone(), why })
                }
            }
        });
        join_all(orders).await.into_iter().collect()
    }

    /// Sends an agent a request and waits for the reply; both are encrypted.
    pub(super) async fn request<T: DeserializeOwned>(
        &self,
        hello: &AgentHello,
        kind: &str,
        request: &impl Serialize,
        purpose: &str,
        patience: Duration,
    ) -> Result<T, FleetError> {
        let (nats, token) = (&self.settings.nats, &self.settings.token);
        let agent = AgentRequest { client: self.client, nats, token, hello };
        agent.request(kind, request, purpose, patience).await
    }
}

pub(crate) struct AgentRequest<'a> {
    pub(crate) client: &'a Client,
    pub(crate) nats: &'a NatsSettings,
    pub(crate) token: &'a FleetToken,
    pub(crate) hello: &'a AgentHello,
}

impl AgentRequest<'_> {
    /// Sends a request and waits for the reply; both are encrypted.
    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        kind: &str,
        request: &impl Serialize,
        purpose: &str,
        patience: Duration,
    ) -> Result<T, FleetError> {
        let Self { client, nats, token, hello } = self;
        let bytes = encrypt_json(token, &format!("{kind} {}", hello.id), request);
        let max = client.max_payload();
        if bytes.len() > max.saturating_sub(SEAL) {
            let size = bytes.len();
            return Err(FleetError::Spec(format!(
                "its spec takes {size} bytes, and a NATS message holds {max} (max_payload)"
            )));
        }
        let request = Request::new().payload(bytes.into()).timeout(Some(patience));
        let reply = client.send_request(agent_subject(&hello.id, kind), request).await;
        let reply = reply.map_err(|error| {
            nats.failed(format!("agent {} does not reply: {error}", hello.name))
        })?;
        decrypt_json(token, purpose, &reply.payload).ok_or_else(|| FleetError::Refused {
            agent: hello.name.clone(),
            why: "its reply is not valid".to_owned(),
        })
    }
}

/// Discovers agents once, and passes each reply within `round` to `each`: an agent, or the name of
/// one with another token.
pub(crate) async fn greetings(
    (client, nats): (&Client, &NatsSettings),
    token: &FleetToken,
    round: Duration,
    mut each: impl FnMut(Result<AgentHello, String>),
) -> Result<(), FleetError> {
    let challenge = random_text::<16>()?;
    let purpose = format!("hello {challenge}");
    let inbox = client.new_inbox();
    let mut replies = client.subscribe(inbox.clone()).await.map_err(|error| nats.failed(error))?;
    let question = seal_json(token, "discover", &Discover { challenge });
    let asked = client.publish_with_reply(DISCOVER, inbox, question.into()).await;
    asked.map_err(|error| nats.failed(error))?;
    let until = tokio::time::Instant::now() + round;
    while let Ok(Some(message)) = tokio::time::timeout_at(until, replies.next()).await {
        match serde_json::from_slice(&message.payload) {
            Ok(Greeting::OtherToken { name }) => each(Err(name)),
            Ok(Greeting::Hello(text)) => {
                let bytes = from_hex(&text);
                let hello = bytes.and_then(|bytes| open_json(token, &purpose, &bytes));
                hello.into_iter().for_each(|hello| each(Ok(hello)));
            }
            // A foreign message.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Splits a text into chunks of at most `most` bytes: those before the last, and the last.
fn split(text: &str, most: usize) -> (Vec<&str>, &str) {
    let (mut before, mut rest) = (Vec::new(), text);
    while rest.len() > most.max(4) {
        let (part, after) = rest.split_at(rest.floor_char_boundary(most.max(4)));
        before.push(part);
        rest = after;
    }
    (before, rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chunks_join_to_the_text(text in "\\PC{0,60}", most in 0usize..30) {
            let (before, last) = split(&text, most);
            prop_assert_eq!(before.concat() + last, text.clone());
            let sizes = before.iter().map(|part| part.len()).chain([last.len()]);
            prop_assert!(sizes.into_iter().all(|size| size <= most.max(4)));
        }
    }
}
