//! The slice of a run that an agent has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use gake_core::plan::Plan;
use gake_run::{Ready, Stop, StopHandle};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::forward::forward;
use super::outbox::Outbox;
use crate::frame::{self, Frame, HEADER};
use crate::message::{
    Control, StopOrder, control_purpose, control_subject, figures_purpose, figures_subject, opened,
};
use crate::token::{FleetToken, SEAL};

/// How long an agent goes on without a word of its coordinator.
const ALONE_MAX: Duration = Duration::from_secs(20);

/// How long the workers wait for the order to start.
const START_MAX: Duration = Duration::from_secs(60);

/// Between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// Bytes of a message beside seal, header and content.
const MARGIN: usize = 1_024;

/// The slice of a run that an agent has.
pub(crate) struct SliceRun {
    /// The run's id.
    pub(crate) run: String,
    purpose: String,
    subject: String,
    index: usize,
    plan: Arc<Plan>,
    control: Subscriber,
    /// The highest number of a control message so far.
    number: Option<u64>,
    ready: Option<Ready>,
    stop: Option<StopHandle>,
    frames: Option<UnboundedReceiver<Frame>>,
    outbox: Outbox,
    /// Whether the last frame is in the outbox.
    is_complete: bool,
    /// When the coordinator was heard last.
    heard: Instant,
    /// When something was sent last.
    sent: Instant,
}

/// What a slice waits for.
pub(crate) enum SliceInput {
    Control(async_nats::Message),
    Frame(Option<Frame>),
}

/// Whether an agent keeps its slice.
pub(crate) enum Outcome {
    Kept,
    /// It is over, as it should be.
    Done,
    /// It is over before its time; why.
    GivenUp(String),
}

impl SliceRun {
    /// A slice whose workers wait for the start.
    pub(crate) fn new(
        run: String,
        index: usize,
        plan: Arc<Plan>,
        ready: Ready,
        control: Subscriber,
    ) -> Self {
        let now = Instant::now();
        Self {
            purpose: figures_purpose(&run, index),
            subject: figures_subject(&run, &index.to_string()),
            run,
            index,
            plan,
            control,
            number: None,
            ready: Some(ready),
            stop: None,
            frames: None,
            outbox: Outbox::new(now),
            is_complete: false,
            heard: now,
            sent: now,
        }
    }

    /// Listens to the coordinator of a run.
    pub(crate) async fn listen(
        client: &Client,
        run: &str,
    ) -> Result<Subscriber, async_nats::SubscribeError> {
        client.subscribe(control_subject(run)).await
    }

    /// Starts the workers at an epoch of this machine's monotonic clock.
    ///
    /// # Errors
    /// Why they do not start, in a sentence.
    pub(crate) fn start(&mut self, epoch: u64) -> Result<(), String> {
        let now = gake_run::monotonic_now();
        if epoch <= now {
            return Err("the order to start came after the start".to_owned());
        }
        let ready = self.ready.take().ok_or("it has started already")?;
        let running = ready.start_at(epoch);
        let (sender, receiver) = unbounded_channel();
        (self.stop, self.frames) = (Some(running.stop.clone()), Some(receiver));
        self.heard = Instant::now();
        forward(running, Arc::clone(&self.plan), sender);
        Ok(())
    }

    /// Waits for what comes next.
    pub(crate) async fn next(&mut self) -> SliceInput {
        let frames = self.frames.as_mut().filter(|_| !self.is_complete);
        let frame = async {
            match frames {
                Some(frames) => frames.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(message) = self.control.next() => SliceInput::Control(message),
            frame = frame => SliceInput::Frame(frame),
        }
    }

    /// Heeds the coordinator.
    pub(crate) async fn heed(
        &mut self,
        client: &Client,
        token: &FleetToken,
        bytes: &[u8],
    ) -> Outcome {
        let purpose = control_purpose(&self.run);
        let Some(control) = opened::<Control>(token, &purpose, bytes) else { return Outcome::Kept };
        if self.number.is_some_and(|number| control.number <= number) {
            return Outcome::Kept;
        }
        let now = Instant::now();
        (self.number, self.heard) = (Some(control.number), now);
        if control.lost.contains(&self.index) {
            return Outcome::GivenUp("its coordinator has given it up".to_owned());
        }
        self.outbox.taken(control.taken.get(self.index).copied().unwrap_or(0), now);
        if control.over || self.is_complete && self.outbox.is_empty() {
            return Outcome::Done;
        }
        if let Some(stop) = &self.stop {
            match control.stop {
                StopOrder::Go => {}
                StopOrder::Drain => stop.stop(Stop::Drain),
                StopOrder::Now => stop.stop(Stop::Now),
            }
        }
        let again: Vec<_> =
            self.outbox.again(now).map(|(number, frame)| (number, frame.clone())).collect();
        for (number, frame) in again {
            self.send(client, token, number, &frame).await;
        }
        Outcome::Kept
    }

    /// Sends what the workers handed over.
    pub(crate) async fn pass_on(
        &mut self,
        client: &Client,
        token: &FleetToken,
        frame: Option<Frame>,
    ) {
        let frame = frame.unwrap_or_else(|| Frame::gave_up("its thread could not be started"));
        self.is_complete |= frame.is_last();
        let number = self.outbox.push(frame.clone(), Instant::now());
        self.send(client, token, number, &frame).await;
    }

    /// Sends a frame, unless there is no connection: then it waits in the outbox.
    async fn send(&mut self, client: &Client, token: &FleetToken, number: u64, frame: &Frame) {
        let part = client.max_payload().saturating_sub(SEAL + HEADER + MARGIN);
        for part in frame.parts(number, part) {
            self.publish(client, token, &part).await;
        }
    }

    async fn publish(&mut self, client: &Client, token: &FleetToken, part: &[u8]) {
        if client.connection_state() == State::Connected {
            let sealed = token.seal(&self.purpose, part);
            // What is lost on its way is sent again.
            let _ = client.publish(self.subject.clone(), sealed.into()).await;
            self.sent = Instant::now();
        }
    }

    /// Looks after the slice, several times a second.
    pub(crate) async fn look(&mut self, client: &Client, token: &FleetToken) -> Outcome {
        let now = Instant::now();
        let alone = now.duration_since(self.heard);
        if self.ready.is_some() && alone > START_MAX {
            return Outcome::GivenUp("it was not told to start".to_owned());
        }
        if self.ready.is_none() && alone > ALONE_MAX {
            return Outcome::GivenUp("its coordinator is silent".to_owned());
        }
        if self.outbox.is_full() {
            return Outcome::GivenUp("its coordinator takes no figures".to_owned());
        }
        if self.ready.is_none() && now.duration_since(self.sent) > ALIVE_EVERY {
            self.publish(client, token, &frame::alive()).await;
        }
        Outcome::Kept
    }

    /// Ends it at once, and says why to the coordinator.
    pub(crate) async fn give_up(&mut self, client: &Client, token: &FleetToken, why: &str) {
        if let Some(stop) = &self.stop {
            stop.stop(Stop::Now);
        }
        let frame = Frame::gave_up(why);
        let number = self.outbox.push(frame.clone(), Instant::now());
        self.send(client, token, number, &frame).await;
    }
}

impl Drop for SliceRun {
    fn drop(&mut self) {
        if let Some(stop) = &self.stop {
            stop.stop(Stop::Now);
        }
    }
}
