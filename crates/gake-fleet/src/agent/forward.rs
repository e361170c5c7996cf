//! From the workers of a slice to frames.

use std::sync::Arc;

use gake_core::plan::Plan;
use gake_run::{Message, Running, beside, process_rss};
use tokio::sync::mpsc::UnboundedSender;

use crate::frame::Frame;
use crate::message::LastWord;

/// Turns what the workers hand over into frames, to the end of the slice, on a thread of its own.
/// The frames that nobody has received yet are bounded by what the agent keeps.
pub(crate) fn forward(running: Running, plan: Arc<Plan>, frames: UnboundedSender<Frame>) {
    let forward = move || {
        // What accompanies an open loop must not delay its arrivals.
        beside(&plan, || {
            let last = match to_the_end(&running, &frames) {
                Ok(()) => Frame::last(&LastWord {
                    rss_bytes: process_rss(),
                    cores: std::thread::available_parallelism().map_or(1, usize::from),
                }),
                Err(why) => Frame::gave_up(&why),
            };
            running.join();
            // The agent may have given the run up.
            let _ = frames.send(last);
        });
    };
    let started = std::thread::Builder::new().name("gake-forward".to_owned()).spawn(forward);
    // Without the thread the frames end, which the agent notices.
    drop(started);
}

fn to_the_end(running: &Running, frames: &UnboundedSender<Frame>) -> Result<(), String> {
    let mut ended = 0;
    while ended < running.workers {
        let message = running
            .messages
            .recv()
            .map_err(|_| "a worker thread ended unexpectedly; this is a bug".to_owned())?;
        let frame = Frame::of(&message).map_err(|error| error.to_string())?;
        if frames.send(frame).is_err() {
            // Nobody wants the rest.
            running.stop.stop(gake_run::Stop::Now);
        }
        match message {
            Message::Ended(_) => ended += 1,
            Message::Interval(interval) => {
                let Some(spares) = running.spares.get(interval.worker) else { continue };
                for mut part in interval.parts {
                    part.tally.clear();
                    // A worker that has ended needs no more.
                    let _ = spares.send(part.tally);
                }
            }
        }
    }
    Ok(())
}
