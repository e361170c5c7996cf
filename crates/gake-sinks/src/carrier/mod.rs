//! Carriers, which deliver bytes to a destination.

mod datagrams;
mod file;
mod lines;
mod nats;
mod page;
mod push;

use std::time::Duration;

pub(crate) use datagrams::Datagrams;
pub(crate) use file::FileCarrier;
pub use file::ZstdFrames;
pub(crate) use lines::{LineCarrier, Reconnecting};
pub(crate) use nats::{NatsCarrier, is_subject};
pub(crate) use page::PageCarrier;
pub(crate) use push::{PATIENCE, Post, Push};

/// How long a destination that takes nothing is retried after the run's end.
pub(crate) const RETRY: Duration = Duration::from_secs(15);
/// How long one that takes data is waited for.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(600);
/// Time between two notes on a delivery after the run.
const WATCH: Duration = Duration::from_secs(1);
/// The reason for losses when the user ends the delivery.
const INTERRUPTED: &str = "the delivery was interrupted";

/// Figures sent together, such as the rows of a second.
#[derive(Debug, Default)]
pub(crate) struct FigureBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u64,
}

impl FigureBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }
}

/// Figures that were not delivered.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostFigures {
    pub(crate) rows: u64,
    pub(crate) why: Option<String>,
}

impl LostFigures {
    pub(crate) fn add(&mut self, rows: u64, why: impl Into<String>) {
        self.rows += rows;
        self.why.get_or_insert_with(|| why.into());
    }

    /// A sentence for a destination of this name; `None` when everything was delivered.
    pub(crate) fn sentence(&self, name: &str) -> Option<String> {
        let Self { rows, why } = self;
        let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        (*rows > 0).then(|| {
            format!(
                "{name}: {rows} figures were not delivered{why}; the run's own figures are \
                     complete"
            )
        })
    }
}

/// Delivers batches to a destination, in order.
pub(crate) trait Carrier: Send {
    /// Checks that the destination accepts data now.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Takes a batch of figures. Blocks on the destination for at most two seconds.
    fn carry(&mut self, batch: FigureBatch);

    /// Takes a batch of single samples, which are lost before figures.
    fn carry_samples(&mut self, batch: FigureBatch) {
        self.carry(batch);
    }

    /// Waits until everything is delivered or given up.
    fn finish(&mut self);

    fn lost(&self) -> LostFigures;
}
