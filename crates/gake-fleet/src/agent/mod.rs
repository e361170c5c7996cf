//! An agent: waits for runs, and does its slice of each.

mod forward;
mod outbox;
mod requests;
mod script_reporter;
mod slice_run;
pub(crate) mod slice_state;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Message, Subscriber};
use futures_util::StreamExt;
use gake_core::clock::SECOND;
use gake_run::Recordings;
use gake_text::redact::Redactor;
use serde::Serialize;
use slice_run::{SliceInput, SliceRun};
use slice_state::SliceOutcome;

use crate::allow::AgentLimits;
use crate::files::AgentFiles;
use crate::message::{
    AgentHello, AgentWeight, DISCOVER, Discover, Greeting, PROTOCOL, agent_subject, encrypt_json,
    hex, open_json, seal_json,
};
use crate::token::random_text;
use crate::{FleetError, FleetToken, NatsSettings};

/// How often an agent looks after itself.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Events that an agent keeps for those who ask.
const EVENTS_MAX: usize = 200;

/// An agent of a fleet.
#[derive(Clone)]
pub struct Agent {
    /// Its name in reports.
    pub name: String,
    /// The machine: name, system, cores.
    pub host: String,
    /// What coordinators choose it by: keys and values.
    pub tags: BTreeMap<String, String>,
    /// Most worker threads.
    pub cores: Option<usize>,
    /// How much of a run it takes, in proportion to others.
    pub weight: AgentWeight,
    /// Source addresses of its connections, instead of those that a run names: addresses, ranges,
    /// networks, names of interfaces.
    pub sources: Vec<String>,
    /// Reads recordings; without it, runs of recordings are refused.
    pub recordings: Option<Arc<dyn Recordings + Send + Sync>>,
    /// Whether it runs scripts.
    pub scripts: bool,
    /// What it may be made to do.
    pub limits: AgentLimits,
    /// The file that logs every request of its latest run, if there is one.
    pub log: Option<PathBuf>,
    /// Hides secrets in its events: the URLs of a run may hold some.
    pub redactor: Redactor,
    /// The NATS server.
    pub nats: NatsSettings,
    /// The fleet's token.
    pub token: FleetToken,
    /// The version of gake; a coordinator takes agents of its own version alone.
    pub version: String,
}

/// What happens to an agent, for whoever started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// It waits for runs at this server.
    Waiting(String),
    /// It has a slice of a run: what it is to do.
    Taken(String),
    /// It refused a run; why.
    Refused(String),
    /// The connection to NATS is lost. It is made again.
    Disconnected,
    /// NATS is there again, after this time.
    Reconnected(Duration),
    /// Its slice is done.
    Done,
    /// What its log of the slice lacks.
    LogLacks(String),
    /// It gave its slice up; why.
    GivenUp(String),
}

impl AgentEvent {
    /// The same without secrets.
    fn redacted(self, redactor: &Redactor) -> Self {
        let hide = |text: String| redactor.text(&text).into_owned();
        match self {
            Self::Taken(what) => Self::Taken(hide(what)),
            Self::Refused(why) => Self::Refused(hide(why)),
            Self::GivenUp(why) => Self::GivenUp(hide(why)),
            Self::Waiting(_)
            | Self::Disconnected
            | Self::Reconnected(_)
            | Self::Done
            | Self::LogLacks(_) => self,
        }
    }
}

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(server) => write!(f, "waiting for runs at {server}"),
            Self::Taken(what) | Self::LogLacks(what) => f.write_str(what),
            Self::Refused(why) => write!(f, "a run was refused: {why}"),
            Self::Disconnected => f.write_str("the connection to NATS is lost"),
            Self::Reconnected(after) => {
                write!(f, "NATS is there again after {:.1} s", after.as_secs_f64())
            }
            Self::Done => f.write_str("done"),
            Self::GivenUp(why) => write!(f, "a run was given up: {why}"),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// Waits for runs and does them, until something comes through `until`. Blocks.
    ///
    /// # Errors
    /// When the NATS server cannot be used. A connection that is lost later is made again.
    pub fn serve(
        &self,
        until: &Receiver<()>,
        tell: impl FnMut(AgentEvent),
    ) -> Result<(), FleetError> {
        // Of the normal class: an agent that is not heard counts as lost.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| FleetError::System(error.to_string()))?;
        let served = runtime.block_on(async {
            let client = self.nats.connect(&self.name).await?;
            let mut serving = AgentServer {
                agent: self,
                id: random_text::<8>()?,
                nonce: random_text::<16>()?,
                client,
                slice: None,
                parts: Vec::new(),
                files: AgentFiles::default(),
                events: VecDeque::new(),
                apart: None,
                tell,
            };
            serving.serve(until).await
        });
        // What could not be made ready in time is not waited for.
        runtime.shutdown_background();
        served
    }
}

/// An agent that is connected.
struct AgentServer<'a, T> {
    agent: &'a Agent,
    id: String,
    /// What the next offer must hold.
    nonce: String,
    client: Client,
    slice: Option<SliceRun>,
    /// The parts of a spec that will be offered.
    parts: Vec<String>,
    /// The files of specs.
    files: AgentFiles,
    /// What happened last: seconds since 1970, and what.
    events: VecDeque<(u64, String)>,
    /// Since when there is no connection.
    apart: Option<Instant>,
    tell: T,
}

