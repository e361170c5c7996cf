//! A connection while no whole head has come on it: it takes as much memory as was sent, and the
//! large buffers of one that is served are made when its request can be read.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// This much is parsed whenever more of it comes, so that an invalid request is refused at once. Of
/// a longer head only the end is looked for.
const PARSED: usize = 1024;
/// Header lines of a head, at most.
const HEADERS: usize = 100;
/// A buffer of up to this size is kept for the next head.
const KEPT: usize = 1024;
/// The buffer grows by multiples of this.
const STEP: usize = 512;

/// What has come of a head.
#[derive(Debug)]
pub(crate) struct HeadBuffer {
    bytes: Vec<u8>,
    most: usize,
}

impl HeadBuffer {
    /// Nothing has come; `most` bytes are enough for the parser to judge.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// Whether nothing of a request has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What has come, for who serves it.
    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes).into()
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

    /// What has come.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the request that was read, of this many bytes.
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

    /// Whether the client has ended before anything more came. What comes is kept.
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

    /// Empty lines before a request say nothing, and are no part of its head. In a body they are
    /// bytes like any others, so this is for the place where a request begins.
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

    /// Whether the parser can say what it is; of the first `seen` bytes alone it could not.
    fn is_enough(&self, seen: usize) -> bool {
        // Most come whole, and then need no second look.
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

/// Whether an empty line is in it.
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

    /// Reads a text in pieces of a size; what had come when it was enough.
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
    fn a_whole_head_is_enough_however_it_comes() {
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
    fn what_is_no_request_or_too_long_is_judged_without_its_end() {
        assert_eq!(read(b"\x16\x03\x01\x02", 1).unwrap(), b"\x16");
        assert!(read(b"GET / HTTP/1.1\r\nno colon\r\nX: y", 1).is_some());
        assert_eq!(read(&b"a".repeat(9000), 1).unwrap().len(), 8192);
        assert_eq!(read(&b"\r\n".repeat(9000), 1), None, "of which nothing is kept");
    }

    #[test]
    fn a_body_keeps_its_empty_lines() {
        let mut received = HeadBuffer::new(8192);
        received.add(b"HEAD\r\n\r\n\r\nabc");
        received.consume(8);
        assert_eq!(received.bytes(), b"\r\nabc");
        received.consume(5);
        received.add(b"\n\n");
        assert_eq!(received.bytes(), b"\n\n", "the rest of a body that came later");
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
