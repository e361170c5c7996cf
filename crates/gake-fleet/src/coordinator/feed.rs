//! What goes on between coordinator and agents during a run.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use gake_core::clock::Nanos;
use gake_run::{Message, Stop, StopHandle};

use super::conduct::Conduct;
use crate::message::{
    Control, StopAnswer, StopRequest, control_purpose, control_subject, figures_purpose, opened,
    sealed,
};
use crate::token::FleetToken;

/// How often agents are looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
    pub(crate) conduct: Conduct,
    pub(crate) messages: Sender<Message>,
    pub(crate) stop: StopHandle,
    /// On this machine's monotonic clock.
    pub(crate) epoch: u64,
}

impl Feed {
    /// Leads the run to its end; what is known then.
    pub(crate) async fn run(mut self) -> Conduct {
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.conduct.joiner.is_over() {
            tokio::select! {
                Some(message) = self.figures.next() => self.take(&message),
                Some(message) = self.control.next() => {
                    let purpose = control_purpose(&self.run);
                    if self.token.open(&purpose, &message.payload).is_some() {
                        self.conduct.echo(Instant::now());
                    }
                }
                Some(message) = self.stops.next() => self.end(&message).await,
                _ = look.tick() => self.look().await,
            }
        }
        let over = self.conduct.control(self.stop.asked(), Instant::now(), true);
        self.say(&over).await;
        // Agents that miss it notice that nobody asks them any more.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        self.conduct
    }

    /// Nanoseconds since the epoch; 0 before it.
    fn now(&self) -> Nanos {
        gake_run::monotonic_now().saturating_sub(self.epoch)
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
        let messages = self.conduct.joiner.take(index, part, self.now());
        self.pass_on(messages);
    }

    async fn look(&mut self) {
        let is_connected = self.client.connection_state() == State::Connected;
        let now = (Instant::now(), self.now());
        let looked = self.conduct.look(now, is_connected, self.stop.asked());
        self.pass_on(looked.messages);
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
        self.conduct.is_stopped = true;
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
    let control = Control { over: true, ..Control::default() };
    let bytes = sealed(token, &control_purpose(run), &control);
    // Agents that miss it wait for their start in vain, and give up.
    let _ = client.publish(control_subject(run), bytes.into()).await;
    let _ = tokio::time::timeout(Duration::from_secs(1), client.flush()).await;
}