impl<T: FnMut(AgentEvent)> AgentServer<'_, T> {
    async fn subscribe(&self, subject: String) -> Result<Subscriber, FleetError> {
        self.client.subscribe(subject).await.map_err(|error| self.agent.nats.failed(error))
    }

    async fn serve(&mut self, until: &Receiver<()>) -> Result<(), FleetError> {
        let mut discover = self.subscribe(DISCOVER.to_owned()).await?;
        let mut requests = self.subscribe(agent_subject(&self.id, "*")).await?;
        self.client.flush().await.map_err(|error| self.agent.nats.failed(error))?;
        self.say(AgentEvent::Waiting(self.agent.nats.shown()));
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(question) = discover.next() => self.greet(&question).await,
                Some(request) = requests.next() => self.answer(&request).await?,
                input = next_of(&mut self.slice) => self.slice_input(input).await,
                _ = look.tick() => {
                    if until.try_recv() != Err(TryRecvError::Empty) {
                        return self.leave().await;
                    }
                    self.look().await;
                }
            }
        }
    }

    /// Answers a coordinator that asks who is there.
    async fn greet(&mut self, question: &Message) {
        let token = &self.agent.token;
        let greeting = match open_json::<Discover>(token, "discover", &question.payload) {
            Some(Discover { challenge }) => {
                let hello = AgentHello {
                    id: self.id.clone(),
                    name: self.agent.name.clone(),
                    host: self.agent.host.clone(),
                    version: self.agent.version.clone(),
                    protocol: PROTOCOL,
                    tags: self.agent.tags.clone(),
                    cores: self.agent.cores.unwrap_or_else(all_cores),
                    weight: self.agent.weight,
                    takes_scripts: self.agent.scripts,
                    run: self.slice.as_ref().map(|slice| slice.run.clone()),
                    nonce: self.nonce.clone(),
                };
                Greeting::Hello(hex(&seal_json(token, &format!("hello {challenge}"), &hello)))
            }
            None => Greeting::OtherToken { name: self.agent.name.clone() },
        };
        self.reply(question, serde_json::to_vec(&greeting).unwrap_or_default()).await;
    }

    /// Tells whoever started the agent, and keeps it for those who ask.
    fn say(&mut self, event: AgentEvent) {
        let event = event.redacted(&self.agent.redactor);
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back((gake_run::unix_now() / SECOND, event.to_string()));
        (self.tell)(event);
    }

    async fn slice_input(&mut self, input: SliceInput) {
        let Some(slice) = &mut self.slice else { return };
        let token = &self.agent.token;
        let outcome = match input {
            SliceInput::Control(message) => {
                let (outcome, taken) = slice.apply(&self.client, token, &message.payload).await;
                taken.into_iter().for_each(|text| self.say(AgentEvent::Taken(text)));
                outcome
            }
            SliceInput::Frame(frame) => {
                slice.pass_on(&self.client, token, frame).await;
                SliceOutcome::Kept
            }
        };
        self.ended(outcome).await;
    }

    /// Tells when the connection is lost, and when it is there again.
    fn look_at_connection(&mut self) {
        let is_connected = self.client.connection_state() == State::Connected;
        match (is_connected, self.apart) {
            (false, None) => {
                self.apart = Some(Instant::now());
                self.say(AgentEvent::Disconnected);
            }
            (true, Some(since)) => {
                self.apart = None;
                self.say(AgentEvent::Reconnected(since.elapsed()));
            }
            (true, None) | (false, Some(_)) => {}
        }
    }

    async fn look(&mut self) {
        self.look_at_connection();
        let Some(slice) = &mut self.slice else { return };
        let outcome = slice.look(&self.client, &self.agent.token).await;
        self.ended(outcome).await;
    }

    /// Lets a slice go that is over.
    async fn ended(&mut self, outcome: SliceOutcome) {
        match outcome {
            SliceOutcome::Kept => {}
            SliceOutcome::Done => {
                let slice = self.slice.take();
                let lacks = slice.map_or_else(Vec::new, |slice| slice.log_lacks());
                lacks.into_iter().for_each(|text| self.say(AgentEvent::LogLacks(text)));
                self.say(AgentEvent::Done);
            }
            SliceOutcome::GivenUp(why) => {
                if let Some(mut slice) = self.slice.take() {
                    slice.give_up(&self.client, &self.agent.token, &why).await;
                }
                self.say(AgentEvent::GivenUp(why));
            }
        }
    }

    /// Ends the agent, and its slice if it has one.
    async fn leave(&mut self) -> Result<(), FleetError> {
        if let Some(mut slice) = self.slice.take() {
            slice.give_up(&self.client, &self.agent.token, "it was told to end").await;
            self.say(AgentEvent::GivenUp("the agent was told to end".to_owned()));
        }
        // Without a connection there is nobody to tell.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        Ok(())
    }

    async fn reply_hidden(&self, to: &Message, purpose: &str, answer: &impl Serialize) {
        self.reply(to, encrypt_json(&self.agent.token, purpose, answer)).await;
    }

    async fn reply(&self, to: &Message, bytes: Vec<u8>) {
        if let Some(subject) = to.reply.clone() {
            // A coordinator that gets no answer asks again, or goes without.
            let _ = self.client.publish(subject, bytes.into()).await;
        }
    }
}

/// Waits for what concerns the slice; for ever when there is none.
async fn next_of(slice: &mut Option<SliceRun>) -> SliceInput {
    match slice {
        Some(slice) => slice.next().await,
        None => std::future::pending().await,
    }
}

fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
