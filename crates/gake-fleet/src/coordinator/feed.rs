//! What goes on between coordinator and agents during a run.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use gake_core::clock::Nanos;
use gake_run::{Message, Stop, StopHandle};

use super::join::Joiner;
use super::settings::OnLoss;
use crate::message::{
    Control, StopOrder, control_purpose, control_subject, figures_purpose, sealed,
};
use crate::token::FleetToken;

/// How often agents are looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Between two control messages.
const CONTROL_EVERY: Duration = Duration::from_millis(400);

/// Without an echo for longer, the coordinator cannot hear anybody.
const ECHO_MAX: Duration = Duration::from_millis(1_500);

/// How long the coordinator waits for NATS before agents count as silent: they stop by themselves
/// after 20 s.
const APART_MAX: Duration = Duration::from_secs(25);

/// How long an agent may take to end after it was told to stop at once.
const NOW_MAX: Duration = Duration::from_secs(10);

/// Passes on what the agents of a run send, to its end.
pub(crate) struct Feed {
    pub(crate) client: Client,
    pub(crate) token: FleetToken,
    pub(crate) run: String,
    pub(crate) figures: Subscriber,
    /// Its own control messages as NATS brings them back: agents can be heard then.
    pub(crate) echo: Subscriber,
    pub(crate) joiner: Joiner,
    pub(crate) messages: Sender<Message>,
    pub(crate) stop: StopHandle,
    /// On this machine's monotonic clock.
    pub(crate) epoch: u64,
    pub(crate) on_loss: OnLoss,
}

/// What is known at the end.
pub(crate) struct FeedEnd {
    pub(crate) joiner: Joiner,
    /// Why the run was ended before its time, if it was.
    pub(crate) aborted: Option<String>,
}

/// What changes while a run goes on.
struct Progress {
    /// The number of the next control message.
    number: u64,
    controlled: Instant,
    /// What the last one said.
    said: Stop,
    /// When the last echo came.
    echoed: Instant,
    /// Since when there is no connection.
    apart: Option<Instant>,
    /// When the run was told to stop.
    stopped: Option<Nanos>,
    /// When it was told to stop at once.
    cut: Option<Instant>,
    aborted: Option<String>,
}

impl Feed {
    pub(crate) async fn run(mut self) -> FeedEnd {
        let mut progress = Progress {
            number: 0,
            controlled: Instant::now(),
            said: Stop::Go,
            echoed: Instant::now(),
            apart: None,
            stopped: None,
            cut: None,
            aborted: None,
        };
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.joiner.is_over() {
            tokio::select! {
                Some(message) = self.figures.next() => self.take(&message),
                Some(message) = self.echo.next() => {
                    let purpose = control_purpose(&self.run);
                    if self.token.open(&purpose, &message.payload).is_some() {
                        progress.echoed = Instant::now();
                    }
                }
                _ = look.tick() => self.look(&mut progress).await,
            }
        }
        self.control(&mut progress, true).await;
        // Agents that miss it notice that nobody asks them any more.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await;
        FeedEnd { joiner: self.joiner, aborted: progress.aborted }
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
        let messages = self.joiner.take(index, part, self.now());
        self.pass_on(messages);
    }

    async fn look(&mut self, progress: &mut Progress) {
        let is_connected = self.client.connection_state() == State::Connected;
        let is_connected = is_connected && progress.echoed.elapsed() < ECHO_MAX;
        progress.apart = match is_connected {
            true => None,
            false => Some(progress.apart.unwrap_or_else(Instant::now)),
        };
        let can_hear = progress.apart.is_none_or(|since| since.elapsed() > APART_MAX);
        let asked = self.stop.asked();
        if asked > Stop::Go && progress.stopped.is_none() {
            progress.stopped = Some(self.now());
        }
        if asked == Stop::Now {
            let since = *progress.cut.get_or_insert_with(Instant::now);
            if since.elapsed() > NOW_MAX {
                self.lose_all("it does not stop");
            }
        }
        let messages = self.joiner.look(self.now(), can_hear, progress.stopped);
        self.pass_on(messages);
        // Without any agent nobody sends the rest of the schedule.
        let is_alone = self.joiner.lost().len() == self.joiner.members.len();
        let is_wanted = is_alone || self.on_loss == OnLoss::Abort;
        if is_wanted && progress.stopped.is_none() && progress.aborted.is_none() {
            progress.aborted = self.joiner.events.first().map(|event| event.text.clone());
            if progress.aborted.is_some() {
                self.stop.stop(Stop::Drain);
            }
        }
        if asked != progress.said || progress.controlled.elapsed() >= CONTROL_EVERY {
            self.control(progress, false).await;
        }
    }

    fn lose_all(&mut self, why: &str) {
        let now = self.now();
        for index in 0..self.joiner.members.len() {
            if self.joiner.is_running(index) {
                let messages = self.joiner.lose(index, now, why);
                self.pass_on(messages);
            }
        }
    }

    /// Tells the agents how the run is to go on.
    async fn control(&self, progress: &mut Progress, over: bool) {
        let asked = self.stop.asked();
        (progress.said, progress.controlled) = (asked, Instant::now());
        if self.client.connection_state() != State::Connected {
            return;
        }
        let control = Control {
            number: progress.number,
            stop: match asked {
                Stop::Go => StopOrder::Go,
                Stop::Drain => StopOrder::Drain,
                Stop::Now => StopOrder::Now,
            },
            taken: self.joiner.taken(),
            lost: self.joiner.lost(),
            over,
        };
        progress.number += 1;
        let bytes = sealed(&self.token, &control_purpose(&self.run), &control);
        // The next one says the same.
        let _ = self.client.publish(control_subject(&self.run), bytes.into()).await;
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
