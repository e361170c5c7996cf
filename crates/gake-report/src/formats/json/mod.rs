//! The whole summary as JSON, schema `gake.run/1`.
//!
//! The fields are documented on the types, from which `docs/gake.run.1.schema.json` is made.

mod bodies;
mod figures;
mod latency;
mod metrics;
mod scenarios;
#[cfg(test)]
mod schema;
mod summary;

use std::io;

use gake_judge::Summary;

pub(crate) use bodies::FailedBodiesForm;
pub(crate) use figures::GeneratorForm;
use summary::SummaryForm;

/// Writes a summary as one JSON object over several lines.
///
/// # Errors
/// What the writer returns.
pub fn write(summary: &Summary, out: &mut impl io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &SummaryForm::from(summary))?;
    out.write_all(b"\n")
}
