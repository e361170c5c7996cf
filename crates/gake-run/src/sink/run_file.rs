//! The run file as a sink.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use gake_core::clock::Nanos;
use gake_core::record::{GaugeReading, Run};
use gake_files::Access;
use gake_report::RunFile;

use super::{Sink, SinkLosses, SinkSecond, SinkStart, SinkStep};
use crate::RunError;

/// Writes the run file, second by second.
#[derive(Debug)]
pub struct RunFileSink {
    path: PathBuf,
    /// Until the run begins.
    created: Option<File>,
    file: Option<RunFile>,
}

impl RunFileSink {
    /// Creates the file, or overwrites it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self, RunError> {
        let created = gake_files::create(path, Access::Owner)
            .map_err(|error| RunError::Sink(cannot(path, &error)))?;
        Ok(Self { path: path.to_owned(), created: Some(created), file: None })
    }
}

impl Sink for RunFileSink {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn begin(&mut self, run: &SinkStart<'_>) -> Result<(), String> {
        let Some(created) = self.created.take() else {
            return Err(format!("{}: a run file holds one run", self.name()));
        };
        let write = || {
            let mut file = RunFile::new(created, run.plan, run.started_unix_ns)?;
            file.origin(run.origin)?;
            file.settings(run.settings)?;
            self.file = Some(file);
            Ok(())
        };
        write().map_err(|error: io::Error| cannot(&self.path, &error))
    }

    fn second(&mut self, second: &SinkSecond) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.second(&second.as_recorded())
    }

    fn readings(&mut self, at: Nanos, readings: &[GaugeReading]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.watched(at, readings))
    }

    fn end(&mut self, run: &Run) -> io::Result<()> {
        self.file.take().map_or(Ok(()), |file| file.finish(run))
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        match &losses.error {
            Some((SinkStep::Second, error)) => {
                vec![format!("{}: seconds of the run file are lost: {error}", self.name())]
            }
            Some((SinkStep::End, error)) => {
                vec![format!("{}: the run file has no end: {error}", self.name())]
            }
            _ => losses.sentences(&self.name()),
        }
    }
}

/// What is said of a file that cannot be written.
pub(super) fn cannot(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}
