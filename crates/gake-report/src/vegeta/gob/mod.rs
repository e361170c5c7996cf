//! Go's gob stream, as far as results need it.
//!
//! The format is that of <https://pkg.go.dev/encoding/gob>: messages of a length and a content,
//! which is the definition of a type or a value. Our own code and not a crate, since it has to
//! name what is wrong in a damaged file, to go on after it, to keep the order of maps, and to
//! write the very bytes that Vegeta writes.

mod decode;
mod encode;
mod input;
mod types;

pub(super) use decode::Decoder;
pub(super) use encode::{push_definitions, push_record};

/// Seconds from year 1, where Go's time starts, to 1970.
const YEAR_1_TO_1970: i64 = 62_135_596_800;
