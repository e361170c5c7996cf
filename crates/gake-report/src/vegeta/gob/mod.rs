//! Go's gob stream, as far as results need it.
//!
//! The format is documented at <https://pkg.go.dev/encoding/gob>: length-prefixed messages, each
//! the definition of a type or a value. Written here and not a crate, as it must describe errors in
//! a damaged file, continue after them, keep the order of maps, and write exactly Vegeta's bytes.

mod decode;
mod encode;
mod input;
mod types;

pub(super) use decode::Decoder;
pub(super) use encode::{push_definitions, push_record};

/// Seconds from year 1, the start of Go's time, to 1970.
const YEAR_1_TO_1970: i64 = 62_135_596_800;
