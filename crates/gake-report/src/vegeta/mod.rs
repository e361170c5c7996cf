//! Vegeta's results: read and written in its three encodings, told in its four reports, plotted,
//! and told as a run of ours.
//!
//! Everything streams: a record is read, counted and forgotten, whatever the file's size. What is
//! written is what Vegeta 12.13 writes, byte for byte; `tests/vegeta.rs` holds its own files
//! against that.

mod broken;
mod buckets;
mod columns;
mod csv;
pub mod go;
mod gob;
mod json;
mod metrics;
mod read;
mod record;
pub mod report;
mod run;
mod seconds;
mod tdigest;
mod write;

pub use buckets::{BucketCounts, Buckets, BucketsError};
pub use metrics::Metrics;
pub use read::{Reader, RecordError, RoundRobin};
pub use record::{Encoding, EncodingError, Headers, Timestamp, VegetaRecord};
pub use report::ReportKind;
pub use run::read_run;
pub(crate) use seconds::RecordSeconds;
pub use write::ResultWriter;
