//! A slice of a run on an agent.

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
use gake_run::{PreparedRun, RunClock, SliceLog, Stop, StopHandle, Takeover};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::forward::{LogStart, forward};
use super::script_reporter::ScriptReporter;
use super::slice_state::{SliceOutcome, SliceState, next_second};
use crate::allow::SliceBounds;
use crate::frame::{self, Frame, HEADER};
use crate::message::{
    Control, Handover, HandoverReply, StopOrder, control_purpose, control_subject, figures_purpose,
    figures_subject, open_json,
};
use crate::token::{FleetToken, SEAL};

/// Bytes of a message besides seal, header and content.
const MARGIN: usize = 1_024;

/// A slice of a run on an agent.
pub(crate) struct SliceRun {
    /// The id of the run.
    pub(crate) run: String,
    purpose: String,
    subject: String,
    plan: Arc<Plan>,
    control: Subscriber,
    ready: Option<PreparedRun>,
    scripts: Vec<SliceScript>,
    log: Option<SliceLog>,
    workers: Option<SliceWorkers>,
    state: SliceState,
    bounds: SliceBounds,
}

/// The workers of a slice that has started.
struct SliceWorkers {
    stop: StopHandle,
    takeover: Takeover,
    clock: RunClock,
    frames: UnboundedReceiver<Frame>,
    /// Losses of the log, in sentences, before the last frame.
    log_losses: Receiver<String>,
}

/// A script of a slice, and the reporter of its events.
pub(crate) struct SliceScript {
    pub(crate) script: LoadedScript,
    pub(crate) reporter: Arc<ScriptReporter>,
}

impl SliceScript {
    /// Connects the script: it may abort the test from now on, which stops its own slice
    /// immediately.
    fn connect(&self, frames: &UnboundedSender<Frame>, stop: StopHandle) {
        self.reporter.connect(frames);
        let reporter = Arc::clone(&self.reporter);
        self.script.on_fail(move || reporter.fail());
        let reporter = Arc::clone(&self.reporter);
        self.script.on_abort(move |reason| {
            reporter.abort(reason);
            stop.stop(Stop::Now);
        });
    }
}

pub(crate) enum SliceInput {
    Control(async_nats::Message),
    Frame(Option<Frame>),
}

