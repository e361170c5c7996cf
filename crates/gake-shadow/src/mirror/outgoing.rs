//! A copy as the bytes that go to a shadow.

use std::io::Write;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::PlainCopy;
use super::copy::Kept;
use crate::proxy::answer_bytes::{LAST_CHUNK, write_line};
use crate::proxy::headers::request_head;
use crate::proxy::link::Link;
use crate::proxy::trailers::write_end;

/// Bytes of a marker, more or less.
const MARKER_BYTES: usize = 128;
/// A body up to this size is written with its head.
const WITH_HEAD: u64 = 16 << 10;

/// What is still to be written.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The head, and all that is small.
    first: Vec<u8>,
    rest: Vec<Bytes>,
    /// Which of them is written now: 0 is `first`.
    place: usize,
    /// Bytes of it that were written.
    sent: usize,
}

impl Outgoing {
    /// A plain request and a marker.
    pub(super) fn plain(copy: &PlainCopy, marker: Option<&(HeaderName, HeaderValue)>) -> Self {
        let head = &copy.head[..];
        let mut first = Vec::with_capacity(head.len() + MARKER_BYTES);
        first.extend_from_slice(head.strip_suffix(b"\r\n").unwrap_or(head));
        if let Some((name, value)) = marker {
            write_line(&mut first, name.as_str().as_bytes(), value.as_bytes());
        }
        first.extend_from_slice(b"\r\n");
        let mut outgoing = Self { first, ..Self::default() };
        if let Some(body) = &copy.body {
            body.pieces.iter().for_each(|piece| outgoing.body(piece, body));
            if body.chunked {
                outgoing.add(Bytes::from_static(LAST_CHUNK), body);
            }
        }
        outgoing
    }

    /// A head in parts, and a body.
    pub(super) fn whole(
        method: &Method,
        target: &str,
        mut headers: HeaderMap,
        body: &Kept,
    ) -> Self {
        // The framing is that of the body which follows, whatever the head said.
        if body.chunked {
            headers.remove(CONTENT_LENGTH);
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        } else {
            headers.remove(TRANSFER_ENCODING);
            if body.len > 0 || headers.contains_key(CONTENT_LENGTH) {
                headers.insert(CONTENT_LENGTH, body.len.into());
            }
        }
        let first = request_head(method, target, &headers);
        let mut outgoing = Self { first, ..Self::default() };
        for piece in &body.pieces {
            outgoing.body(piece, body);
        }
        if body.chunked {
            let mut end = Vec::new();
            write_end(&mut end, &headers, body.trailers.as_ref());
            outgoing.add(Bytes::from(end), body);
        }
        outgoing
    }

    fn body(&mut self, piece: &Bytes, body: &Kept) {
        if !body.chunked {
            return self.add(piece.clone(), body);
        }
        let mut size = Vec::new();
        // Writing to memory cannot fail.
        let _ = write!(size, "{:X}\r\n", piece.len());
        self.add(Bytes::from(size), body);
        self.add(piece.clone(), body);
        self.add(Bytes::from_static(b"\r\n"), body);
    }

    fn add(&mut self, piece: Bytes, body: &Kept) {
        if body.len <= WITH_HEAD {
            self.first.extend_from_slice(&piece);
        } else {
            self.rest.push(piece);
        }
    }

    /// Whether nothing has been written.
    pub(super) fn is_untouched(&self) -> bool {
        self.place == 0 && self.sent == 0
    }

    /// Writes what the connection takes; ready when all is written.
    pub(super) fn poll(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        loop {
            let piece: &[u8] = match self.place.checked_sub(1) {
                None => &self.first,
                Some(place) => match self.rest.get(place) {
                    Some(piece) => piece,
                    None => return link.poll_flush(cx),
                },
            };
            if self.sent < piece.len() {
                self.sent += ready!(link.poll_write(cx, &piece[self.sent..]))?;
            } else {
                (self.place, self.sent) = (self.place + 1, 0);
            }
        }
    }
}
