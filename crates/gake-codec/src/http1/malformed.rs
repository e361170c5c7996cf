//! Why a response is rejected: a closed list, so that reports can count by reason.

/// The first fault in the bytes of a response, independent of how they are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The first bytes are not `HTTP/` (RFC 9112, section 4).
    #[error("the response does not start with an HTTP status line")]
    NotHttp,
    /// `HTTP/` is followed by something other than `1.0` or `1.1` and a space.
    #[error("the status line names a version other than HTTP/1.0 and HTTP/1.1")]
    Version,
    /// The status is not three digits, or the reason phrase holds a control character.
    #[error("the status line is broken after the version")]
    StatusLine,
    /// The status is below 100 (RFC 9110, section 15).
    #[error("the status is below 100")]
    Status,
    /// A 101 without an `Upgrade` in the request (RFC 9110, section 15.2.2).
    #[error("the server switched protocols without an upgrade request")]
    Upgrade,
    /// A carriage return without a line feed where a line ends.
    #[error("a carriage return is not followed by a line feed")]
    LineEnd,
    /// A header name is empty or not a token (RFC 9110, section 5.1).
    #[error("a header name holds a character that is not allowed there")]
    HeaderName,
    /// A header value holds a control character (RFC 9110, section 5.5).
    #[error("a header value holds a control character")]
    HeaderValue,
    /// A header value continues on the next line, which is obsolete (RFC 9112, section 5.2).
    #[error("a header is folded over several lines")]
    ObsFold,
    /// `Content-Length` is not a plain decimal number that fits 64 bits (RFC 9110, section 8.6).
    #[error("Content-Length is not a number")]
    ContentLength,
    /// Several `Content-Length` values differ (RFC 9112, section 6.3).
    #[error("several Content-Length values contradict each other")]
    ContentLengthConflict,
    /// `Transfer-Encoding` is empty or not a list of codings, or `chunked` has parameters.
    #[error("Transfer-Encoding is not a list of transfer codings")]
    TransferEncoding,
    /// `chunked` is repeated, or another coding follows it (RFC 9112, section 6.1).
    #[error("chunked is not the last transfer coding, or is applied twice")]
    ChunkedNotLast,
    /// Both `Content-Length` and `Transfer-Encoding` (RFC 9112, section 6.3, rule 3).
    #[error("both Content-Length and Transfer-Encoding are given")]
    LengthAndTransferEncoding,
    /// `Transfer-Encoding` in an HTTP/1.0 response: the framing is faulty (RFC 9112, section 6.1).
    #[error("Transfer-Encoding is used in an HTTP/1.0 response")]
    TransferEncodingInHttp10,
    /// A chunk does not start with a hexadecimal number (RFC 9112, section 7.1).
    #[error("a chunk size is not a hexadecimal number")]
    ChunkSize,
    /// A chunk size does not fit 64 bits.
    #[error("a chunk size does not fit 64 bits")]
    ChunkSizeOverflow,
    /// A chunk's size line holds a control character or does not end with CR LF.
    #[error("the line of a chunk size is broken")]
    ChunkLine,
    /// A chunk's data is not followed by CR LF.
    #[error("the data of a chunk is not followed by a line end")]
    ChunkEnd,
    /// Bytes came while no request was pending.
    #[error("the server sent unsolicited bytes")]
    Unsolicited,
    /// The head is longer than [`ResponseLimits::head_bytes`](super::ResponseLimits::head_bytes).
    #[error("the head of the response is larger than the bound")]
    HeadTooLarge,
    /// The head has more lines than [`ResponseLimits::headers`](super::ResponseLimits::headers).
    #[error("the response has more headers than the bound")]
    TooManyHeaders,
    /// More 1xx responses than [`ResponseLimits::interim`](super::ResponseLimits::interim).
    #[error("more interim responses came than the bound")]
    TooManyInterim,
    /// A chunk's size line is longer than [`ResponseLimits::chunk_line`](super::ResponseLimits::chunk_line).
    #[error("the line of a chunk size is longer than the bound")]
    ChunkLineTooLong,
    /// The trailers are longer than [`ResponseLimits::head_bytes`](super::ResponseLimits::head_bytes).
    #[error("the trailers are larger than the bound")]
    TrailersTooLarge,
    /// There are more trailers than [`ResponseLimits::headers`](super::ResponseLimits::headers).
    #[error("the response has more trailers than the bound")]
    TooManyTrailers,
}

impl Malformed {
    /// A stable name in snake case, for reports and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotHttp => "not_http",
            Self::Version => "version",
            Self::StatusLine => "status_line",
            Self::Status => "status",
            Self::Upgrade => "upgrade",
            Self::LineEnd => "line_end",
            Self::HeaderName => "header_name",
            Self::HeaderValue => "header_value",
            Self::ObsFold => "obs_fold",
            Self::ContentLength => "content_length",
            Self::ContentLengthConflict => "content_length_conflict",
            Self::TransferEncoding => "transfer_encoding",
            Self::ChunkedNotLast => "chunked_not_last",
            Self::LengthAndTransferEncoding => "length_and_transfer_encoding",
            Self::TransferEncodingInHttp10 => "transfer_encoding_in_http10",
            Self::ChunkSize => "chunk_size",
            Self::ChunkSizeOverflow => "chunk_size_overflow",
            Self::ChunkLine => "chunk_line",
            Self::ChunkEnd => "chunk_end",
            Self::Unsolicited => "unsolicited",
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyHeaders => "too_many_headers",
            Self::TooManyInterim => "too_many_interim",
            Self::ChunkLineTooLong => "chunk_line_too_long",
            Self::TrailersTooLarge => "trailers_too_large",
            Self::TooManyTrailers => "too_many_trailers",
        }
    }

    /// Whether the response exceeds a limit of ours (fault `too_large`) rather than breaking HTTP
    /// (fault `malformed`).
    pub const fn is_too_large(self) -> bool {
        matches!(
            self,
            Self::HeadTooLarge
                | Self::TooManyHeaders
                | Self::TooManyInterim
                | Self::ChunkLineTooLong
                | Self::TrailersTooLarge
                | Self::TooManyTrailers
        )
    }
}
