//! Reports of a script to the coordinator: lines of its log, and how it ends the test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gake_run::script::{LogLevel, LogLine, ScriptLog};
use gake_text::redact::{Redactor, SecretNames};
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender};

use crate::frame::Frame;
use crate::script::ScriptEvent;

/// Maximum lines a second.
const LINES_MAX: u32 = 100;

/// Maximum bytes of lines a second, and before the start.
const BYTES_MAX: usize = 256 << 10;

const SECOND: Duration = Duration::from_secs(1);

/// Sends events of a script to the coordinator, from all threads.
#[derive(Debug, Default)]
pub(crate) struct ScriptReporter(Mutex<ReporterState>);

#[derive(Debug, Default)]
struct ReporterState {
    /// The index of the script in its run.
    number: usize,
    /// The channel, from the start on. Weak, since it must close with the workers.
    frames: Option<WeakUnboundedSender<Frame>>,
    /// Frames before the start.
    early: Vec<Frame>,
    /// The start of the second in which lines are counted.
    since: Option<Instant>,
    lines: u32,
    bytes: usize,
    /// Whether lines are dropped.
    is_held: bool,
    /// Number of dropped lines.
    lost: u64,
    has_aborted: bool,
    has_failed: bool,
}

impl ScriptReporter {
    /// The reporter of the script with this index.
    pub(crate) fn of(number: usize) -> Self {
        Self(Mutex::new(ReporterState { number, ..ReporterState::default() }))
    }

    /// A log that sends lines to the coordinator; `console.debug` only if it `is_verbose`.
    pub(crate) fn log(self: &Arc<Self>, is_verbose: bool) -> ScriptLog {
        let reporter = Arc::clone(self);
        Arc::new(move |line: &LogLine| {
            if is_verbose || line.level > LogLevel::Debug {
                reporter.lock().line(line, Instant::now());
            }
        })
    }

    /// Reports that the script aborted the test, once.
    pub(crate) fn abort(&self, reason: &str) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.has_aborted, true) {
            state.report(&ScriptEvent::aborted(reason));
        }
    }

    /// Reports that the script marked the test as failed, once.
    pub(crate) fn fail(&self) {
        let mut state = self.lock();
        if !std::mem::replace(&mut state.has_failed, true) {
            state.report(&ScriptEvent::Failed);
        }
    }

    /// Sends events to `frames` from now on, including earlier ones.
    pub(crate) fn connect(&self, frames: &UnboundedSender<Frame>) {
        let mut state = self.lock();
        state.frames = Some(frames.downgrade());
        for frame in std::mem::take(&mut state.early) {
            // The agent may have aborted the run.
            let _ = frames.send(frame);
        }
    }

    /// Sends a warning of the agent itself.
    pub(crate) fn warn(&self, message: &str) {
        let (level, fields) = (LogLevel::Warning, Vec::new());
        let message = Redactor::masking(SecretNames::default()).text(message);
        self.lock().line(&LogLine { level, message, fields }, Instant::now());
    }

    /// Drops and counts lines while it `is_held`.
    pub(crate) fn hold(&self, is_held: bool) {
        self.lock().is_held = is_held;
    }

    /// Reports dropped lines.
    pub(crate) fn end(&self) {
        self.lock().report_lost();
    }

    fn lock(&self) -> MutexGuard<'_, ReporterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReporterState {
    fn line(&mut self, line: &LogLine, now: Instant) {
        let is_over = self.since.is_none_or(|since| now.duration_since(since) >= SECOND);
        // The time before the start counts as one second.
        if is_over && (self.since.is_none() || self.frames.is_some()) {
            (self.since, self.lines, self.bytes) = (Some(now), 0, 0);
            if !self.is_held {
                self.report_lost();
            }
        }
        if self.is_held || self.lines == LINES_MAX {
            self.lost += 1;
            return;
        }
        let frame = Frame::script(self.number, &ScriptEvent::Line(line.into()));
        if self.bytes + frame.len() > BYTES_MAX {
            self.lost += 1;
            return;
        }
        self.lines += 1;
        self.bytes += frame.len();
        self.send(frame);
    }

    fn report_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.report(&ScriptEvent::LinesLost(lost));
        }
    }

    fn report(&mut self, event: &ScriptEvent) {
        self.send(Frame::script(self.number, event));
    }

    fn send(&mut self, frame: Frame) {
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

    use gake_text::redact::Redacted;

    use super::*;

    #[test]
    fn lines_are_bounded_and_dropped_ones_are_counted() {
        let reporter = Arc::new(ScriptReporter::default());
        let line =
            LogLine { level: LogLevel::Info, message: Redacted::plain("x"), fields: Vec::new() };
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
        // One abort, one count of dropped lines, and one line of the next second.
        assert_eq!(count, LINES_MAX + 3);
        reporter.abort("the channel is closed");
    }

    #[test]
    fn bytes_of_lines_are_bounded_as_well() {
        let reporter = Arc::new(ScriptReporter::default());
        let (sender, mut frames) = unbounded_channel();
        reporter.connect(&sender);
        let message = Redactor::off().text(&"x".repeat(60 << 10));
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
        assert_eq!(sizes.len(), 5, "dropped lines are reported: {sizes:?}");
        // Without acknowledgements, only the end of the test is reported.
        reporter.hold(true);
        assert_eq!(bytes(start + 2 * SECOND).len(), 0);
        reporter.abort("over");
        assert_eq!(bytes(start + 3 * SECOND).len(), 1);
        reporter.hold(false);
        assert_eq!(bytes(start + 4 * SECOND).len(), 5);
    }
}
