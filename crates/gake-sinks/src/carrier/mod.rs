//! Carriers, which deliver bytes to a destination.

mod datagrams;
mod file;
mod lines;
mod nats;
mod page;
mod push;

use std::time::Duration;

pub(crate) use datagrams::Datagrams;
pub(crate) use file::File;
pub use file::ZstdFrames;
pub(crate) use lines::{Lines, Reconnecting};
pub(crate) use nats::{Nats, is_subject};
pub(crate) use page::Page;
pub(crate) use push::{PATIENCE, Post, Push};

/// How long what could not be brought yet is tried again after the run's end.
pub(crate) const RETRY: Duration = Duration::from_secs(15);

/// What belongs together: a second's rows, for instance.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    /// How many figures it holds.
    pub(crate) rows: u64,
}

/// What was lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lost {
    pub(crate) rows: u64,
    /// The first reason.
    pub(crate) why: Option<String>,
}

impl Lost {
    pub(crate) fn add(&mut self, rows: u64, why: impl Into<String>) {
        self.rows += rows;
        self.why.get_or_insert_with(|| why.into());
    }

    /// The same of a destination of this name; `None` when everything arrived.
    pub(crate) fn sentence(&self, name: &str) -> Option<String> {
        let Self { rows, why } = self;
        let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        (*rows > 0).then(|| {
            format!("{name}: {rows} figures are missing there{why}; the run's own are whole")
        })
    }
}

/// Delivers batches to a destination, in order.
pub(crate) trait Carrier: Send {
    /// Checks that the destination accepts data now.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Takes a batch. Waits for the destination at most two seconds.
    fn carry(&mut self, batch: Batch);

    /// Waits until everything is delivered or given up.
    fn finish(&mut self);

    fn lost(&self) -> Lost;
}
