//! The slice of a run that an agent has.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use gake_core::clock::{Clock, SECOND};
use gake_core::plan::Plan;
use gake_core::schedule::Slice;
use gake_run::script::LoadedScript;
use gake_run::{PartLog, PreparedRun, RunClock, Stop, StopHandle, Takeover};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::forward::{SliceLog, forward};
use super::slice_state::{Outcome, SliceState, next_second};
use super::voice::ScriptVoice;
use crate::allow::SliceBounds;
use crate::frame::{self, Frame, HEADER};
use crate::message::{
    Control, Handover, HandoverAnswer, StopOrder, control_purpose, control_subject,
    figures_purpose, figures_subject, opened,
};
use crate::token::{FleetToken, SEAL};

/// Bytes of a message beside seal, header and content.
const MARGIN: usize = 1_024;

/// The slice of a run that an agent has.
pub(crate) struct SliceRun {
    /// The run's id.
    pub(crate) run: String,
    purpose: String,
    subject: String,
    plan: Arc<Plan>,
    control: Subscriber,
    ready: Option<PreparedRun>,
    script: Option<SliceScript>,
    log: Option<PartLog>,
    workers: Option<Workers>,
    state: SliceState,
    bounds: SliceBounds,
}

/// The workers of a slice that has started.
struct Workers {
    stop: StopHandle,
    takeover: Takeover,
    clock: RunClock,
    frames: UnboundedReceiver<Frame>,
    /// What the log lacks, in sentences, before the last frame.
    log_lacks: Receiver<String>,
}

/// The script of a slice, and what it says.
pub(crate) struct SliceScript {
    pub(crate) script: LoadedScript,
    pub(crate) voice: Arc<ScriptVoice>,
}

impl SliceScript {
    /// The script may end the test from here on: its own slice at once.
    fn connect(&self, frames: &UnboundedSender<Frame>, stop: StopHandle) {
        self.voice.connect(frames);
        let voice = Arc::clone(&self.voice);
        self.script.on_fail(move || voice.fail());
        let voice = Arc::clone(&self.voice);
        self.script.on_abort(move |reason| {
            voice.abort(reason);
            stop.stop(Stop::Now);
        });
    }
}

/// What a slice waits for.
pub(crate) enum SliceInput {
    Control(async_nats::Message),
    Frame(Option<Frame>),
}

