//! The seconds of results, to be written as a run file.

use std::io::BufRead;

use gake_core::record::{Counts, Run};
use gake_core::work::Gauges;

use super::read::{RecordError, ResultReader};
use super::run::Making;
use crate::runfile::ReadSecond;

/// The seconds of results in order, in bounded memory. They hold every result that is in the run:
/// one whose second is told already is in the next.
pub struct RecordSeconds<R> {
    reader: ResultReader<R>,
    /// How many labels the run has.
    labels: usize,
    making: Option<Making>,
    ended: bool,
}

impl<R: BufRead> RecordSeconds<R> {
    /// The seconds of the results that `run` was made from.
    pub fn new(reader: ResultReader<R>, run: &Run) -> Self {
        Self { reader, labels: run.plan.labels.len(), making: None, ended: false }
    }

    /// The next second, `None` at the end.
    ///
    /// # Errors
    /// When the results cannot be read further.
    pub fn next_second(&mut self) -> Result<Option<ReadSecond>, RecordError> {
        loop {
            if let Some((at, tally)) = self.making.as_mut().and_then(Making::told) {
                let (warmup, gauges) = (Counts::default(), Gauges::default());
                let (asked, scenarios, tenths) = (None, Vec::new(), Vec::new());
                let cpu = 0;
                return Ok(Some(ReadSecond {
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
                    let making =
                        self.making.get_or_insert_with(|| Making::telling(&record, labels));
                    making.add(&record);
                }
                Ok(None) => {
                    self.ended = true;
                    if let Some(making) = &mut self.making {
                        making.close_all();
                    }
                }
                Err(error @ (RecordError::Foreign | RecordError::Io(_))) => return Err(error),
                // It was told of when the run was made.
                Err(_) => {}
            }
        }
    }
}