impl SliceRun {
    /// Slice `index` of a run, whose workers wait for the start, within `bounds`.
    pub(crate) fn new(
        (run, index, alone_max): (String, usize, Duration),
        plan: Arc<Plan>,
        (ready, scripts, log): (PreparedRun, Vec<SliceScript>, Option<SliceLog>),
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
            scripts,
            log,
            workers: None,
            state: SliceState::new(index, alone_max, Instant::now()),
            bounds,
        }
    }

    /// Subscribes to control messages of a run.
    pub(crate) async fn listen(
        client: &Client,
        run: &str,
    ) -> Result<Subscriber, async_nats::SubscribeError> {
        client.subscribe(control_subject(run)).await
    }

    /// Starts the workers at an epoch of this machine's monotonic clock.
    ///
    /// # Errors
    /// Why they cannot start, in a sentence.
    pub(crate) fn start(&mut self, epoch: u64) -> Result<(), String> {
        let now = gake_run::monotonic_now();
        if epoch <= now {
            return Err("the order to start came too late".to_owned());
        }
        let ready = self.ready.take().ok_or("it has already started")?;
        let running = ready.start_at(epoch);
        let (sender, frames) = unbounded_channel();
        let (losses, log_losses) = channel();
        self.workers = Some(SliceWorkers {
            stop: running.stop.clone(),
            takeover: running.takeover.clone(),
            clock: running.clock.clone(),
            frames,
            log_losses,
        });
        self.state.start(Instant::now());
        for script in &self.scripts {
            script.connect(&sender, running.stop.clone());
        }
        let reporters = self.scripts.iter().map(|script| Arc::clone(&script.reporter)).collect();
        let started_unix_ns = gake_run::unix_now() + (epoch - now);
        let log = self.log.take().map(|log| LogStart { log, started_unix_ns, losses });
        forward(running, Arc::clone(&self.plan), sender, reporters, log);
        Ok(())
    }

    /// Losses of the log of a completed slice, in sentences.
    pub(crate) fn log_losses(&self) -> Vec<String> {
        self.workers
            .as_ref()
            .map_or_else(Vec::new, |workers| workers.log_losses.try_iter().collect())
    }

    /// Waits for the next input.
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

    /// Applies a control message. Returns descriptions of arrivals that it takes over.
    pub(crate) async fn apply(
        &mut self,
        client: &Client,
        token: &FleetToken,
        bytes: &[u8],
    ) -> (SliceOutcome, Vec<String>) {
        let purpose = control_purpose(&self.run);
        let Some(control) = open_json::<Control>(token, &purpose, bytes) else {
            return (SliceOutcome::InProgress, Vec::new());
        };
        let applied = self.state.apply(&control, Instant::now());
        if applied.outcome != SliceOutcome::InProgress {
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
        let mut taken_over = Vec::new();
        for handover in applied.handovers {
            taken_over.push(self.take_over(client, token, &handover).await);
        }
        (SliceOutcome::InProgress, taken_over)
    }

    /// Takes over arrivals of a lost agent if possible, and returns a description.
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
        // The reply must precede any figure of these arrivals.
        self.pass_on(client, token, Some(Frame::handover(&HandoverReply { id, from }))).await;
        let (Some(workers), Some(from)) = (&self.workers, from) else {
            return format!("arrivals of a lost agent were refused: 1 of {of}");
        };
        workers.takeover.take(scenario, Slice::new(index, of), from);
        let second = from / SECOND;
        format!("from second {second} on, 1 of {of} arrivals is taken over from a lost agent")
    }

    /// Stores and sends a frame from the workers.
    pub(crate) async fn pass_on(
        &mut self,
        client: &Client,
        token: &FleetToken,
        frame: Option<Frame>,
    ) {
        let frame = frame.unwrap_or_else(|| Frame::aborted("its thread could not be started"));
        let number = self.state.keep(frame.clone(), Instant::now());
        self.send(client, token, number, &frame).await;
    }

    /// Sends a frame. Without a connection it stays in the outbox.
    async fn send(&mut self, client: &Client, token: &FleetToken, number: u64, frame: &Frame) {
        let size = client.max_payload().saturating_sub(SEAL + HEADER + MARGIN);
        for chunk in frame.chunks(number, size) {
            self.publish(client, token, &chunk).await;
        }
    }

    async fn publish(&mut self, client: &Client, token: &FleetToken, chunk: &[u8]) {
        if client.connection_state() == State::Connected {
            let sealed = token.seal(&self.purpose, chunk);
            // Lost messages are resent.
            let _ = client.publish(self.subject.clone(), sealed.into()).await;
            self.state.sent = Instant::now();
        }
    }

    /// Periodic checks of the slice.
    pub(crate) async fn look(&mut self, client: &Client, token: &FleetToken) -> SliceOutcome {
        let now = Instant::now();
        let is_connected = client.connection_state() == State::Connected;
        let outcome = self.state.look(now, is_connected);
        self.end_in_time();
        for SliceScript { reporter, .. } in &self.scripts {
            reporter.hold(self.state.is_behind());
        }
        if outcome == SliceOutcome::InProgress && self.state.is_quiet(now) {
            self.publish(client, token, &frame::heartbeat()).await;
        }
        outcome
    }

    /// Aborts the slice at its time limit, whatever the plan is.
    fn end_in_time(&mut self) {
        let Some(workers) = &self.workers else { return };
        let now = Duration::from_nanos(workers.clock.now());
        if self.bounds.end.take_if(|end| now > *end).is_some() {
            // First, for what follows the end of the workers is lost.
            if let Some(SliceScript { reporter, .. }) = self.scripts.first() {
                reporter
                    .warn("the agent's --max-duration is over: requests in flight were aborted");
            }
            workers.stop.stop(Stop::Now);
        }
    }

    /// Aborts the slice and sends the reason to the coordinator.
    pub(crate) async fn abort(&mut self, client: &Client, token: &FleetToken, why: &str) {
        if let Some(workers) = &self.workers {
            workers.stop.stop(Stop::Now);
        }
        self.pass_on(client, token, Some(Frame::aborted(why))).await;
    }
}

impl Drop for SliceRun {
    fn drop(&mut self) {
        if let Some(workers) = &self.workers {
            workers.stop.stop(Stop::Now);
        }
    }
}
