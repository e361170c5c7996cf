//! The log of scripts on agents, written by its own thread: the thread that receives from agents
//! must not wait for a terminal or pipe.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gake_k6::test::{LogLevel, LogLine, Test};

/// Lines that may wait to be written; further ones are dropped and counted.
const WAITING_MAX: usize = 1_000;

/// Dropped lines by agent.
type DroppedCounts = Arc<Mutex<BTreeMap<String, u64>>>;

/// The log of scripts on agents.
#[derive(Debug, Clone)]
pub(super) struct AgentLog {
    waiting: SyncSender<LogCommand>,
    dropped: DroppedCounts,
}

#[derive(Debug)]
enum LogCommand {
    /// The name of an agent, and a line of its log.
    Line(String, LogLine),
    /// Replied to when everything before it is written.
    Flush(SyncSender<()>),
}

impl AgentLog {
    /// Starts the thread that writes to the log of `test`. It ends with the last clone.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(test: &Arc<Test>) -> std::io::Result<Self> {
        let test = Arc::clone(test);
        Self::written_by(move |level, message, fields| test.log(level, message, fields))
    }

    fn written_by(
        write: impl Fn(LogLevel, &str, &[(&'static str, &str)]) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (sender, waiting) = sync_channel(WAITING_MAX);
        let dropped = DroppedCounts::default();
        let counts = Arc::clone(&dropped);
        let thread = std::thread::Builder::new().name("gake-agent-log".to_owned());
        thread.spawn(move || write_all(&waiting, &counts, &write))?;
        Ok(Self { waiting: sender, dropped })
    }

    /// Queues a line. Never blocks: a line that finds the queue full is dropped and counted.
    pub(super) fn line(&self, agent: &str, line: LogLine) {
        if self.waiting.try_send(LogCommand::Line(agent.to_owned(), line)).is_err() {
            self.lost(agent, 1);
        }
    }

    /// Counts dropped lines of an agent; the log reports them before its next line.
    pub(super) fn lost(&self, agent: &str, count: u64) {
        *lock(&self.dropped).entry(agent.to_owned()).or_default() += count;
    }

    /// Waits until everything is written.
    pub(super) fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        if self.waiting.send(LogCommand::Flush(done)).is_ok() {
            // Without a reply the thread is gone, and its lines with it.
            let _ = flushed.recv();
        }
    }
}

fn write_all(
    waiting: &Receiver<LogCommand>,
    dropped: &DroppedCounts,
    write: &impl Fn(LogLevel, &str, &[(&'static str, &str)]),
) {
    for waiting in waiting {
        // A statement of its own, so that the lock is not held while a line is written.
        let left_out = std::mem::take(&mut *lock(dropped));
        for (agent, count) in left_out {
            let message = format!("{count} lines of the log were dropped: there were too many");
            write(LogLevel::Warning, &message, &[("agent", &agent)]);
        }
        match waiting {
            LogCommand::Line(agent, LogLine { level, message, fields }) => {
                let own = fields.iter().map(|(key, value)| (*key, &**value));
                let fields: Vec<_> = own.chain([("agent", agent.as_str())]).collect();
                write(level, &message, &fields);
            }
            // The caller may have gone.
            LogCommand::Flush(done) => drop(done.send(())),
        }
    }
}

fn lock(dropped: &DroppedCounts) -> MutexGuard<'_, BTreeMap<String, u64>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_log_blocks_no_agent() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let (gate, closed) = (Arc::new(Mutex::new(())), Arc::clone(&written));
        let held = gate.lock().unwrap();
        let behind = Arc::clone(&gate);
        let lines = AgentLog::written_by(move |_, message, fields| {
            drop(behind.lock());
            closed.lock().unwrap().push(format!("{} {message}", fields.last().unwrap().1));
        });
        let lines = lines.unwrap();
        let line = LogLine {
            level: LogLevel::Info,
            message: gake_text::redact::Redacted::plain("x"),
            fields: Vec::new(),
        };
        let total = 3 * WAITING_MAX;
        for _ in 0..total {
            lines.line("a", line.clone());
        }
        lines.lost("b", 7);
        drop(held);
        lines.flush();
        let written = written.lock().unwrap();
        let whole = written.iter().filter(|line| *line == "a x").count();
        assert!((WAITING_MAX..=WAITING_MAX + 1).contains(&whole), "{whole}");
        let reported = |agent: &str| {
            let own = written.iter().filter_map(|line| line.strip_prefix(agent)?.strip_prefix(' '));
            let counts =
                own.filter_map(|line| line.split_once(" lines of")?.0.parse::<usize>().ok());
            counts.sum::<usize>()
        };
        assert_eq!((whole + reported("a"), reported("b")), (total, 7), "every line is counted");
    }
}
