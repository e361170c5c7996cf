//! Vegeta's results: read and written in its three encodings, and told as a run of ours.
//!
//! Everything streams: a record is read, counted and forgotten, whatever the file's size. What is
//! written is what Vegeta 12.13 writes, byte for byte; `tests/vegeta.rs` holds its own files
//! against that.

mod csv;
mod decode_error;
pub mod go;
mod gob;
mod json;
mod read;
mod record;
mod run;
mod seconds;
mod write;

pub use read::{RecordError, ResultReader, RoundRobin};
pub use record::{EncodingError, Headers, ResultEncoding, Timestamp, VegetaRecord};
pub use run::read_run;
pub(crate) use seconds::RecordSeconds;
pub use write::ResultWriter;
