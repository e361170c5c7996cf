//! From the workers of a slice to frames.

use std::sync::Arc;

use gake_core::plan::Plan;
use gake_core::record::Interval;
use gake_run::{Message, Running, Stop, beside};
use tokio::sync::mpsc::UnboundedSender;

use super::voice::ScriptVoice;
use crate::frame::Frame;
use crate::message::LastWord;

/// Turns what the workers hand over into frames, to the end of the slice, on a thread of its own.
/// The frames that nobody has received yet are bounded by what the agent keeps.
pub(crate) fn forward(
    running: Running,
    plan: Arc<Plan>,
    frames: UnboundedSender<Frame>,
    voice: Option<Arc<ScriptVoice>>,
) {
    let forward = move || {
        let mut forwarder = Forwarder { running, frames, ended: 0 };
        // What accompanies an open loop must not delay its arrivals; what is left after the last
        // one must not wait for a core.
        let forwarded =
            beside(&plan, || forwarder.forward(true)).and_then(|()| forwarder.forward(false));
        let Forwarder { running, frames, .. } = forwarder;
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
        // The agent may have given the run up.
        let _ = frames.send(last);
    };
    let started = std::thread::Builder::new().name("gake-forward".to_owned()).spawn(forward);
    // Without the thread the frames end, which the agent notices.
    drop(started);
}

struct Forwarder {
    running: Running,
    frames: UnboundedSender<Frame>,
    /// Workers whose end is forwarded.
    ended: usize,
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
                Message::Ended(_) => self.ended += 1,
                Message::Interval(interval) => self.give_back(*interval),
            }
        }
        Ok(())
    }

    /// Gives a worker its tallies back, whose memory is warm.
    fn give_back(&self, interval: Interval) {
        let Some(spares) = self.running.spares.get(interval.worker) else { return };
        for mut part in interval.parts {
            part.tally.clear();
            // A worker that has ended needs no more.
            let _ = spares.send(part.tally);
        }
    }
}
