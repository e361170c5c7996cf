//! The seconds of results, for a run file.

use std::io::BufRead;

use gake_core::record::{Counts, Run};
use gake_core::work::Gauges;

use super::read::{RecordError, ResultReader};
use super::run::RunBuilder;
use crate::runfile::SecondRecord;

/// The seconds of results in order, in bounded memory. They include every result of the run: one
/// whose second is already closed counts in the next.
pub struct RecordSeconds<R> {
    reader: ResultReader<R>,
    /// The number of labels of the run.
    labels: usize,
    builder: Option<RunBuilder>,
    ended: bool,
}

impl<R: BufRead> RecordSeconds<R> {
    /// The seconds of the results from which `run` was made.
    pub fn new(reader: ResultReader<R>, run: &Run) -> Self {
        Self { reader, labels: run.plan.labels.len(), builder: None, ended: false }
    }

    /// The next second, `None` at the end.
    ///
    /// # Errors
    /// When the results cannot be read further.
    pub fn next_second(&mut self) -> Result<Option<SecondRecord>, RecordError> {
        loop {
            if let Some((at, tally)) = self.builder.as_mut().and_then(RunBuilder::next_closed) {
                let (warmup, gauges) = (Counts::default(), Gauges::default());
                let (asked, scenarios, tenths) = (None, Vec::new(), Vec::new());
                let cpu = 0;
                return Ok(Some(SecondRecord {
                    at,
                    asked,
                    tally,
                    scenarios,
                    warmup,
                    gauges,
                    cpu,
                    tenths,
                }));
            }
            if self.ended {
                return Ok(None);
            }
            match self.reader.next_record() {
                Ok(Some(record)) => {
                    let labels = self.labels;
                    let builder = self
                        .builder
                        .get_or_insert_with(|| RunBuilder::with_seconds(&record, labels));
                    builder.add(&record);
                }
                Ok(None) => {
                    self.ended = true;
                    if let Some(builder) = &mut self.builder {
                        builder.close_all();
                    }
                }
                Err(error @ (RecordError::Foreign | RecordError::Io(_))) => return Err(error),
                // Reported when the run was made.
                Err(_) => {}
            }
        }
    }
}
