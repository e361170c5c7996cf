//! Why a peer ended an HTTP/2 stream or connection: its error code.

/// An error code of HTTP/2 (RFC 9113, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorCode {
    /// Nothing is wrong.
    NoError,
    /// The other side broke the protocol.
    ProtocolError,
    /// The sender had an internal error.
    InternalError,
    /// The other side broke the flow control.
    FlowControlError,
    /// SETTINGS was not acknowledged in time.
    SettingsTimeout,
    /// A frame came on a closed stream.
    StreamClosed,
    /// A frame had a wrong size.
    FrameSizeError,
    /// The request was not handled at all.
    RefusedStream,
    /// The stream is no longer needed.
    Cancel,
    /// The state of header compression was lost.
    CompressionError,
    /// The connection of a CONNECT ended.
    ConnectError,
    /// The other side causes too much load.
    EnhanceYourCalm,
    /// The TLS connection is not secure enough.
    InadequateSecurity,
    /// HTTP/1.1 is required.
    Http11Required,
    /// A code that is not in the standard.
    Unknown,
}

/// Each code with its name in the standard; its place is its number.
const NAMES: [(ErrorCode, &str); 14] = [
    (ErrorCode::NoError, "NO_ERROR"),
    (ErrorCode::ProtocolError, "PROTOCOL_ERROR"),
    (ErrorCode::InternalError, "INTERNAL_ERROR"),
    (ErrorCode::FlowControlError, "FLOW_CONTROL_ERROR"),
    (ErrorCode::SettingsTimeout, "SETTINGS_TIMEOUT"),
    (ErrorCode::StreamClosed, "STREAM_CLOSED"),
    (ErrorCode::FrameSizeError, "FRAME_SIZE_ERROR"),
    (ErrorCode::RefusedStream, "REFUSED_STREAM"),
    (ErrorCode::Cancel, "CANCEL"),
    (ErrorCode::CompressionError, "COMPRESSION_ERROR"),
    (ErrorCode::ConnectError, "CONNECT_ERROR"),
    (ErrorCode::EnhanceYourCalm, "ENHANCE_YOUR_CALM"),
    (ErrorCode::InadequateSecurity, "INADEQUATE_SECURITY"),
    (ErrorCode::Http11Required, "HTTP_1_1_REQUIRED"),
];

impl ErrorCode {
    /// The code with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        let known = usize::try_from(number).ok().and_then(|number| NAMES.get(number));
        known.map_or(Self::Unknown, |(code, _)| *code)
    }

    /// Its number; that of INTERNAL_ERROR for an unknown one.
    #[must_use]
    pub fn number(self) -> u32 {
        let known = NAMES.iter().position(|(code, _)| *code == self);
        known.map_or(2, |number| number as u32)
    }

    /// Its name in the standard.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(code, _)| *code == self);
        known.map_or("unknown code", |(_, name)| name)
    }

    /// The code with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known.map_or(Self::Unknown, |(code, _)| *code)
    }
}
