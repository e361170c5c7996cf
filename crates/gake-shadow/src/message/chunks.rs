//! The chunked transfer coding, with trailers.

use std::io::Write;

use http::HeaderMap;

use super::line::{is_one_of, list, write_line};

/// Fields that may not be trailers, whatever `Trailer` announces (RFC 9110, section 6.5.1).
const NOT_TRAILERS: &[&str] = &[
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "host",
    "max-forwards",
    "set-cookie",
    "trailer",
    "transfer-encoding",
    "te",
];

pub(crate) fn write_chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    write_size(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Writes the size line of a chunk.
pub(crate) fn write_size(out: &mut Vec<u8>, bytes: usize) {
    // Writing to memory cannot fail.
    let _ = write!(out, "{bytes:X}\r\n");
}

/// Writes the last chunk, and those trailers that the head's `Trailer` lines announce and that are
/// allowed, with the announced case of their names.
pub(crate) fn write_end<'a>(
    out: &mut Vec<u8>,
    announced: impl Iterator<Item = &'a [u8]> + Clone,
    trailers: Option<&HeaderMap>,
) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        let known = name.as_str().as_bytes();
        let written = announced.clone().flat_map(list).find(|one| one.eq_ignore_ascii_case(known));
        if let Some(written) = written.filter(|_| !is_one_of(known, NOT_TRAILERS)) {
            write_line(out, written, value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}
