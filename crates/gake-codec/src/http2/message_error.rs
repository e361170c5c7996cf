//! Malformed responses on a sound connection (RFC 9113, section 8.1.1).

use gake_core::record::ErrorCode;

/// Why a response is malformed. Its stream is reset; the connection continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MessageError {
    /// No `:status`, or two.
    #[error("the response does not have exactly one :status")]
    StatusMissing,
    /// `:status` is not three digits from 100 on.
    #[error("the :status is not a number from 100 to 999")]
    Status,
    /// A pseudo-header that responses do not have, or one after a header or among the trailers.
    #[error("a pseudo-header is unknown or misplaced")]
    PseudoHeader,
    /// A header name that is empty, not a token, or holds a capital letter.
    #[error("a header name holds a character that is not allowed there")]
    HeaderName,
    /// A header value with NUL or a line break.
    #[error("a header value holds a control character")]
    HeaderValue,
    /// `connection` or another header that only HTTP/1.1 has (RFC 9113, section 8.2.2).
    #[error("a header is only allowed in HTTP/1.1")]
    ConnectionHeader,
    /// `content-length` is not a number, or two differ.
    #[error("content-length is not a number, or two values differ")]
    ContentLength,
    /// The length of the body differs from `content-length`.
    #[error("the length of the body differs from content-length")]
    LengthMismatch,
    /// DATA before HEADERS.
    #[error("the body comes before the headers")]
    DataBeforeHeaders,
    /// Headers after the body that do not end the stream.
    #[error("the trailers do not end the response")]
    Trailers,
    /// A 1xx that ends the stream, or 101.
    #[error("an interim response ends the stream or switches protocols")]
    Interim,
    /// More 1xx than the bound.
    #[error("more interim responses came than the bound")]
    TooManyInterim,
    /// WINDOW_UPDATE of 0 on the stream.
    #[error("the server widened the window of the stream by 0 bytes")]
    Window,
    /// A window of the stream beyond 2^31−1.
    #[error("the server widened the window of the stream beyond 2^31-1 bytes")]
    WindowOverflow,
}

impl MessageError {
    /// A stable name in snake case, for reports and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StatusMissing => "status_missing",
            Self::Status => "status",
            Self::PseudoHeader => "pseudo_header",
            Self::HeaderName => "header_name",
            Self::HeaderValue => "header_value",
            Self::ConnectionHeader => "connection_header",
            Self::ContentLength => "content_length",
            Self::LengthMismatch => "length_mismatch",
            Self::DataBeforeHeaders => "data_before_headers",
            Self::Trailers => "trailers",
            Self::Interim => "interim",
            Self::TooManyInterim => "too_many_interim",
            Self::Window => "stream_window",
            Self::WindowOverflow => "stream_window_overflow",
        }
    }

    /// The code with which the stream is reset.
    pub(super) const fn code(self) -> ErrorCode {
        match self {
            Self::WindowOverflow => ErrorCode::FlowControlError,
            _ => ErrorCode::ProtocolError,
        }
    }
}
