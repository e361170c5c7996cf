//! What is asked of a fleet from outside its runs: their end, and what happened to agents.

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

/// How long a coordinator or an agent may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Who was told to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopRecipient {
    /// Its coordinator, which ends the run and shows it.
    Coordinator,
    /// Its agents, since there is no coordinator. What the journal does not have of their figures is
    /// lost.
    Agents {
        /// Their names.
        names: Vec<String>,
        /// Whether another process can show what the journal has ([`Orphan`](crate::Orphan)).
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
    /// Ends the run with the id `run`: no new arrivals, or with `now` at once. `version` is that of
    /// gake. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, or nobody has the run.
    pub fn request_stop(
        nats: &NatsSettings,
        token: &FleetToken,
        run: &str,
        (now, version): (bool, &str),
    ) -> Result<Self, FleetError> {
        let none = || FleetError::NoRun { run: run.to_owned() };
        // It becomes a part of a subject.
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
            // Whatever keeps the journal from being written must not keep the agents going.
            let has_journal = orphan::note_stop(stream, version, asked).await.unwrap_or(false);
            let (mut told, mut failed) = (Vec::new(), None);
            for hello in &agents {
                let asked = AgentRequest { client: &client, nats, token, hello };
                let purpose = format!("stop-answer {}", request.challenge);
                // One that does not answer must not keep the others going.
                match asked.request::<StopReply>("stop", &request, &purpose, ANSWER_MAX).await {
                    Ok(answer) => told.extend(answer.is_there.then(|| hello.name.clone())),
                    Err(error) => failed = Some(error),
                }
            }
            match failed {
                Some(error) => Err(error),
                None if told.is_empty() => Err(none()),
                None => Ok(Self::Agents { names: told, has_journal }),
            }
        })
    }
}

impl AgentLogLine {
    /// What happened lately to the agents with these names, or to all; the oldest first. Blocks.
    ///
    /// # Errors
    /// When NATS cannot be used, an agent is not there, or one does not answer.
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
                let asked = AgentRequest { client: &client, nats, token, hello };
                let question = LogQuestion { challenge };
                let answer: LogReply =
                    asked.request("log", &question, &purpose, ANSWER_MAX).await?;
                let agent = &hello.name;
                lines.extend(answer.events.into_iter().map(|(unix_seconds, text)| Self {
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
    let asked = Request::new().payload(bytes.into()).timeout(Some(ANSWER_MAX));
    let answer = client.send_request(stop_subject(&request.run), asked).await;
    let purpose = format!("stop-answer {}", request.challenge);
    let answer =
        answer.ok().and_then(|answer| open_json::<StopReply>(token, &purpose, &answer.payload));
    answer.is_some_and(|answer| answer.is_there)
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
