//! The whole summary as JSON, schema `gake.run/1`.
//!
//! The fields are documented on the types; `docs/gake.run.1.schema.json` is generated from them.

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

pub(crate) use bodies::FailedBodiesJson;
pub(crate) use figures::GeneratorUsageJson;
use summary::SummaryJson;

/// Writes a summary as one JSON object over several lines.
///
/// # Errors
/// The writer's.
pub fn write(summary: &Summary, out: &mut impl io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &SummaryJson::from(summary))?;
    out.write_all(b"\n")
}
