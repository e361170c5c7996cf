//! The loop of a coordinator during a run: messages, journal, periodic checks.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use gake_core::clock::{Clock, Nanos};
use gake_core::record::RunEvent;
use gake_run::{Interrupt, Message, RunClock, Stop, StopHandle};

use super::controller::{CONTROL_EVERY, Controller};
use super::journal::JournalReader;
use super::journal::stream::{JournalStream, StreamReply};
use crate::FleetError;
use crate::message::{
    Control, StopReply, StopRequest, control_purpose, control_subject, figures_purpose,
    journal_purpose, journal_subject, open_json, seal_bytes, seal_json,
};
use crate::script::{ScriptEvent, ScriptListener};
use crate::token::FleetToken;

/// Interval of periodic checks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the end of a run waits for its journal.
const STORED_MAX: Duration = Duration::from_secs(5);

/// Entries of a journal that are requested concurrently.
const READ_AT_ONCE: usize = 64;

/// Indices of the agents that are lost so far.
pub(crate) type LostAgents = Arc<Mutex<Vec<usize>>>;

/// Receives events of agents and of the connection to NATS as soon as they are known.
pub type FleetListener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// The loop of a coordinator, from the start of a run to its end.
pub(crate) struct CoordinatorLoop {
    pub(crate) client: Client,
    pub(crate) token: FleetToken,
    pub(crate) run: String,
    pub(crate) figures: Subscriber,
    /// Echoes of its control messages, which show that agents can be received.
    pub(crate) control: Subscriber,
    /// Requests to stop the run.
    pub(crate) stops: Subscriber,
    /// Acknowledgements of journal entries by NATS.
    pub(crate) stored: Subscriber,
    /// The inbox for these acknowledgements.
    pub(crate) inbox: String,
    pub(crate) controller: Controller,
    pub(crate) messages: Sender<Message>,
    pub(crate) stop: StopHandle,
    /// The interrupt of this process.
    pub(crate) interrupt: Option<Interrupt>,
    /// The clock since the epoch of the run.
    pub(crate) clock: RunClock,
    /// Receives events of scripts.
    pub(crate) listener: Option<ScriptListener>,
    /// The agents that are lost so far, shared with the fleet.
    pub(crate) lost: LostAgents,
    /// Receives events; the first `reported` have been passed on.
    pub(crate) events: Option<FleetListener>,
    pub(crate) reported: usize,
}

impl CoordinatorLoop {
    /// Runs until the end of the run.
    pub(crate) async fn run(mut self) -> Controller {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut over = None;
        loop {
            if self.controller.joiner.is_over() {
                if over.is_none() && self.listener.is_some() {
                    self.controller.end_journal(Instant::now());
                    self.write().await;
                }
                let since = *over.get_or_insert_with(Instant::now);
                let journal = self.controller.journal.as_ref();
                let is_stored = journal.is_none_or(|journal| journal.is_stored());
                if is_stored || since.elapsed() > STORED_MAX {
                    break;
                }
            }
            tokio::select! {
                Some(message) = self.figures.next() => self.take(&message),
                Some(message) = self.control.next() => self.hear(&message).await,
                Some(message) = self.stops.next() => self.end(&message).await,
                Some(message) = self.stored.next() => self.stored(&message),
                _ = look.tick() => self.look().await,
            }
            self.report_events();
            self.write().await;
        }
        self.report_events();
        let over = self.controller.control(self.stop.asked(), Instant::now(), true);
        self.publish(&over).await;
        // Agents that miss it time out without a coordinator.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        self.controller
    }

    /// Replays the first `entries` messages of the journal of earlier coordinators, and continues
    /// the run.
    pub(crate) async fn resume(mut self, journal: JournalStream, entries: u64) -> Controller {
        let repeated = self.repeat(&journal, entries).await;
        // Earlier events were reported before.
        self.reported = self.controller.joiner.events.len();
        match repeated {
            Ok(()) => self.controller.resume((Instant::now(), self.now())),
            Err(error) => {
                let lost = self.controller.abandon(self.now(), &error.to_string());
                self.forward(lost);
            }
        }
        self.stop.stop(self.controller.asked.into());
        self.run().await
    }

    async fn repeat(&mut self, journal: &JournalStream, entries: u64) -> Result<(), FleetError> {
        let mut reader = JournalReader::default();
        let read = stream::iter(1..=entries).map(|number| journal.get(number));
        let mut read = std::pin::pin!(read.buffered(READ_AT_ONCE));
        let mut sent = Instant::now();
        while let Some(bytes) = read.next().await {
            if sent.elapsed() >= CONTROL_EVERY {
                sent = Instant::now();
                let control = self.controller.heartbeat();
                self.publish(&control).await;
            }
            if let Some(entry) = bytes?.and_then(|bytes| reader.take(&bytes)) {
                let messages = self.controller.repeat(&entry);
                // Lines of the log were shown before.
                self.report(|event| {
                    !matches!(event, ScriptEvent::Line(_) | ScriptEvent::LinesLost(_))
                });
                self.forward(messages);
            }
        }
        Ok(())
    }

    /// Passes on events of scripts that are `is_new`.
    fn report(&mut self, is_new: impl Fn(&ScriptEvent) -> bool) {
        let script_events = std::mem::take(&mut self.controller.joiner.script_events);
        let Some(listener) = &self.listener else { return };
        for (index, number, event) in script_events.into_iter().filter(|(.., event)| is_new(event))
        {
            listener(&self.controller.joiner.members[index].name, number, event);
        }
    }

