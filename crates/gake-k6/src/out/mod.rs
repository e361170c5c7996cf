//! Single samples, in the formats of `--out json` and `--out csv`.
//!
//! Samples are written through [`JsonLines`] or [`CsvLines`].

mod csv;
mod json;
mod number;

use gake_core::metric::{Definition, Tags};

pub use csv::{CsvLines, TimeFormat};
pub use json::JsonLines;

/// A sample of a metric.
#[derive(Debug, Clone, Copy)]
pub struct SamplePoint<'a> {
    /// The metric.
    pub metric: &'a Definition,
    /// Its tags.
    pub tags: &'a Tags,
    /// Metadata that are not tags: the script's own, and `vu` and `iter` where it asks for them.
    pub metadata: &'a Tags,
    /// The value; a time in nanoseconds, as everywhere in gake.
    pub value: f64,
    /// When it was taken, in Unix nanoseconds.
    pub unix_ns: i128,
}
