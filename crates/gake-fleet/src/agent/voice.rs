//! What a script on an agent says to its coordinator: lines of its log, and how it ends the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gake_run::script::{LogLevel, LogLine, ScriptLog};
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};

use crate::frame::Frame;
use crate::script::ScriptEvent;

/// Lines a second that are passed on.
const LINES_MAX: u32 = 100;

const SECOND: Duration = Duration::from_secs(1);

/// Passes on what a script says, from all threads.
#[derive(Debug, Default)]
pub(crate) struct ScriptVoice(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    /// Where it goes, from the start on. Weak: the frames end with the workers.
    frames: Option<WeakUnboundedSender<Frame>>,
    /// What was said before.
    early: Vec<Frame>,
    /// When the second began whose lines are counted.
    since: Option<Instant>,
    lines: u32,
    /// Lines that were not passed on.
    lost: u64,
    has_aborted: bool,
    has_failed: bool,
}

impl ScriptVoice {
    /// A log that is passed on; `console.debug` too if it `is_verbose`.
    pub(crate) fn log(self: &Arc<Self>, is_verbose: bool) -> ScriptLog {
        let voice = Arc::clone(self);
        Arc::new(move |line: &LogLine| {
            if is_verbose || line.level > LogLevel::Debug {
                voice.lock().line(line, Instant::now());
            }
        })
    }

    /// Says that the script ended the test, once.
    pub(crate) fn abort(&self, reason: &str) {
        let mut said = self.lock();
        if !std::mem::replace(&mut said.has_aborted, true) {
            said.say(&ScriptEvent::Aborted(reason.to_owned()));
        }
    }

    /// Says that the script marked the test as failed, once.
    pub(crate) fn fail(&self) {
        let mut said = self.lock();
        if !std::mem::replace(&mut said.has_failed, true) {
            said.say(&ScriptEvent::Failed);
        }
    }

    /// From here on everything goes to `frames`, what was said before too.
    pub(crate) fn connect(&self, frames: &UnboundedSender<Frame>) {
        let mut said = self.lock();
        said.frames = Some(frames.downgrade());
        for frame in std::mem::take(&mut said.early) {
            // An agent that gave the run up needs none.
            let _ = frames.send(frame);
        }
    }

    /// Says what was not passed on.
    pub(crate) fn end(&self) {
        self.lock().tell_lost();
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Said {
    fn line(&mut self, line: &LogLine, now: Instant) {
        if self.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            (self.since, self.lines) = (Some(now), 0);
            self.tell_lost();
        }
        let is_full = self.frames.is_none() && self.early.len() >= LINES_MAX as usize;
        if is_full || self.lines == LINES_MAX {
            self.lost += 1;
            return;
        }
        self.lines += 1;
        self.say(&ScriptEvent::Line(line.into()));
    }

    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.say(&ScriptEvent::LinesLost(lost));
        }
    }

    fn say(&mut self, event: &ScriptEvent) {
        let frame = Frame::script(event);
        match self.frames.as_ref().map(WeakUnboundedSender::upgrade) {
            None => self.early.push(frame),
            Some(Some(frames)) => drop(frames.send(frame)),
            // The workers have ended.
            Some(None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[test]
    fn lines_are_bounded_and_those_left_out_are_counted() {
        let voice = Arc::new(ScriptVoice::default());
        let line = LogLine { level: LogLevel::Info, message: "x".to_owned(), fields: Vec::new() };
        let start = Instant::now();
        for _ in 0..LINES_MAX + 7 {
            voice.lock().line(&line, start);
        }
        let (sender, mut frames) = unbounded_channel();
        voice.connect(&sender);
        voice.abort("over");
        voice.abort("again");
        voice.lock().line(&line, start + SECOND);
        voice.end();
        drop(sender);
        let mut count = 0;
        while let Ok(frame) = frames.try_recv() {
            count += 1;
            assert!(!frame.is_last());
        }
        // The abort once, the lines left out once, and one line of the next second.
        assert_eq!(count, LINES_MAX + 3);
        voice.abort("nobody hears it");
    }
}
