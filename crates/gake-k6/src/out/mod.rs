//! Single samples, in the formats of `--out json` and `--out csv`.
//!
//! Samples are written through [`JsonLines`] or [`CsvLines`].

mod csv;
mod json;

pub use csv::{CsvLines, TimeFormat};
pub use json::JsonLines;
