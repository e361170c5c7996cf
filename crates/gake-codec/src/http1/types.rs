//! The parser's input and output types.

/// The maximum number of header lines that any [`ResponseLimits`] can allow.
pub const MAX_HEADERS: usize = 1_000;

/// Limits on the memory and time that a server can cost the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseLimits {
    /// Bytes of one head including its empty line, or of one trailer section.
    pub head_bytes: usize,
    /// Header lines of one head, or trailer lines; at most [`MAX_HEADERS`].
    pub headers: usize,
    /// Interim (1xx) responses before the final one.
    pub interim: u32,
    /// Bytes of the line that holds a chunk's size and extensions, without its line feed.
    pub chunk_line: usize,
}

impl ResponseLimits {
    pub(super) const fn header_bound(&self) -> usize {
        if self.headers < MAX_HEADERS { self.headers } else { MAX_HEADERS }
    }
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self { head_bytes: 256 * 1024, headers: MAX_HEADERS, interim: 100, chunk_line: 4096 }
    }
}

/// The HTTP version in a request line or status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Version {
    /// HTTP/1.0: a connection ends with the response unless both sides send `keep-alive`.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// The status code of the final response, 100 to 999. Codes from 600 on are not valid, but
    /// servers send them; RFC 9110, section 15, treats them as server errors.
    pub status: u16,
    /// The version in the status line.
    pub version: Version,
    /// Bytes of the body, without chunk framing and trailers.
    pub body_bytes: u64,
    /// Bytes of the slice last fed that belong to this response.
    pub consumed: usize,
    /// Whether the connection persists (RFC 9112, section 9.3).
    pub keep_alive: bool,
    /// Whether unsolicited bytes follow in the slice. The response itself is sound.
    pub excess: bool,
}

impl Response {
    /// Whether the next request may be sent on the same connection.
    pub const fn reusable(&self) -> bool {
        self.keep_alive && !self.excess
    }
}

/// The state of a response after a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseProgress {
    /// The whole slice was consumed, and the response is incomplete.
    More,
    /// The response is complete.
    Done(Response),
}

/// The effect of the end of the stream on the pending response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eof {
    /// The response is complete: its body ends with the connection.
    Complete(Response),
    /// No byte of the response had come: a reused connection was stale.
    Nothing,
    /// The response is cut short.
    Cut,
}