    /// Passes on new events.
    fn report_events(&mut self) {
        let events = &self.controller.joiner.events;
        if let Some(listener) = &self.events {
            events.iter().skip(self.reported).for_each(|event| listener(event));
        }
        self.reported = events.len();
    }

    /// Nanoseconds since the epoch; 0 before it.
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn forward(&self, messages: Vec<Message>) {
        for message in messages {
            // The receiver may have been dropped.
            let _ = self.messages.send(message);
        }
    }

    fn take(&mut self, message: &async_nats::Message) {
        let index = message.subject.rsplit('.').next().and_then(|text| text.parse().ok());
        let Some(index) = index else { return };
        let purpose = figures_purpose(&self.run, index);
        let Some(chunk) = self.token.open(&purpose, &message.payload) else { return };
        let messages = self.controller.take(index, chunk, (Instant::now(), self.now()));
        self.report(|_| true);
        self.forward(messages);
    }

    async fn hear(&mut self, message: &async_nats::Message) {
        let purpose = control_purpose(&self.run);
        let control = open_json::<Control>(&self.token, &purpose, &message.payload);
        let Some(Control { number, .. }) = control else { return };
        self.controller.echo(number, Instant::now());
        if self.controller.is_replaced() {
            let messages = self.controller.leave(self.now());
            self.forward(messages);
        } else if self.controller.may_delete_journal() {
            self.delete_journal().await;
        }
    }

    /// Deletes an abandoned journal: with it, another coordinator would wait for figures that
    /// agents no longer keep.
    async fn delete_journal(&self) {
        let subject = JournalStream::delete_subject(&self.run);
        // JetStream ignores requests without a reply subject. No entry uses this one.
        let reply = format!("{}.deleted", self.inbox);
        // The end of the run deletes it if this fails.
        let _ = self.client.publish_with_reply(subject, reply, Bytes::new()).await;
    }

    /// Handles the acknowledgement of a journal entry.
    fn stored(&mut self, message: &async_nats::Message) {
        let mut place = message.subject.rsplit('.');
        let number = place.next().and_then(|text| text.parse().ok());
        let attempt = place.next().and_then(|text| text.parse().ok());
        let (Some(number), Some(attempt)) = (number, attempt) else { return };
        let now = self.now();
        let Some(journal) = &mut self.controller.journal else { return };
        match StreamReply::read(&message.payload) {
            Some(StreamReply { error: Some(error), .. }) => {
                self.controller.drop_journal(now, &error.description);
            }
            Some(StreamReply { seq: Some(_), .. }) => {
                journal.stored(attempt, number, Instant::now());
            }
            // Without a reply of JetStream the entry is resent.
            _ => {}
        }
    }

    /// Writes new entries of the journal.
    async fn write(&mut self) {
        if self.client.connection_state() != State::Connected {
            return;
        }
        let (subject, purpose) = (journal_subject(&self.run), journal_purpose(&self.run));
        while let Some(entry) =
            self.controller.journal.as_mut().and_then(|journal| journal.unsent())
        {
            let reply = format!("{}.{}.{}", self.inbox, entry.attempt, entry.number);
            let sealed = seal_bytes(&self.token, &purpose, &entry.bytes);
            // Lost messages are resent.
            let _ = self.client.publish_with_reply(subject.clone(), reply, sealed).await;
        }
    }

    async fn look(&mut self) {
        let is_connected = self.client.connection_state() == State::Connected;
        let now = (Instant::now(), self.now());
        if self.interrupt.as_ref().is_some_and(Interrupt::came) {
            self.controller.interrupt();
        }
        let looked = self.controller.look(now, is_connected, self.stop.asked());
        self.forward(looked.messages);
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = self.controller.joiner.lost();
        if looked.drain {
            self.stop.stop(Stop::Drain);
        }
        if let Some(control) = looked.control {
            self.publish(&control).await;
        }
    }

    /// Handles a request to stop the run.
    async fn end(&mut self, message: &async_nats::Message) {
        let purpose = format!("stop {}", self.run);
        let request = open_json::<StopRequest>(&self.token, &purpose, &message.payload);
        let Some(StopRequest { now, challenge, .. }) = request else { return };
        self.controller.request_stop();
        self.stop.stop(if now { Stop::Now } else { Stop::Drain });
        if let Some(reply) = message.reply.clone() {
            let purpose = format!("stop-answer {challenge}");
            let reply_body = seal_json(&self.token, &purpose, &StopReply { is_there: true });
            // Without a reply the request goes to the agents, which are stopping.
            let _ = self.client.publish(reply, reply_body.into()).await;
        }
    }

    async fn publish(&self, control: &Control) {
        if self.client.connection_state() == State::Connected {
            let bytes = seal_json(&self.token, &control_purpose(&self.run), control);
            // The next one repeats the content.
            let _ = self.client.publish(control_subject(&self.run), bytes.into()).await;
        }
    }
}

/// Releases the agents of a cancelled run.
pub(crate) async fn release_agents(client: &Client, token: &FleetToken, run: &str) {
    let control = Control { number: u64::MAX, over: true, ..Control::default() };
    let bytes = seal_json(token, &control_purpose(run), &control);
    // Agents that miss it time out waiting for the start.
    let _ = client.publish(control_subject(run), bytes.into()).await;
    let _ = tokio::time::timeout(Duration::from_secs(1), client.flush()).await;
}