impl SliceRun {
    /// Slice `index` of a run, whose workers wait for the start, within `bounds`.
    pub(crate) fn new(
        (run, index, alone_max): (String, usize, Duration),
        plan: Arc<Plan>,
        (ready, script, log): (PreparedRun, Option<SliceScript>, Option<PartLog>),
        control: Subscriber,
        bounds: SliceBounds,
    ) -> Self {
        Self {
            purpose: figures_purpose(&run, index),
            subject: figures_subject(&run, &index.to_string()),
            run,
            plan,
            control,
            ready: Some(ready),
            script,
            log,
            workers: None,
            state: SliceState::new(index, alone_max, Instant::now()),
            bounds,
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
        let (sender, frames) = unbounded_channel();
        let (lacks, log_lacks) = channel();
        self.workers = Some(Workers {
            stop: running.stop.clone(),
            takeover: running.takeover.clone(),
            clock: running.clock.clone(),
            frames,
            log_lacks,
        });
        self.state.start(Instant::now());
        if let Some(script) = &self.script {
            script.connect(&sender, running.stop.clone());
        }
        let voice = self.script.as_ref().map(|script| Arc::clone(&script.voice));
        let started_unix_ns = gake_run::unix_now() + (epoch - now);
        let log = self.log.take().map(|log| SliceLog { log, started_unix_ns, lacks });
        forward(running, Arc::clone(&self.plan), sender, voice, log);
        Ok(())
    }

    /// What the log of a slice that is done lacks, in sentences.
    pub(crate) fn log_lacks(&self) -> Vec<String> {
        self.workers
            .as_ref()
            .map_or_else(Vec::new, |workers| workers.log_lacks.try_iter().collect())
    }

    /// Waits for what comes next.
    pub(crate) async fn next(&mut self) -> SliceInput {
        let workers = self.workers.as_mut().filter(|_| !self.state.is_complete);
        let frame = async {
            match workers {
                Some(workers) => workers.frames.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(message) = self.control.next() => SliceInput::Control(message),
            frame = frame => SliceInput::Frame(frame),
        }
    }

    /// Applies what the coordinator says; what it takes over, in sentences.
    pub(crate) async fn apply(
        &mut self,
        client: &Client,
        token: &FleetToken,
        bytes: &[u8],
    ) -> (Outcome, Vec<String>) {
        let purpose = control_purpose(&self.run);
        let Some(control) = opened::<Control>(token, &purpose, bytes) else {
            return (Outcome::Kept, Vec::new());
        };
        let applied = self.state.apply(&control, Instant::now());
        if applied.outcome != Outcome::Kept {
            return (applied.outcome, Vec::new());
        }
        if let Some(workers) = &self.workers {
            match applied.stop {
                StopOrder::Go => {}
                StopOrder::Drain => workers.stop.stop(Stop::Drain),
                StopOrder::Now => workers.stop.stop(Stop::Now),
            }
        }
        for (number, frame) in applied.again {
            self.send(client, token, number, &frame).await;
        }
        let mut told = Vec::new();
        for handover in applied.handovers {
            told.push(self.take_over(client, token, &handover).await);
        }
        (Outcome::Kept, told)
    }

    /// Takes arrivals of another agent over, when it can; what it does, in a sentence.
    async fn take_over(
        &mut self,
        client: &Client,
        token: &FleetToken,
        handover: &Handover,
    ) -> String {
        let Handover { id, scenario, index, of, not_before, .. } = *handover;
        let plan = self.plan.scenarios().get(scenario);
        let takeover = self.workers.as_ref().map(|workers| &workers.takeover);
        let can = index < of && takeover.is_some_and(|takeover| takeover.is_possible(scenario));
        let load = plan.and_then(|plan| plan.load.one());
        let is_possible = can && load.is_some_and(|load| self.bounds.budget.take(load, of));
        let now = self.workers.as_ref().map_or(0, |workers| workers.clock.now());
        let from = is_possible.then(|| next_second(now.max(not_before)));
        // The answer comes before any figure of these arrivals.
        self.pass_on(client, token, Some(Frame::handover(&HandoverAnswer { id, from }))).await;
        let (Some(workers), Some(from)) = (&self.workers, from) else {
            return format!("arrivals of a lost agent were refused: 1 of {of}");
        };
        workers.takeover.take(scenario, Slice::new(index, of), from);
        let second = from / SECOND;
        format!("from second {second} on, 1 of {of} arrivals is taken over from a lost agent")
    }

    /// Sends what the workers handed over.
    pub(crate) async fn pass_on(
        &mut self,
        client: &Client,
        token: &FleetToken,
        frame: Option<Frame>,
    ) {
        let frame = frame.unwrap_or_else(|| Frame::gave_up("its thread could not be started"));
        let number = self.state.keep(frame.clone(), Instant::now());
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
            self.state.sent = Instant::now();
        }
    }

    /// Looks after the slice, several times a second.
    pub(crate) async fn look(&mut self, client: &Client, token: &FleetToken) -> Outcome {
        let now = Instant::now();
        let is_connected = client.connection_state() == State::Connected;
        let outcome = self.state.look(now, is_connected);
        self.end_in_time();
        if let Some(SliceScript { voice, .. }) = &self.script {
            voice.hold(self.state.is_behind());
        }
        if outcome == Outcome::Kept && self.state.is_quiet(now) {
            self.publish(client, token, &frame::alive()).await;
        }
        outcome
    }

    /// Ends what goes on past the bounds, whatever the plan says.
    fn end_in_time(&mut self) {
        let Some(workers) = &self.workers else { return };
        let now = Duration::from_nanos(workers.clock.now());
        if self.bounds.end.take_if(|end| now > *end).is_some() {
            workers.stop.stop(Stop::Now);
            if let Some(SliceScript { voice, .. }) = &self.script {
                voice.warn("the agent's --max-duration is over: what was in flight was cut");
            }
        }
    }

    /// Ends it at once, and says why to the coordinator.
    pub(crate) async fn give_up(&mut self, client: &Client, token: &FleetToken, why: &str) {
        if let Some(workers) = &self.workers {
            workers.stop.stop(Stop::Now);
        }
        self.pass_on(client, token, Some(Frame::gave_up(why))).await;
    }
}

impl Drop for SliceRun {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.stop.stop(Stop::Now);
        }
    }
}
