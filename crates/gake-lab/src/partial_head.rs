//! A connection while no whole head has come on it: it takes as much memory as was sent, and
//! hyper's buffers (8 KB for each direction) are made when its request can be read.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes read at once.
const PIECE: usize = 4096;
/// This much is parsed whenever more of it comes, so that an invalid request is refused at once. Of
/// a longer head only the end is looked for.
const PARSED: usize = 1024;
/// As many as hyper takes.
const HEADERS: usize = 100;
/// hyper's own bound on a head.
const MOST: usize = 400 << 10;
/// The buffer grows by multiples of this.
const STEP: usize = 512;

/// What has come of a head.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    bytes: Vec<u8>,
}

impl Opening {
    /// What has come, for who serves it.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }

    /// Whether it begins as HTTP/2 does (RFC 9113, section 3.4).
    pub(crate) fn is_http2(&self) -> bool {
        self.bytes.starts_with(b"PRI * HTTP/2.0\r\n\r\n")
    }

    /// Whether it is the upgrade to a WebSocket.
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

    /// What a server that is given up had read.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    /// Reads until the parser can judge what has come; `false` when the client has ended before.
    pub(crate) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let mut seen = 0;
        while !self.is_enough(seen) {
            let mut piece = [MaybeUninit::uninit(); PIECE];
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

    fn add(&mut self, mut bytes: &[u8]) {
        // Empty lines before a request mean nothing, and do not belong to its head.
        if self.bytes.is_empty() {
            let blank = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            bytes = &bytes[blank..];
        }
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.bytes.reserve_exact(bytes.len().next_multiple_of(STEP));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the parser can say what it is; of the first `seen` bytes alone it could not.
    fn is_enough(&self, seen: usize) -> bool {
        if self.bytes.len() <= PARSED {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let parsed = httparse::Request::new(&mut headers).parse(&self.bytes);
            return !matches!(parsed, Ok(httparse::Status::Partial));
        }
        self.bytes.len() >= MOST || has_end(&self.bytes[seen.saturating_sub(2)..])
    }
}

/// Whether an empty line is in it.
fn has_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|two| two == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in pieces of a size; what had come when it was enough.
    fn read(text: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut opening = Opening::default();
        for piece in text.chunks(size) {
            let seen = opening.bytes.len();
            opening.add(piece);
            if opening.is_enough(seen) {
                return Some(opening.bytes);
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
