//! A sink that passes every outcome to a function.

use std::io;

use gake_core::record::{Outcome, Run};

use super::{OutcomeBounds, Sink, SinkInterests, SinkLosses, SinkStart, SinkStep};

/// Batches of outcomes that may wait: about a million outcomes.
const QUEUE: usize = 512;

/// Bytes of responses that may wait with them.
const BYTES: usize = 256 << 20;

/// Passes every outcome to a function. It is not called again after an error.
pub struct OutcomeSink<F> {
    take: F,
}

impl<F> OutcomeSink<F>
where
    F: FnMut(&[Outcome]) -> io::Result<()> + Send,
{
    /// A sink that calls `take`.
    pub fn new(take: F) -> Self {
        Self { take }
    }
}

impl<F> std::fmt::Debug for OutcomeSink<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutcomeSink").finish_non_exhaustive()
    }
}

impl<F> Sink for OutcomeSink<F>
where
    F: FnMut(&[Outcome]) -> io::Result<()> + Send,
{
    fn name(&self) -> String {
        "the results".to_owned()
    }

    fn takes(&self) -> SinkInterests {
        SinkInterests { outcomes: Some(OutcomeBounds { batches: QUEUE, bytes: BYTES }) }
    }

    fn begin(&mut self, _: &SinkStart<'_>) -> Result<(), String> {
        Ok(())
    }

    fn outcomes(&mut self, outcomes: &[Outcome]) -> io::Result<()> {
        (self.take)(outcomes)
    }

    fn end(&mut self, _: &Run) -> io::Result<()> {
        Ok(())
    }

    fn losses(&self, losses: &SinkLosses) -> Vec<String> {
        match (&losses.error, losses.outcomes) {
            (None, 0) => Vec::new(),
            (None, count) => {
                vec![format!("{count} results are missing: the output was too slow")]
            }
            (Some((SinkStep::Panic, _)), _) => {
                vec!["the results are incomplete: their writer failed".to_owned()]
            }
            (Some((_, error)), _) => vec![format!("the results are incomplete: {error}")],
        }
    }
}
