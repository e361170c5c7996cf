//! Error codes of HTTP/2 and HTTP/3.

/// An error code of HTTP/2 (RFC 9113, section 7), or of HTTP/3 (RFC 9114, section 8.1; RFC 9204,
/// section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorCode {
    /// Not an error.
    NoError,
    /// The peer violated the protocol.
    ProtocolError,
    /// The sender had an internal error.
    InternalError,
    /// The peer violated flow control.
    FlowControlError,
    /// SETTINGS was not acknowledged in time.
    SettingsTimeout,
    /// A frame arrived on a closed stream.
    StreamClosed,
    /// A frame had an invalid size.
    FrameSizeError,
    /// The request was not processed.
    RefusedStream,
    /// The stream is no longer needed.
    Cancel,
    /// The state of header compression was lost.
    CompressionError,
    /// The connection of a CONNECT request was lost.
    ConnectError,
    /// The peer causes excessive load.
    EnhanceYourCalm,
    /// The TLS connection is not secure enough.
    InadequateSecurity,
    /// HTTP/1.1 is required.
    Http11Required,
    /// HTTP/3: not an error.
    H3NoError,
    /// HTTP/3: the peer violated the protocol.
    H3GeneralProtocolError,
    /// HTTP/3: the sender had an internal error.
    H3InternalError,
    /// HTTP/3: the peer opened a stream that is not accepted.
    H3StreamCreationError,
    /// HTTP/3: a critical stream was closed.
    H3ClosedCriticalStream,
    /// HTTP/3: a frame is not allowed in this state.
    H3FrameUnexpected,
    /// HTTP/3: a frame has an invalid layout or size.
    H3FrameError,
    /// HTTP/3: the peer causes excessive load.
    H3ExcessiveLoad,
    /// HTTP/3: a stream or push id was used incorrectly.
    H3IdError,
    /// HTTP/3: SETTINGS is invalid.
    H3SettingsError,
    /// HTTP/3: the first frame is not SETTINGS.
    H3MissingSettings,
    /// HTTP/3: the request was not processed.
    H3RequestRejected,
    /// HTTP/3: the request or its response is no longer needed.
    H3RequestCancelled,
    /// HTTP/3: the request's stream ended too early.
    H3RequestIncomplete,
    /// HTTP/3: a message is malformed.
    H3MessageError,
    /// HTTP/3: the connection of a CONNECT request was lost.
    H3ConnectError,
    /// HTTP/3: the request must be retried over HTTP/1.1.
    H3VersionFallback,
    /// HTTP/3: a header block cannot be decoded.
    QpackDecompressionFailed,
    /// HTTP/3: an encoder instruction is invalid.
    QpackEncoderStreamError,
    /// HTTP/3: a decoder instruction is invalid.
    QpackDecoderStreamError,
    /// A code that is not in the standard.
    Unknown,
}

/// HTTP/2 codes and names, indexed by number.
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

/// HTTP/3 codes, numbers and names.
const HTTP3: [(ErrorCode, u64, &str); 20] = [
    (ErrorCode::H3NoError, 0x100, "H3_NO_ERROR"),
    (ErrorCode::H3GeneralProtocolError, 0x101, "H3_GENERAL_PROTOCOL_ERROR"),
    (ErrorCode::H3InternalError, 0x102, "H3_INTERNAL_ERROR"),
    (ErrorCode::H3StreamCreationError, 0x103, "H3_STREAM_CREATION_ERROR"),
    (ErrorCode::H3ClosedCriticalStream, 0x104, "H3_CLOSED_CRITICAL_STREAM"),
    (ErrorCode::H3FrameUnexpected, 0x105, "H3_FRAME_UNEXPECTED"),
    (ErrorCode::H3FrameError, 0x106, "H3_FRAME_ERROR"),
    (ErrorCode::H3ExcessiveLoad, 0x107, "H3_EXCESSIVE_LOAD"),
    (ErrorCode::H3IdError, 0x108, "H3_ID_ERROR"),
    (ErrorCode::H3SettingsError, 0x109, "H3_SETTINGS_ERROR"),
    (ErrorCode::H3MissingSettings, 0x10a, "H3_MISSING_SETTINGS"),
    (ErrorCode::H3RequestRejected, 0x10b, "H3_REQUEST_REJECTED"),
    (ErrorCode::H3RequestCancelled, 0x10c, "H3_REQUEST_CANCELLED"),
    (ErrorCode::H3RequestIncomplete, 0x10d, "H3_REQUEST_INCOMPLETE"),
    (ErrorCode::H3MessageError, 0x10e, "H3_MESSAGE_ERROR"),
    (ErrorCode::H3ConnectError, 0x10f, "H3_CONNECT_ERROR"),
    (ErrorCode::H3VersionFallback, 0x110, "H3_VERSION_FALLBACK"),
    (ErrorCode::QpackDecompressionFailed, 0x200, "QPACK_DECOMPRESSION_FAILED"),
    (ErrorCode::QpackEncoderStreamError, 0x201, "QPACK_ENCODER_STREAM_ERROR"),
    (ErrorCode::QpackDecoderStreamError, 0x202, "QPACK_DECODER_STREAM_ERROR"),
];

impl ErrorCode {
    /// The HTTP/2 code with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        let known = usize::try_from(number).ok().and_then(|number| NAMES.get(number));
        known.map_or(Self::Unknown, |(code, _)| *code)
    }

    /// Its number in HTTP/2; INTERNAL_ERROR if HTTP/2 has none.
    #[must_use]
    pub fn number(self) -> u32 {
        let known = NAMES.iter().position(|(code, _)| *code == self);
        known.map_or(2, |number| number as u32)
    }

    /// The HTTP/3 code with this number.
    #[must_use]
    pub fn from_http3(number: u64) -> Self {
        let known = HTTP3.iter().find(|(_, known, _)| *known == number);
        known.map_or(Self::Unknown, |(code, ..)| *code)
    }

    /// Its number in HTTP/3; H3_INTERNAL_ERROR if HTTP/3 has none.
    #[must_use]
    pub fn http3_number(self) -> u64 {
        let known = HTTP3.iter().find(|(code, ..)| *code == self);
        known.map_or(0x102, |(_, number, _)| *number)
    }

    /// Its name in the standard.
    #[must_use]
    pub fn name(self) -> &'static str {
        let known = Self::names().find(|(code, _)| *code == self);
        known.map_or("unknown code", |(_, name)| name)
    }

    /// The code with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let known = Self::names().find(|(_, known)| *known == name);
        known.map_or(Self::Unknown, |(code, _)| code)
    }

    fn names() -> impl Iterator<Item = (Self, &'static str)> {
        NAMES.into_iter().chain(HTTP3.into_iter().map(|(code, _, name)| (code, name)))
    }
}
