//! The sink for a log of every request.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use gake_core::record::{Outcome, Run};
use gake_core::spec::FieldPath;
use gake_files::Access;
use gake_report::{LogFormat, RequestLog};

use super::run_file::cannot;
use super::{OutcomeBounds, Sink, SinkInterests, SinkLosses, SinkStart, SinkStep};
use crate::RunError;

/// Writes a line for each request: CSV or JSON, by the file's extension.
#[derive(Debug)]
pub struct LogSink {
    path: PathBuf,
    format: LogFormat,
    /// Before the run begins.
    created: Option<File>,
    log: Option<RequestLog<BufWriter<File>>>,
}

impl LogSink {
    /// Batches that may wait: about 4 MiB.
    pub(crate) const QUEUE: usize = 16;

    /// Creates the file, or overwrites it.
    ///
    /// # Errors
    /// When it cannot be written, or its extension is not that of a format.
    pub fn create(path: &Path) -> Result<Self, RunError> {
        let format = LogFormat::of_path(path).ok_or_else(|| {
            let problem = format!("{}: a log ends in .csv or .json", path.display());
            RunError::spec(FieldPath::root(), problem)
        })?;
        let created = gake_files::create(path, Access::Owner)
            .map_err(|error| RunError::Sink(cannot(path, &error)))?;
        Ok(Self { path: path.to_owned(), format, created: Some(created), log: None })
    }

    /// Begins the log of a run that starts at `started_unix_ns`. Fails the second time.
    pub(crate) fn open(&mut self, started_unix_ns: u64, labels: &[String]) -> io::Result<()> {
        let created = self.created.take();
        let created = created.ok_or_else(|| io::Error::other("a log holds one run"))?;
        let out = BufWriter::with_capacity(1 << 18, created);
        self.log = Some(RequestLog::new(out, self.format, started_unix_ns, labels)?);
        Ok(())
    }

    pub(crate) fn write(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        self.log.as_mut().map_or(Ok(()), |log| log.write(outcomes))
    }

    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.log.take().map_or(Ok(()), |mut log| log.flush())
    }

    /// What is missing, in sentences.
    pub(crate) fn sentences(&self, losses: &SinkLosses) -> Vec<String> {
        let name = self.path.display();
        let mut sentences = Vec::new();
        match &losses.error {
            Some((SinkStep::Panic, _)) => {
                sentences.push(format!("{name}: the writer of the log failed"))
            }
            Some((_, error)) => sentences.push(format!("{name}: the log is incomplete: {error}")),
            None => {}
        }
        if losses.outcomes > 0 {
            sentences.push(format!(
                "{name}: {} requests are not in the log: its writer was too slow (disk or CPU); \
                 they are in the figures",
                losses.outcomes
            ));
        }
        sentences
    }
}

impl Sink for LogSink {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn takes(&self) -> SinkInterests {
        // It needs no responses, so their bytes are not bounded.
        SinkInterests { outcomes: Some(OutcomeBounds { batches: Self::QUEUE, bytes: usize::MAX }) }
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        let begun = self.open(run.started_unix_ns, &run.plan.labels);
        begun.map_err(|error| cannot(&self.path, &error))
    }

    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        self.write(outcomes)
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        self.close()
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        self.sentences(losses)
    }
}
