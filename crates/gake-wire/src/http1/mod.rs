//! The HTTP/1.1 codec, without input and output: bytes in, a response or a fault out.
//!
//! [`request::render`] turns a request into bytes once, before the run. A [`ResponseParser`], one a
//! connection, takes the bytes of each answer in whatever slices the socket gives. The outcome
//! never depends on how the bytes are split, and a head that comes in one slice is parsed where
//! it lies: no allocation, no copy. Bodies are counted and handed to a [`Visitor`], not kept.
//!
//! The rules are those of RFC 9112. Where it leaves a choice, an answer that is not clearly
//! framed is rejected: a load tester that guesses reports the wrong thing.

mod chunked;
mod head;
mod known;
mod malformed;
pub mod request;
mod response;
mod scan;
#[cfg(test)]
mod tests;

pub use head::Head;
pub use malformed::Malformed;
pub use response::ResponseParser;

/// The most header lines that any [`Limits`] can allow.
pub const MAX_HEADERS: usize = 1_000;

/// Bounds on what a server can make us hold or wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, up to and with its empty line; of one trailer section, too.
    pub head_bytes: usize,
    /// Header lines of one head, and trailer lines; values above [`MAX_HEADERS`] count as it.
    pub headers: usize,
    /// Interim (1xx) answers before the final one.
    pub interim: u32,
    /// Bytes of the line that holds a chunk's size and extensions, without its line feed.
    pub chunk_line: usize,
}

impl Limits {
    const fn header_bound(&self) -> usize {
        if self.headers < MAX_HEADERS { self.headers } else { MAX_HEADERS }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes: 256 * 1024, headers: MAX_HEADERS, interim: 100, chunk_line: 4096 }
    }
}

/// The version of HTTP that a status line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The status code of the final answer, 100 to 999. Those from 600 on are not HTTP's, but
    /// servers send them; RFC 9110, section 15, has them treated as server errors.
    pub status: u16,
    /// The version in the status line.
    pub version: Version,
    /// Bytes of the body, without chunk framing and trailers.
    pub body_bytes: u64,
    /// Bytes of the slice last fed that belong to this response.
    pub consumed: usize,
    /// Whether the server lets the connection be used again (RFC 9112, section 9.3).
    pub keep_alive: bool,
    /// Whether bytes follow in the slice that nobody asked for. The response itself is sound.
    pub excess: bool,
}

impl Response {
    /// Whether the next request may be sent on the same connection.
    pub const fn reusable(&self) -> bool {
        self.keep_alive && !self.excess
    }
}

/// What came of feeding a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// The whole slice was taken, and the response goes on.
    More,
    /// The response is complete.
    Done(Response),
}

/// What the end of the stream means for the response being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The body went on until the peer closed, as the head said: it is complete.
    Complete(Response),
    /// Not one byte of the answer had come: on a reused connection, it was stale.
    Nothing,
    /// The response is cut short.
    Cut,
}

/// Sees a response pass by. Every method does nothing unless it is implemented, and costs nothing
/// then, since [`ResponseParser::feed_with`] is compiled for each visitor.
pub trait Visitor {
    /// Whether the head is to be shown. When it is not, a head seen before is not parsed again.
    #[inline]
    fn wants_head(&self) -> bool {
        true
    }

    /// The head of the final answer; interim (1xx) heads are not shown.
    #[inline]
    fn head(&mut self, head: &Head<'_>) {
        let _ = head;
    }

    /// The next bytes of the body, decoded from chunks, never empty. Also called for a body that
    /// turns out to be malformed later.
    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        let _ = bytes;
    }
}

/// The visitor that looks at nothing.
impl Visitor for () {
    #[inline]
    fn wants_head(&self) -> bool {
        false
    }
}
