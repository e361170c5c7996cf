//! An agent: waits for runs, and runs a slice of each.

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

/// Interval of periodic checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Number of events that an agent keeps for `gake fleet logs`.
const EVENTS_MAX: usize = 200;

/// An agent of a fleet.
#[derive(Clone)]
pub struct Agent {
    /// Its name in reports.
    pub name: String,
    /// The machine: name, system, cores.
    pub host: String,
    /// Tags by which coordinators select agents: keys and values.
    pub tags: BTreeMap<String, String>,
    /// Maximum number of worker threads.
    pub cores: Option<usize>,
    /// Its weight: how much of a run it takes relative to other agents.
    pub weight: AgentWeight,
    /// Source addresses of its connections, in place of the spec's: addresses, ranges, networks,
    /// names of interfaces.
    pub sources: Vec<String>,
    /// Reads recordings; without it, runs of recordings are refused.
    pub recordings: Option<Arc<dyn Recordings + Send + Sync>>,
    /// Whether it runs scripts.
    pub scripts: bool,
    /// Limits of what coordinators may request.
    pub limits: AgentLimits,
    /// The log of every request of its latest run.
    pub log: Option<PathBuf>,
    /// Hides secrets in its events: URLs of a run may contain some.
    pub redactor: Redactor,
    /// The NATS server.
    pub nats: NatsSettings,
    /// The fleet's token.
    pub token: FleetToken,
    /// The version of gake; coordinators accept only agents of their own version.
    pub version: String,
}

/// An event of an agent, for the program that runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// It waits for runs at this NATS server.
    Waiting(String),
    /// It accepted a slice of a run, or arrivals of a lost agent; a description.
    Taken(String),
    /// It refused a run, for this reason.
    Refused(String),
    /// The connection to NATS is lost. The agent reconnects.
    Disconnected,
    /// The connection to NATS was restored after this time.
    Reconnected(Duration),
    /// Its slice is done.
    Done,
    /// Lines are missing in the log of the slice.
    LogIncomplete(String),
    /// It aborted its slice, for this reason.
    Aborted(String),
}

impl AgentEvent {
    /// Hides secrets in the event.
    fn redacted(self, redactor: &Redactor) -> Self {
        let hide = |text: String| redactor.text(&text).into_inner();
        match self {
            Self::Taken(what) => Self::Taken(hide(what)),
            Self::Refused(why) => Self::Refused(hide(why)),
            Self::Aborted(why) => Self::Aborted(hide(why)),
            Self::Waiting(_)
            | Self::Disconnected
            | Self::Reconnected(_)
            | Self::Done
            | Self::LogIncomplete(_) => self,
        }
    }
}

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(server) => write!(f, "waiting for runs at {server}"),
            Self::Taken(what) | Self::LogIncomplete(what) => f.write_str(what),
            Self::Refused(why) => write!(f, "a run was refused: {why}"),
            Self::Disconnected => f.write_str("the connection to NATS is lost"),
            Self::Reconnected(after) => {
                write!(f, "reconnected to NATS after {:.1} s", after.as_secs_f64())
            }
            Self::Done => f.write_str("done"),
            Self::Aborted(why) => write!(f, "a run was aborted: {why}"),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// Waits for runs and runs its slices, until a message comes through `until`. Blocks.
    ///
    /// # Errors
    /// When the NATS server cannot be used. A connection that is lost later is restored.
    pub fn serve(
        &self,
        until: &Receiver<()>,
        notify: impl FnMut(AgentEvent),
    ) -> Result<(), FleetError> {
        // In the normal scheduling class: a silent agent counts as lost.
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
                disconnected: None,
                notify,
            };
            serving.serve(until).await
        });
        // Does not wait for preparations that took too long.
        runtime.shutdown_background();
        served
    }
}

/// A connected agent.
struct AgentServer<'a, T> {
    agent: &'a Agent,
    id: String,
    /// The nonce of the next offer.
    nonce: String,
    client: Client,
    slice: Option<SliceRun>,
    /// Chunks of a spec that will be offered.
    parts: Vec<String>,
    /// Files of specs.
    files: AgentFiles,
    /// The latest events, with seconds since 1970.
    events: VecDeque<(u64, String)>,
    /// Since when the connection is lost.
    disconnected: Option<Instant>,
    notify: T,
}

