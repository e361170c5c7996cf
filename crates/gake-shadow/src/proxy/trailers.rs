//! Fields behind a body in chunks.

use http::HeaderMap;
use http::header::TRAILER;

use super::answer_bytes::{is_one_of, list, write_line};

/// Fields that may not stand there, whatever `Trailer` says.
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

/// Writes the end of a body in chunks, with the trailers that the `Trailer` of its head announces
/// and that may stand there.
pub(crate) fn write_end(out: &mut Vec<u8>, head: &HeaderMap, trailers: Option<&HeaderMap>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        let name = name.as_str().as_bytes();
        let announced = head
            .get_all(TRAILER)
            .iter()
            .flat_map(|names| list(names.as_bytes()))
            .any(|one| one.eq_ignore_ascii_case(name));
        if announced && !is_one_of(name, NOT_TRAILERS) {
            write_line(out, name, value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}
