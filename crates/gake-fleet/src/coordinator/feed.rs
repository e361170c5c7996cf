//! What goes on between coordinator and agents during a run.

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

use super::conduct::{CONTROL_EVERY, Conduct};
use super::journal::JournalReader;
use super::journal::stream::{JournalStream, StreamAnswer};
use crate::FleetError;
use crate::message::{
    Control, StopAnswer, StopRequest, control_purpose, control_subject, figures_purpose,
    journal_purpose, journal_subject, opened, sealed, sealed_bytes,
};
use crate::script::{ScriptEvent, ScriptListener};
use crate::token::FleetToken;

/// How often agents are looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the end of a run waits for its journal.
const STORED_MAX: Duration = Duration::from_secs(5);

/// Entries of a journal that are asked for at once.
const READ_AT_ONCE: usize = 64;

/// The numbers of the agents that are lost, as they are known during the run.
pub(crate) type LostAgents = Arc<Mutex<Vec<usize>>>;

/// Hears what happens to the agents of a run, and to the way to them, as soon as it is known.
pub type FleetListener = Arc<dyn Fn(&RunEvent) + Send + Sync>;

/// Passes on what the agents of a run send, to its end.
pub(crate) struct Feed {
    pub(crate) client: Client,
    pub(crate) token: FleetToken,
    pub(crate) run: String,
    pub(crate) figures: Subscriber,
    /// Its own control messages as NATS brings them back: agents can be heard then.
    pub(crate) control: Subscriber,
    /// Requests to end the run.
    pub(crate) stops: Subscriber,
    /// What NATS says of the entries of the journal.
    pub(crate) stored: Subscriber,
    /// Where it says that.
    pub(crate) inbox: String,
    pub(crate) conduct: Conduct,
    pub(crate) messages: Sender<Message>,
    pub(crate) stop: StopHandle,
    /// Interrupts this process, if it is known here.
    pub(crate) interrupt: Option<Interrupt>,
    /// Counts from the run's epoch.
    pub(crate) clock: RunClock,
    /// Hears what scripts do.
    pub(crate) listener: Option<ScriptListener>,
    /// The agents that are lost by now, for others.
    pub(crate) lost: LostAgents,
    /// Hears the events, the first `told` of which it has heard.
    pub(crate) events: Option<FleetListener>,
    pub(crate) told: usize,
}

