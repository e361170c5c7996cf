//! Vegeta's results: read and written in its three encodings, and converted to a run.
//!
//! Everything streams: a record is read, counted and dropped, whatever the size of the file. The
//! output is byte for byte that of Vegeta 12.13, which `tests/vegeta.rs` verifies on its files.

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
