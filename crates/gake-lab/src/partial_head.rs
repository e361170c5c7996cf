//! A connection before its first complete head: memory grows with what was sent only, and hyper's
//! buffers (8 KB per direction) are allocated once the request can be parsed.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes per read.
const READ_BYTES: usize = 4096;
/// Up to this length every read is parsed, so that an invalid request is rejected early; in a
/// longer head only the end is searched for.
const PARSED: usize = 1024;
/// Most header fields, as in hyper.
const HEADERS: usize = 100;
/// The longest head, as in hyper.
const MOST: usize = 400 << 10;
/// The growth step of the buffer.
const STEP: usize = 512;

/// The bytes of a head received so far.
#[derive(Debug, Default)]
pub(crate) struct PartialHead {
    bytes: Vec<u8>,
}

impl PartialHead {
    /// Takes the bytes, for the server that continues.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }

    /// Whether it starts with the HTTP/2 preface (RFC 9113, section 3.4).
    pub(crate) fn is_http2(&self) -> bool {
        self.bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\n")
    }

    /// Whether it is an upgrade to a WebSocket.
    pub(crate) fn is_websocket(&self) -> bool {
        if !self.bytes.starts_with(b"GET /ws") {
            return false;
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let is_whole = matches!(request.parse(&self.bytes), Ok(httparse::Status::Complete(_)));
        let path = request.path.map(|path| path.split('?').next().unwrap_or_default());
        is_whole
            && path == Some("/ws")
            && request.headers.iter().any(|header| {
                header.name.eq_ignore_ascii_case("upgrade")
                    && header.value.eq_ignore_ascii_case(b"websocket")
            })
    }

    /// Reads until the parser can decide; `false` when the client has closed before that.
    pub(crate) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let mut seen = 0;
        while !self.is_enough(seen) {
            let mut piece = [MaybeUninit::uninit(); READ_BYTES];
            let mut piece = ReadBuf::uninit(&mut piece);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            seen = self.bytes.len();
            self.add(piece.filled());
        }
        Poll::Ready(Ok(true))
    }

    /// Appends bytes that were read.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        // Empty lines before a request are skipped (RFC 9112, section 2.2).
        if self.bytes.is_empty() {
            let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            bytes = &bytes[blank..];
        }
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.bytes.reserve_exact(bytes.len().next_multiple_of(STEP));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the parser can decide, given that it could not on the first `seen` bytes.
    fn is_enough(&self, seen: usize) -> bool {
        if self.bytes.len() <= PARSED {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let parsed = httparse::Request::new(&mut headers).parse(&self.bytes);
            return !matches!(parsed, Ok(httparse::Status::Partial));
        }
        self.bytes.len() >= MOST || has_end(&self.bytes[seen.saturating_sub(2)..])
    }
}

/// Whether there is an empty line.
fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|two| two == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in reads of `size` bytes; returns what had been read when it was enough.
    fn read(text: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut partial_head = PartialHead::default();
        for piece in text.chunks(size) {
            let seen = partial_head.bytes.len();
            partial_head.add(piece);
            if partial_head.is_enough(seen) {
                return Some(partial_head.bytes);
            }
        }
        None
    }

    #[test]
    fn a_whole_head_is_enough_however_it_comes() {
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\nY: z\n\r\n", "a".repeat(3000));
        for head in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n", &long] {
            for size in [1, 2, 3, 7, 1000, 5000] {
                assert_eq!(read(head.as_bytes(), size).as_deref(), Some(head.as_bytes()), "{size}");
                let cut = &head.as_bytes()[..head.len() - 1];
                assert_eq!(read(cut, size), None, "{size}");
            }
        }
        assert_eq!(read(b"\r\n\nGET / HTTP/1.0\r\n\r\n", 1).unwrap().len(), 18);
        assert!(read(b"no request\r\n", 1).is_some());
    }
}