impl Feed {
    /// Leads the run to its end; what is known then.
    pub(crate) async fn run(mut self) -> Conduct {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut over = None;
        loop {
            if self.conduct.joiner.is_over() {
                if over.is_none() && self.listener.is_some() {
                    self.conduct.end_journal(Instant::now());
                    self.write().await;
                }
                let since = *over.get_or_insert_with(Instant::now);
                let journal = self.conduct.journal.as_ref();
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
            self.tell_events();
            self.write().await;
        }
        self.tell_events();
        let over = self.conduct.control(self.stop.asked(), Instant::now(), true);
        self.say(&over).await;
        // Agents that miss it notice that nobody asks them any more.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        self.conduct
    }

    /// Does again what earlier coordinators did, by the first `entries` messages of their journal,
    /// and leads the run on.
    pub(crate) async fn go_on(mut self, journal: JournalStream, entries: u64) -> Conduct {
        let repeated = self.repeat(&journal, entries).await;
        // What happened before was told before.
        self.told = self.conduct.joiner.events.len();
        match repeated {
            Ok(()) => self.conduct.go_on((Instant::now(), self.now())),
            Err(error) => {
                let lost = self.conduct.give_up(self.now(), &error.to_string());
                self.pass_on(lost);
            }
        }
        self.stop.stop(self.conduct.asked.into());
        self.run().await
    }

    async fn repeat(&mut self, journal: &JournalStream, entries: u64) -> Result<(), FleetError> {
        let mut reader = JournalReader::default();
        let read = stream::iter(1..=entries).map(|number| journal.get(number));
        let mut read = std::pin::pin!(read.buffered(READ_AT_ONCE));
        let mut said = Instant::now();
        while let Some(bytes) = read.next().await {
            if said.elapsed() >= CONTROL_EVERY {
                said = Instant::now();
                let control = self.conduct.sign_of_life();
                self.say(&control).await;
            }
            if let Some(entry) = reader.take(&bytes?) {
                let messages = self.conduct.repeat(&entry);
                // What it wrote was shown already.
                self.tell(|event| {
                    !matches!(event, ScriptEvent::Line(_) | ScriptEvent::LinesLost(_))
                });
                self.pass_on(messages);
            }
        }
        Ok(())
    }

    /// Tells what scripts did, as far as it `is_news`.
    fn tell(&mut self, is_news: impl Fn(&ScriptEvent) -> bool) {
        let scripted = std::mem::take(&mut self.conduct.joiner.scripted);
        let Some(listener) = &self.listener else { return };
        for (index, event) in scripted.into_iter().filter(|(_, event)| is_news(event)) {
            listener(&self.conduct.joiner.members[index].name, event);
        }
    }

    /// Tells what happened since it was told last.
    fn tell_events(&mut self) {
        let events = &self.conduct.joiner.events;
        if let Some(listener) = &self.events {
            events.iter().skip(self.told).for_each(|event| listener(event));
        }
        self.told = events.len();
    }

    /// Nanoseconds since the epoch; 0 before it.
    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn pass_on(&self, messages: Vec<Message>) {
        for message in messages {
            // A receiver that is gone has given the run up.
            let _ = self.messages.send(message);
        }
    }

    fn take(&mut self, message: &async_nats::Message) {
        let index = message.subject.rsplit('.').next().and_then(|text| text.parse().ok());
        let Some(index) = index else { return };
        let purpose = figures_purpose(&self.run, index);
        let Some(part) = self.token.open(&purpose, &message.payload) else { return };
        let messages = self.conduct.take(index, part, (Instant::now(), self.now()));
        self.tell(|_| true);
        self.pass_on(messages);
    }

    async fn hear(&mut self, message: &async_nats::Message) {
        let purpose = control_purpose(&self.run);
        let control = opened::<Control>(&self.token, &purpose, &message.payload);
        let Some(Control { number, .. }) = control else { return };
        self.conduct.echo(number, Instant::now());
        if self.conduct.is_replaced() {
            let messages = self.conduct.leave(self.now());
            self.pass_on(messages);
        } else if self.conduct.may_delete_journal() {
            self.delete_journal().await;
        }
    }

    /// Deletes a journal that was given up: whoever went on by it would wait for ever for figures
    /// that agents do not keep any more.
    async fn delete_journal(&self) {
        let subject = JournalStream::delete_subject(&self.run);
        // JetStream ignores requests without a reply subject. This one is no entry's.
        let reply = format!("{}.deleted", self.inbox);
        // The end of the run deletes it if this does not.
        let _ = self.client.publish_with_reply(subject, reply, Bytes::new()).await;
    }

    /// Hears what NATS says of an entry of the journal.
    fn stored(&mut self, message: &async_nats::Message) {
        let mut place = message.subject.rsplit('.');
        let number = place.next().and_then(|text| text.parse().ok());
        let attempt = place.next().and_then(|text| text.parse().ok());
        let (Some(number), Some(attempt)) = (number, attempt) else { return };
        let now = self.now();
        let Some(journal) = &mut self.conduct.journal else { return };
        match StreamAnswer::read(&message.payload) {
            Some(StreamAnswer { error: Some(error), .. }) => {
                self.conduct.drop_journal(now, &error.description);
            }
            Some(StreamAnswer { seq: Some(_), .. }) => {
                journal.stored(attempt, number, Instant::now());
            }
            // Without an answer of JetStream it is sent again.
            _ => {}
        }
    }

    /// Writes what the journal does not have yet.
    async fn write(&mut self) {
        if self.client.connection_state() != State::Connected {
            return;
        }
        let (subject, purpose) = (journal_subject(&self.run), journal_purpose(&self.run));
        while let Some(entry) = self.conduct.journal.as_mut().and_then(|journal| journal.unsent()) {
            let reply = format!("{}.{}.{}", self.inbox, entry.attempt, entry.number);
            let sealed = sealed_bytes(&self.token, &purpose, &entry.bytes);
            // What is lost on its way is sent again.
            let _ = self.client.publish_with_reply(subject.clone(), reply, sealed).await;
        }
    }

    async fn look(&mut self) {
        let is_connected = self.client.connection_state() == State::Connected;
        let now = (Instant::now(), self.now());
        if self.interrupt.as_ref().is_some_and(Interrupt::came) {
            self.conduct.interrupt();
        }
        let looked = self.conduct.look(now, is_connected, self.stop.asked());
        self.pass_on(looked.messages);
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = self.conduct.joiner.lost();
        if looked.drain {
            self.stop.stop(Stop::Drain);
        }
        if let Some(control) = looked.control {
            self.say(&control).await;
        }
    }

    /// Ends the run, which somebody else asks for.
    async fn end(&mut self, message: &async_nats::Message) {
        let purpose = format!("stop {}", self.run);
        let request = opened::<StopRequest>(&self.token, &purpose, &message.payload);
        let Some(StopRequest { now, challenge, .. }) = request else { return };
        self.conduct.request_stop();
        self.stop.stop(if now { Stop::Now } else { Stop::Drain });
        if let Some(reply) = message.reply.clone() {
            let purpose = format!("stop-answer {challenge}");
            let answer = sealed(&self.token, &purpose, &StopAnswer { is_there: true });
            // Without the answer it asks the agents, which are stopping.
            let _ = self.client.publish(reply, answer.into()).await;
        }
    }

    async fn say(&self, control: &Control) {
        if self.client.connection_state() == State::Connected {
            let bytes = sealed(&self.token, &control_purpose(&self.run), control);
            // The next one says the same.
            let _ = self.client.publish(control_subject(&self.run), bytes.into()).await;
        }
    }
}

/// Tells the agents of a run that will not be.
pub(crate) async fn call_off(client: &Client, token: &FleetToken, run: &str) {
    let control = Control { number: u64::MAX, over: true, ..Control::default() };
    let bytes = sealed(token, &control_purpose(run), &control);
    // Agents that miss it wait for their start in vain, and give up.
    let _ = client.publish(control_subject(run), bytes.into()).await;
    let _ = tokio::time::timeout(Duration::from_secs(1), client.flush()).await;
}
