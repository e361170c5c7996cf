//! Buffers an incomplete request head. An idle or slow connection takes only as much memory as it has
//! sent; larger buffers are allocated when the request is served.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

const READ_BYTES: usize = 4096;
/// A head up to this size is parsed after every read, to reject invalid requests early. In a longer
/// one only the end is searched.
const PARSED: usize = 1024;
const HEADERS: usize = 100;
/// Capacity that is kept for the next head.
const KEPT: usize = 1024;
/// The buffer grows in multiples of this.
const STEP: usize = 512;

/// The received part of a head.
#[derive(Debug)]
pub(crate) struct HeadBuffer {
    bytes: Vec<u8>,
    most: usize,
}

impl HeadBuffer {
    /// An empty buffer; with `most` bytes the head is too large.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
    }

    /// Returns bytes that were read too far.
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    /// Reads until the head is complete, invalid or too large; `false` at the end of the stream.
    pub(crate) fn poll<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let mut seen = 0;
        self.skip_blank();
        while !self.is_enough(seen) {
            let mut data = [MaybeUninit::uninit(); READ_BYTES];
            let mut data = ReadBuf::uninit(&mut data);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut data))?;
            if data.filled().is_empty() {
                return Poll::Ready(Ok(false));
            }
            seen = self.bytes.len();
            self.add(data.filled());
            if seen == 0 {
                self.skip_blank();
            }
        }
        Poll::Ready(Ok(true))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes a request's head of this length.
    pub(crate) fn consume(&mut self, length: usize) {
        if length < self.bytes.len() {
            let rest = std::mem::take(&mut self.bytes);
            self.add(&rest[length..]);
        } else if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }

    /// Whether the stream has ended. Received bytes are kept.
    pub(crate) fn has_ended<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        cx: &mut Context<'_>,
    ) -> bool {
        let mut data = [MaybeUninit::uninit(); READ_BYTES];
        let mut data = ReadBuf::uninit(&mut data);
        match Pin::new(stream).poll_read(cx, &mut data) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) if !data.filled().is_empty() => {
                self.add(data.filled());
                false
            }
            Poll::Ready(_) => true,
        }
    }

    /// Removes empty lines before a request (RFC 9112, section 2.2). Must only be called where a
    /// request begins, not within a body.
    fn skip_blank(&mut self) {
        let blank = self.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.bytes.drain(..blank);
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.bytes.reserve_exact(bytes.len().next_multiple_of(STEP));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the head can be judged. The first `seen` bytes were not enough.
    fn is_enough(&self, seen: usize) -> bool {
        if self.bytes.is_empty() {
            return false;
        }
        // The usual case: a complete head in one read.
        if self.bytes.ends_with(b"\r\n\r\n") {
            return true;
        }
        if self.bytes.len() <= PARSED {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let parsed = httparse::Request::new(&mut headers).parse(&self.bytes);
            return !matches!(parsed, Ok(httparse::Status::Partial));
        }
        self.bytes.len() >= self.most || has_end(&self.bytes[seen.saturating_sub(2)..])
    }
}

fn has_end(bytes: &[u8]) -> bool {
    let ends = |at: usize| {
        let rest = &bytes[at + 1..];
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    };
    memchr::memchr_iter(b'\n', bytes).any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a text in slices of a size; returns the buffer when it is enough.
    fn read(text: &[u8], size: usize) -> Option<Vec<u8>> {
        let mut received = HeadBuffer::new(8192);
        for data in text.chunks(size) {
            let seen = received.bytes.len();
            received.add(data);
            if seen == 0 {
                received.skip_blank();
            }
            if received.is_enough(seen) {
                return Some(received.bytes);
            }
        }
        None
    }

    #[test]
    fn a_complete_head_is_enough_in_any_slices() {
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\nY: z\r\n\r\n", "a".repeat(3000));
        for head in ["GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n", &long] {
            for size in [1, 2, 3, 7, 1000, 5000] {
                assert_eq!(read(head.as_bytes(), size).as_deref(), Some(head.as_bytes()), "{size}");
                let blank = format!("\r\n\n\r\n{head}");
                assert_eq!(
                    read(blank.as_bytes(), size).as_deref(),
                    Some(head.as_bytes()),
                    "{size}"
                );
                let cut = &head.as_bytes()[..head.len() - 1];
                assert_eq!(read(cut, size), None, "{size}");
            }
        }
        let mixed = long.replace("z\r\n\r\n", "z\n\r\n");
        assert_eq!(read(mixed.as_bytes(), 1).as_deref(), Some(mixed.as_bytes()));
    }

    #[test]
    fn invalid_or_long_heads_are_judged_early() {
        assert_eq!(read(b"\x16\x03\x01\x02", 1).unwrap(), b"\x16");
        assert!(read(b"GET / HTTP/1.1\r\nno colon\r\nX: y", 1).is_some());
        assert_eq!(read(&b"a".repeat(9000), 1).unwrap().len(), 8192);
        assert_eq!(read(&b"\r\n".repeat(9000), 1), None, "nothing is kept");
    }

    #[test]
    fn a_body_keeps_its_empty_lines() {
        let mut received = HeadBuffer::new(8192);
        received.add(b"HEAD\r\n\r\n\r\nabc");
        received.consume(8);
        assert_eq!(received.bytes(), b"\r\nabc");
        received.consume(5);
        received.add(b"\n\n");
        assert_eq!(received.bytes(), b"\n\n", "the rest of a body");
    }

    #[test]
    fn it_takes_as_much_memory_as_was_sent() {
        let mut received = HeadBuffer::new(64 << 10);
        for sent in 1..20_000 {
            received.add(b"a");
            assert!(received.bytes.capacity() <= sent + STEP);
        }
    }
}
