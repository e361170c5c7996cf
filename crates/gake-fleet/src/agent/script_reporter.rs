//! What a script on an agent says to its coordinator: lines of its log, and how it ends the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gake_run::script::{LogLevel, LogLine, ScriptLog};
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};

use crate::frame::Frame;
use crate::script::ScriptEvent;

/// Lines a second that are passed on.
const LINES_MAX: u32 = 100;

/// Bytes a second of them; as many before the start.
const BYTES_MAX: usize = 256 << 10;

const SECOND: Duration = Duration::from_secs(1);

/// Passes on what a script says, from all threads.
#[derive(Debug, Default)]
pub(crate) struct ScriptReporter(Mutex<ReporterState>);

#[derive(Debug, Default)]
struct ReporterState {
    /// Where it goes, from the start on. Weak: the frames end with the workers.
    frames: Option<WeakUnboundedSender<Frame>>,
    /// What was said before.
    early: Vec<Frame>,
    /// When the second began whose lines are counted.
    since: Option<Instant>,
    lines: u32,
    bytes: usize,
    /// Whether no line is passed on now.
    is_held: bool,
    /// Lines that were not passed on.
    lost: u64,
    has_aborted: bool,
    has_failed: bool,
}

impl ScriptReporter {
    /// A log that is passed on; `console.debug` too if it `is_verbose`.
    pub(crate) fn log(self: &Arc<Self>, is_verbose: bool) -> ScriptLog {
        let reporter = Arc::clone(self);
        Arc::new(move |line: &LogLine| {
            if is_verbose || line.level > LogLevel::Debug {
                reporter.lock().line(line, Instant::now());
            }
        })
    }

    /// Says that the script ended the test, once.
    pub(crate) fn abort(&self, reason: &str) {
        let mut said = self.lock();
        if !std::mem::replace(&mut said.has_aborted, true) {
            said.say(&ScriptEvent::aborted(reason));
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

    /// Passes on a line of the agent's own.
    pub(crate) fn warn(&self, message: &str) {
        let (level, fields) = (LogLevel::Warning, Vec::new());
        self.lock().line(&LogLine { level, message: message.to_owned(), fields }, Instant::now());
    }

    /// Leaves lines out, and counts them, as long as it `is_held`.
    pub(crate) fn hold(&self, is_held: bool) {
        self.lock().is_held = is_held;
    }

    /// Says what was not passed on.
    pub(crate) fn end(&self) {
        self.lock().tell_lost();
    }

    fn lock(&self) -> MutexGuard<'_, ReporterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReporterState {
    fn line(&mut self, line: &LogLine, now: Instant) {
        let is_over = self.since.is_none_or(|since| now.duration_since(since) >= SECOND);
        // All the time before the start counts as one second.
        if is_over && (self.since.is_none() || self.frames.is_some()) {
            (self.since, self.lines, self.bytes) = (Some(now), 0, 0);
            if !self.is_held {
                self.tell_lost();
            }
        }
        if self.is_held || self.lines == LINES_MAX {
            self.lost += 1;
            return;
        }
        let frame = Frame::script(&ScriptEvent::Line(line.into()));
        if self.bytes + frame.len() > BYTES_MAX {
            self.lost += 1;
            return;
        }
        self.lines += 1;
        self.bytes += frame.len();
        self.pass_on(frame);
    }

    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.say(&ScriptEvent::LinesLost(lost));
        }
    }

    fn say(&mut self, event: &ScriptEvent) {
        self.pass_on(Frame::script(event));
    }

    fn pass_on(&mut self, frame: Frame) {
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
        let reporter = Arc::new(ScriptReporter::default());
        let line = LogLine { level: LogLevel::Info, message: "x".to_owned(), fields: Vec::new() };
        let start = Instant::now();
        for _ in 0..LINES_MAX + 7 {
            reporter.lock().line(&line, start);
        }
        let (sender, mut frames) = unbounded_channel();
        reporter.connect(&sender);
        reporter.abort("over");
        reporter.abort("again");
        reporter.lock().line(&line, start + SECOND);
        reporter.end();
        drop(sender);
        let mut count = 0;
        while let Ok(frame) = frames.try_recv() {
            count += 1;
            assert!(!frame.is_last());
        }
        // The abort once, the lines left out once, and one line of the next second.
        assert_eq!(count, LINES_MAX + 3);
        reporter.abort("nobody hears it");
    }

    #[test]
    fn bytes_of_lines_are_bounded_as_well() {
        let reporter = Arc::new(ScriptReporter::default());
        let (sender, mut frames) = unbounded_channel();
        reporter.connect(&sender);
        let message = "x".repeat(60 << 10);
        let line = LogLine { level: LogLevel::Info, message, fields: Vec::new() };
        let start = Instant::now();
        let mut bytes = |at| {
            for _ in 0..LINES_MAX {
                reporter.lock().line(&line, at);
            }
            let all = std::iter::from_fn(|| frames.try_recv().ok());
            all.map(|frame| frame.len()).collect::<Vec<_>>()
        };
        assert_eq!(bytes(start).len(), 4, "256 KiB");
        let sizes = bytes(start + SECOND);
        assert_eq!(sizes.len(), 5, "those left out are told: {sizes:?}");
        // While the coordinator takes nothing only the end of the test is told.
        reporter.hold(true);
        assert_eq!(bytes(start + 2 * SECOND).len(), 0);
        reporter.abort("over");
        assert_eq!(bytes(start + 3 * SECOND).len(), 1);
        reporter.hold(false);
        assert_eq!(bytes(start + 4 * SECOND).len(), 5);
    }
}
