//! Single samples in the formats of `--out json` and `--out csv`.

mod csv;
mod json;

pub use csv::{CsvLines, TimeFormat};
pub use json::JsonLines;
pub(crate) use json::time as timestamp;
