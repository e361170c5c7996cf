//! `--reconcile`: rows before and after a run, against the answers that were ok.

use gake_judge::{Summary, reconcile};

use super::rows::RowSource;
use crate::exit::Failure;

/// The rows before a run.
#[derive(Debug)]
pub struct Reconciliation {
    source: RowSource,
    before: u64,
}

impl Reconciliation {
    /// Counts the rows before the run, when that is asked for.
    ///
    /// # Errors
    /// When the text names no source, or the source gives no number.
    pub fn begin(text: Option<&str>) -> Result<Option<Self>, Failure> {
        let Some(text) = text else { return Ok(None) };
        // It may hold a password, so that it is not printed.
        let source: RowSource =
            text.parse().map_err(|error| Failure::usage(format!("--reconcile: {error}")))?;
        let cannot = |why| Failure::could_not(format!("--reconcile {source}: {why}"));
        let before = source.read().map_err(cannot)?;
        Ok(Some(Self { source, before }))
    }

    /// Counts them again, and adds what that says to the objectives.
    pub fn end(self, summary: &mut Summary) {
        let found = reconcile(&summary.run, self.before, self.source.read());
        summary.verdict.objectives.push(found);
    }
}
