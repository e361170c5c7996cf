//! The log of every request of a part of a run.

use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use gake_core::plan::Plan;
use gake_engine::{LogBatch, LogSender, log_channel};

use crate::RunError;
use crate::sink::{LogSink, SinkLosses, SinkStep};

/// Writes a line for each request of a part of a run: CSV or JSON, by the file's ending.
///
/// The part is made ready with it ([`PreparedRun::ready`](crate::PreparedRun::ready)) before it is known
/// when the run starts; lines are written from then on.
#[derive(Debug)]
pub struct SliceLog {
    sink: LogSink,
    /// Until workers have it.
    sender: Option<LogSender>,
    batches: Receiver<LogBatch>,
}

/// A log that is written while its part of the run goes on.
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

    /// Where the workers of the part send what came of their requests; once.
    pub(crate) fn take_sender(&mut self) -> Option<LogSender> {
        self.sender.take()
    }

    /// Writes what the workers of `plan` send, on a thread of the class of the caller's. The run
    /// starts at `started_unix_ns`, in ns since 1970.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self, plan: &Plan, started_unix_ns: u64) -> io::Result<SliceLogWriter> {
        let Self { mut sink, sender, batches } = self;
        // The log ends with the workers' senders.
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
    /// Waits for the last line, which follows the end of the workers. Returns what the log lacks, in
    /// sentences; `lost` requests were not passed to it.
    #[must_use]
    pub fn finish(self, lost: u64) -> Vec<String> {
        let losses = |error| SinkLosses { outcomes: lost, error, ..SinkLosses::default() };
        match self.0.join() {
            Ok((sink, written)) => {
                sink.sentences(&losses(written.err().map(|error| (SinkStep::Outcomes, error))))
            }
            Err(_) => vec!["the log's writer failed".to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;

    use super::*;

    #[test]
    fn what_a_log_lacks_is_told() {
        let plan = Plan::new("http://h/", Load::Closed { users: 1, think: Duration::ZERO });
        let folder = tempfile::tempdir().unwrap();
        assert!(SliceLog::create(&folder.path().join("log.txt")).is_err());
        let path = folder.path().join("log.csv");
        let told = |lost| SliceLog::create(&path).unwrap().start(&plan, 0).unwrap().finish(lost);
        assert_eq!(told(0), [""; 0]);
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("number,"));
        let told = told(7);
        assert!(told.len() == 1 && told[0].contains("7 requests are not in the log"), "{told:?}");
    }
}
