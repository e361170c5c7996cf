//! From the workers of a slice to frames.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use gake_core::plan::Plan;
use gake_core::record::Interval;
use gake_run::{Message, PartLog, RunHandle, Stop, WrittenLog, beside};
use tokio::sync::mpsc::UnboundedSender;

use super::voice::ScriptVoice;
use crate::frame::Frame;
use crate::message::LastWord;

/// The log of a slice.
pub(crate) struct SliceLog {
    pub(crate) log: PartLog,
    /// When the slice starts, in ns since 1970.
    pub(crate) started_unix_ns: u64,
    /// Where the sentences go that say what it lacks.
    pub(crate) lacks: Sender<String>,
}

/// Turns what the workers hand over into frames, to the end of the slice, on a thread of its own.
/// The frames that nobody has received yet are bounded by what the agent keeps. The log is whole
/// before the last frame.
pub(crate) fn forward(
    running: RunHandle,
    plan: Arc<Plan>,
    frames: UnboundedSender<Frame>,
    voice: Option<Arc<ScriptVoice>>,
    log: Option<SliceLog>,
) {
    let forward = move || {
        let mut forwarder = Forwarder { running, frames, ended: 0, log_lost: 0 };
        // What accompanies an open loop must not delay its arrivals; what is left after the last
        // one must not wait for a core.
        let mut written = None;
        let forwarded = beside(&plan, || {
            written = log.map(|log| Written::start(log, &plan));
            forwarder.forward(true)
        });
        let forwarded = forwarded.and_then(|()| forwarder.forward(false));
        let Forwarder { running, frames, log_lost, .. } = forwarder;
        let last = match forwarded {
            Ok(()) => Frame::last(&LastWord {
                rss_bytes: running.memory.highest(),
                cores: std::thread::available_parallelism().map_or(1, usize::from),
            }),
            Err(why) => Frame::gave_up(&why),
        };
        running.join();
        if let Some(voice) = voice {
            voice.end();
        }
        if let Some(written) = written {
            written.finish(log_lost);
        }
        // The agent may have given the run up.
        let _ = frames.send(last);
    };
    let started = std::thread::Builder::new().name("gake-forward".to_owned()).spawn(forward);
    // Without the thread the frames end, which the agent notices.
    drop(started);
}

/// A log in progress.
struct Written {
    log: io::Result<WrittenLog>,
    lacks: Sender<String>,
}

impl Written {
    fn start(log: SliceLog, plan: &Plan) -> Self {
        let SliceLog { log, started_unix_ns, lacks } = log;
        Self { log: log.start(plan, started_unix_ns), lacks }
    }

    /// Waits for the last line; `lost` requests were not passed to it.
    fn finish(self, lost: u64) {
        let sentences = match self.log {
            Ok(log) => log.finish(lost),
            Err(error) => vec![format!("the log's thread could not be started: {error}")],
        };
        // An agent that has given the run up does not want to know.
        sentences.into_iter().try_for_each(|text| self.lacks.send(text)).unwrap_or_default();
    }
}

struct Forwarder {
    running: RunHandle,
    frames: UnboundedSender<Frame>,
    /// Workers whose end is forwarded.
    ended: usize,
    /// Requests that the log could not take in time.
    log_lost: u64,
}

impl Forwarder {
    /// Forwards to the end; with `beside_workers`, no longer than there are workers to delay.
    fn forward(&mut self, beside_workers: bool) -> Result<(), String> {
        while self.ended < self.running.workers {
            if beside_workers && self.running.has_ended() {
                break;
            }
            let message = self.running.messages.recv();
            let message = message
                .map_err(|_| "a worker thread ended unexpectedly; this is a bug".to_owned())?;
            let frame = Frame::of(&message).map_err(|error| error.to_string())?;
            if self.frames.send(frame).is_err() {
                // Nobody wants the rest.
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

    /// Gives a worker its tallies back, whose memory is warm.
    fn give_back(&self, interval: Interval) {
        let Some(spares) = self.running.spares.get(interval.worker) else { return };
        for mut part in interval.scenarios {
            part.tally.clear();
            // A worker that has ended needs no more.
            let _ = spares.send(part.tally);
        }
    }
}
