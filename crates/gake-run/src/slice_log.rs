//! The log of every request of a slice of a run.

use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use gake_core::plan::Plan;
use gake_engine::{LogBatch, LogSender, log_channel};

use crate::RunError;
use crate::sink::{LogSink, SinkLosses, SinkStep};

/// Writes a line for each request of a slice of a run: CSV or JSON, by the file's extension.
///
/// The slice is prepared with it ([`ResolvedRun::ready`](crate::ResolvedRun::ready)) before the
/// start of the run is known, which is when the first line can be written.
#[derive(Debug)]
pub struct SliceLog {
    sink: LogSink,
    /// Taken by the workers.
    sender: Option<LogSender>,
    batches: Receiver<LogBatch>,
}

/// A log in progress, written by its own thread.
#[derive(Debug)]
pub struct SliceLogWriter(JoinHandle<(LogSink, io::Result<()>)>);

impl SliceLog {
    /// Creates the file, or overwrites it.
    ///
    /// # Errors
    /// When it cannot be written, or its extension is not that of a format.
    pub fn create(path: &Path) -> Result<Self, RunError> {
        let (sender, batches) = log_channel(LogSink::QUEUE, usize::MAX);
        Ok(Self { sink: LogSink::create(path)?, sender: Some(sender), batches })
    }

    /// The sender for the workers; `None` the second time.
    pub(crate) fn take_sender(&mut self) -> Option<LogSender> {
        self.sender.take()
    }

    /// Starts the thread that writes outcomes of `plan`, in the caller's scheduling class. The run
    /// starts at `started_unix_ns`, in Unix nanoseconds.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self, plan: &Plan, started_unix_ns: u64) -> io::Result<SliceLogWriter> {
        let Self { mut sink, sender, batches } = self;
        // The channel closes with the workers' senders.
        drop(sender);
        let labels = plan.labels.clone();
        let write = move || {
            let written = sink.open(started_unix_ns, &labels).and_then(|()| {
                batches.iter().try_for_each(|batch| sink.write(&batch))?;
                sink.close()
            });
            (sink, written)
        };
        let thread = std::thread::Builder::new().name("gake-log".to_owned()).spawn(write)?;
        Ok(SliceLogWriter(thread))
    }
}

impl SliceLogWriter {
    /// Waits for the end of the log, after that of the workers. Returns what is missing, in
    /// sentences; `lost` requests were not passed to it.
    #[must_use]
    pub fn finish(self, lost: u64) -> Vec<String> {
        let losses = |error| SinkLosses { outcomes: lost, error, ..SinkLosses::default() };
        match self.0.join() {
            Ok((sink, written)) => {
                sink.sentences(&losses(written.err().map(|error| (SinkStep::Outcomes, error))))
            }
            Err(_) => vec!["the writer of the log failed".to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;

    use super::*;

    #[test]
    fn missing_lines_are_reported() {
        let plan = Plan::new("http://h/", Load::Closed { users: 1, think: Duration::ZERO });
        let folder = tempfile::tempdir().unwrap();
        assert!(SliceLog::create(&folder.path().join("log.txt")).is_err());
        let path = folder.path().join("log.csv");
        let losses = |lost| SliceLog::create(&path).unwrap().start(&plan, 0).unwrap().finish(lost);
        assert_eq!(losses(0), [""; 0]);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("number,"));
        let losses = losses(7);
        assert!(
            losses.len() == 1 && losses[0].contains("7 requests are not in the log"),
            "{losses:?}"
        );
    }
}
