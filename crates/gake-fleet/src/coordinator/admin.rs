//! Administration from outside of a run: stopping it, and the events of agents.

use std::future::Future;
use std::time::Duration;

use async_nats::{Client, Request};

use super::finder::{AgentRequest, ROUND, greetings};
use super::journal::stream::JournalStream;
use super::orphan;
use crate::message::{
    AgentHello, LogQuestion, LogReply, StopOrder, StopReply, StopRequest, open_json, seal_json,
    stop_subject,
};
use crate::token::random_text;
use crate::{FleetError, FleetToken, NatsSettings};

/// Time limit for a reply of a coordinator or an agent.
const REPLY_MAX: Duration = Duration::from_secs(5);

/// The recipient of a stop request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopRecipient {
    /// The coordinator, which ends the run and shows the result.
    Coordinator,
    /// The agents, since there is no coordinator. Figures that are not in the journal are lost.
    Agents {
        /// Their names.
        names: Vec<String>,
        /// Whether another process can show the figures in the journal ([`Orphan`](crate::Orphan)).
        has_journal: bool,
    },
}

/// An event of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLogLine {
    /// Seconds since 1970, on the agent's clock.
    pub unix_seconds: u64,
    /// The agent's name.
    pub agent: String,
    /// What happened.
    pub text: String,
}

impl StopRecipient {
    /// Ends the run with the id `run`: no new arrivals, or with `now` an abort. `version` is that
    /// of gake. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, or the run does not exist.
    pub fn request_stop(
        nats: &NatsSettings,
        token: &FleetToken,
        run: &str,
        (now, version): (bool, &str),
    ) -> Result<Self, FleetError> {
        let none = || FleetError::NoRun { run: run.to_owned() };
        // It becomes part of a NATS subject.
        if run.is_empty() || !run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(none());
        }
        blocking(async {
            let client = nats.connect("gake").await?;
            let challenge = random_text::<16>()?;
            let request = StopRequest { run: run.to_owned(), now, challenge };
            if is_ended_by_coordinator(&client, token, &request).await {
                return Ok(Self::Coordinator);
            }
            let mut agents = agents(&client, nats, token).await?;
            agents.sort_by(|one, other| one.name.cmp(&other.name));
            agents.retain(|hello| hello.run.as_deref() == Some(run));
            if agents.is_empty() {
                return Err(none());
            }
            let stream = JournalStream {
                client: client.clone(),
                nats: nats.clone(),
                token: token.clone(),
                run: run.to_owned(),
            };
            let asked = if now { StopOrder::Now } else { StopOrder::Drain };
            // The agents must stop even if the journal cannot be written.
            let has_journal = orphan::note_stop(stream, version, asked).await.unwrap_or(false);
            let (mut stopped, mut failed) = (Vec::new(), None);
            for hello in &agents {
                let agent = AgentRequest { client: &client, nats, token, hello };
                let purpose = format!("stop-answer {}", request.challenge);
                // The others must stop even if one does not reply.
                match agent.request::<StopReply>("stop", &request, &purpose, REPLY_MAX).await {
                    Ok(reply) => stopped.extend(reply.is_there.then(|| hello.name.clone())),
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                Some(error) => Err(error),
                None if stopped.is_empty() => Err(none()),
                None => Ok(Self::Agents { names: stopped, has_journal }),
            }
        })
    }
}

impl AgentLogLine {
    /// Recent events of the agents with these names, or of all; the oldest first. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, or an agent does not exist or does not reply.
    pub fn fetch(
        nats: &NatsSettings,
        token: &FleetToken,
        names: &[String],
    ) -> Result<Vec<Self>, FleetError> {
        blocking(async {
            let client = nats.connect("gake").await?;
            let mut agents = agents(&client, nats, token).await?;
            let is_there = |name: &&String| !agents.iter().any(|hello| hello.name == **name);
            if let Some(name) = names.iter().find(is_there) {
                return Err(FleetError::NoAgent { name: name.clone() });
            }
            agents.retain(|hello| names.is_empty() || names.contains(&hello.name));
            let mut lines = Vec::new();
            for hello in &agents {
                let challenge = random_text::<16>()?;
                let purpose = format!("log-answer {challenge}");
                let agent = AgentRequest { client: &client, nats, token, hello };
                let question = LogQuestion { challenge };
                let reply: LogReply = agent.request("log", &question, &purpose, REPLY_MAX).await?;
                let agent = &hello.name;
                lines.extend(reply.events.into_iter().map(|(unix_seconds, text)| Self {
                    unix_seconds,
                    agent: agent.clone(),
                    text,
                }));
            }
            lines.sort_by_key(|line| line.unix_seconds);
            Ok(lines)
        })
    }
}

async fn is_ended_by_coordinator(
    client: &Client,
    token: &FleetToken,
    request: &StopRequest,
) -> bool {
    let bytes = seal_json(token, &format!("stop {}", request.run), request);
    let asked = Request::new().payload(bytes.into()).timeout(Some(REPLY_MAX));
    let reply = client.send_request(stop_subject(&request.run), asked).await;
    let purpose = format!("stop-answer {}", request.challenge);
    let reply =
        reply.ok().and_then(|reply| open_json::<StopReply>(token, &purpose, &reply.payload));
    reply.is_some_and(|reply| reply.is_there)
}

/// The agents with this token.
async fn agents(
    client: &Client,
    nats: &NatsSettings,
    token: &FleetToken,
) -> Result<Vec<AgentHello>, FleetError> {
    let mut agents = Vec::new();
    greetings((client, nats), token, ROUND, |greeting| agents.extend(greeting.ok())).await?;
    Ok(agents)
}

pub(super) fn blocking<T>(
    future: impl Future<Output = Result<T, FleetError>>,
) -> Result<T, FleetError> {
    super::runtime()?.block_on(future)
}
