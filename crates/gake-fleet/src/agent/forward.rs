//! Forwarding of the workers' figures as frames.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use gake_core::plan::Plan;
use gake_core::record::Interval;
use gake_run::{Message, RunHandle, SliceLog, SliceLogWriter, Stop, beside};
use tokio::sync::mpsc::UnboundedSender;

use super::script_reporter::ScriptReporter;
use crate::frame::Frame;
use crate::message::AgentEnd;

/// A log to be started with the slice.
pub(crate) struct LogStart {
    pub(crate) log: SliceLog,
    /// The start of the slice, in Unix nanoseconds.
    pub(crate) started_unix_ns: u64,
    /// Receives losses of the log, in sentences.
    pub(crate) losses: Sender<String>,
}

/// Sends the workers' messages as frames until the slice ends, on its own thread. The outbox of the
/// agent bounds unsent frames. The log is complete before the last frame.
pub(crate) fn forward(
    running: RunHandle,
    plan: Arc<Plan>,
    frames: UnboundedSender<Frame>,
    reporters: Vec<Arc<ScriptReporter>>,
    log: Option<LogStart>,
) {
    let forward = move || {
        let mut forwarder = Forwarder { running, frames, ended: 0, log_lost: 0 };
        // During an open loop this thread must not delay arrivals; afterwards it must not wait for
        // a core.
        let mut written = None;
        let forwarded = beside(&plan, || {
            written = log.map(|log| RunningLog::start(log, &plan));
            forwarder.forward(true)
        });
        let forwarded = forwarded.and_then(|()| forwarder.forward(false));
        let Forwarder { running, frames, log_lost, .. } = forwarder;
        let last = match forwarded {
            Ok(()) => Frame::last(&AgentEnd {
                rss_bytes: running.memory.highest(),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            }),
            Err(why) => Frame::aborted(&why),
        };
        running.join();
        reporters.iter().for_each(|reporter| reporter.end());
        if let Some(written) = written {
            written.finish(log_lost);
        }
        // The agent may have aborted the run.
        let _ = frames.send(last);
    };
    let started = std::thread::Builder::new().name("gake-forward".to_owned()).spawn(forward);
    // Without the thread the channel closes, which the agent notices.
    drop(started);
}

/// A log in progress.
struct RunningLog {
    log: io::Result<SliceLogWriter>,
    losses: Sender<String>,
}

impl RunningLog {
    fn start(log: LogStart, plan: &Plan) -> Self {
        let LogStart { log, started_unix_ns, losses } = log;
        Self { log: log.start(plan, started_unix_ns), losses }
    }

    /// Waits for the end of the log; `lost` requests were not passed to it.
    fn finish(self, lost: u64) {
        let sentences = match self.log {
            Ok(log) => log.finish(lost),
            Err(error) => vec![format!("the log's thread could not be started: {error}")],
        };
        // The agent may have aborted the run.
        sentences.into_iter().try_for_each(|text| self.losses.send(text)).unwrap_or_default();
    }
}

struct Forwarder {
    running: RunHandle,
    frames: UnboundedSender<Frame>,
    /// Number of workers that have ended.
    ended: usize,
    /// Requests that the log could not take in time.
    log_lost: u64,
}

impl Forwarder {
    /// Forwards until the end; with `beside_workers`, only while there are workers to delay.
    fn forward(&mut self, beside_workers: bool) -> Result<(), String> {
        while self.ended < self.running.workers {
            if beside_workers && self.running.has_ended() {
                break;
            }
            let message = self.running.receive();
            let message = message
                .ok_or_else(|| "a worker thread ended unexpectedly; this is a bug".to_owned())?;
            let frame = Frame::of(&message).map_err(|error| error.to_string())?;
            if self.frames.send(frame).is_err() {
                // The agent has aborted the run.
                self.running.stop.stop(Stop::Now);
            }
            match message {
                Message::Ended(end) => {
                    self.ended += 1;
                    self.log_lost += end.log_lost;
                }
                Message::Interval(interval) => self.give_back(*interval),
            }
        }
        Ok(())
    }

    /// Returns tallies to their worker for reuse.
    fn give_back(&self, interval: Interval) {
        let Some(spares) = self.running.spares.get(interval.worker) else { return };
        for mut part in interval.scenarios {
            part.tally.clear();
            // The worker may have ended.
            let _ = spares.send(part.tally);
        }
    }
}