impl<T: FnMut(AgentEvent)> AgentServer<'_, T> {
    async fn subscribe(&self, subject: String) -> Result<Subscriber, FleetError> {
        self.client.subscribe(subject).await.map_err(|error| self.agent.nats.failed(error))
    }

    async fn serve(&mut self, until: &Receiver<()>) -> Result<(), FleetError> {
        let mut discover = self.subscribe(DISCOVER.to_owned()).await?;
        let mut requests = self.subscribe(agent_subject(&self.id, "*")).await?;
        self.client.flush().await.map_err(|error| self.agent.nats.failed(error))?;
        self.report(AgentEvent::Waiting(self.agent.nats.shown()));
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(question) = discover.next() => self.greet(&question).await,
                Some(request) = requests.next() => self.handle(&request).await?,
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

    /// Replies to a coordinator that looks for agents.
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

    /// Passes an event to the program, and stores it for `gake fleet logs`.
    fn report(&mut self, event: AgentEvent) {
        let event = event.redacted(&self.agent.redactor);
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back((gake_run::unix_now() / SECOND, event.to_string()));
        (self.notify)(event);
    }

    async fn slice_input(&mut self, input: SliceInput) {
        let Some(slice) = &mut self.slice else { return };
        let token = &self.agent.token;
        let outcome = match input {
            SliceInput::Control(message) => {
                let (outcome, taken) = slice.apply(&self.client, token, &message.payload).await;
                taken.into_iter().for_each(|text| self.report(AgentEvent::Taken(text)));
                outcome
            }
            SliceInput::Frame(frame) => {
                slice.pass_on(&self.client, token, frame).await;
                SliceOutcome::InProgress
            }
        };
        self.ended(outcome).await;
    }

    /// Reports when the connection is lost and when it is restored.
    fn check_connection(&mut self) {
        let is_connected = self.client.connection_state() == State::Connected;
        match (is_connected, self.disconnected) {
            (false, None) => {
                self.disconnected = Some(Instant::now());
                self.report(AgentEvent::Disconnected);
            }
            (true, Some(since)) => {
                self.disconnected = None;
                self.report(AgentEvent::Reconnected(since.elapsed()));
            }
            (true, None) | (false, Some(_)) => {}
        }
    }

    async fn look(&mut self) {
        self.check_connection();
        let Some(slice) = &mut self.slice else { return };
        let outcome = slice.look(&self.client, &self.agent.token).await;
        self.ended(outcome).await;
    }

    /// Drops a slice that has ended.
    async fn ended(&mut self, outcome: SliceOutcome) {
        match outcome {
            SliceOutcome::InProgress => {}
            SliceOutcome::Done => {
                let slice = self.slice.take();
                let losses = slice.map_or_else(Vec::new, |slice| slice.log_losses());
                losses.into_iter().for_each(|text| self.report(AgentEvent::LogIncomplete(text)));
                self.report(AgentEvent::Done);
            }
            SliceOutcome::Aborted(why) => {
                if let Some(mut slice) = self.slice.take() {
                    slice.abort(&self.client, &self.agent.token, &why).await;
                }
                self.report(AgentEvent::Aborted(why));
            }
        }
    }

    /// Ends the agent, and aborts its slice.
    async fn leave(&mut self) -> Result<(), FleetError> {
        if let Some(mut slice) = self.slice.take() {
            slice.abort(&self.client, &self.agent.token, "the agent was stopped").await;
            self.report(AgentEvent::Aborted("the agent was stopped".to_owned()));
        }
        // Fails without a connection.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        Ok(())
    }

    async fn reply_encrypted(&self, to: &Message, purpose: &str, reply: &impl Serialize) {
        self.reply(to, encrypt_json(&self.agent.token, purpose, reply)).await;
    }

    async fn reply(&self, to: &Message, bytes: Vec<u8>) {
        if let Some(subject) = to.reply.clone() {
            // Without a reply, a coordinator retries or does without the agent.
            let _ = self.client.publish(subject, bytes.into()).await;
        }
    }
}

/// Waits for input of the slice; forever if there is none.
async fn next_of(slice: &mut Option<SliceRun>) -> SliceInput {
    match slice {
        Some(slice) => slice.next().await,
        None => std::future::pending().await,
    }
}

fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
