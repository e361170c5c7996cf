//! Violations by a server that end its connection.

use gake_core::record::ErrorCode;

use super::hpack_error::HpackError;

/// A rule of HTTP/2 that the server broke, or a limit of ours that it exceeded. It ends the
/// connection with all its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The first frame is not SETTINGS.
    #[error("the server does not speak HTTP/2")]
    NotHttp2,
    /// A frame over 16,384 bytes.
    #[error("a frame is larger than allowed")]
    FrameTooLarge,
    /// A frame with the wrong length for its type.
    #[error("a frame does not have the length of its type")]
    FrameLength,
    /// A frame on a stream that cannot carry it: idle, even, 0, or not 0.
    #[error("a frame is on a stream that cannot have it")]
    FrameStream,
    /// Padding as long as its frame.
    #[error("the padding is as long as its frame")]
    Padding,
    /// Something between a header block's frames, or a CONTINUATION without one.
    #[error("a CONTINUATION is missing, or has no header block")]
    Continuation,
    /// A header block in more bytes or frames than the bound.
    #[error("a header block is longer than the bound")]
    HeaderBlockTooLarge,
    /// A setting that is not valid.
    #[error("SETTINGS holds a value that is not allowed")]
    Settings,
    /// More DATA than the window allowed.
    #[error("the server sent more than the window allows")]
    Window,
    /// WINDOW_UPDATE of 0 on the connection.
    #[error("the server widened the window of the connection by 0 bytes")]
    WindowUpdate,
    /// A window beyond 2^31−1: of the connection by WINDOW_UPDATE, or of streams by a setting.
    #[error("the server widened a window beyond 2^31-1 bytes")]
    WindowOverflow,
    /// PUSH_PROMISE, which gake switches off.
    #[error("the server pushed although push is disabled")]
    Push,
    /// More frames without effect than the limit.
    #[error("the server floods the connection with frames without effect")]
    Flood,
    /// A header block that is not HPACK.
    #[error(transparent)]
    Hpack(#[from] HpackError),
}

impl Violation {
    /// A stable name in snake case, for reports and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotHttp2 => "not_http2",
            Self::FrameTooLarge => "frame_size",
            Self::FrameLength => "frame_length",
            Self::FrameStream => "frame_stream",
            Self::Padding => "padding",
            Self::Continuation => "continuation",
            Self::HeaderBlockTooLarge => "header_block_too_large",
            Self::Settings => "settings",
            Self::Window => "window",
            Self::WindowUpdate => "window_update",
            Self::WindowOverflow => "window_overflow",
            Self::Push => "push_promise",
            Self::Flood => "flood",
            Self::Hpack(HpackError::Truncated) => "hpack_truncated",
            Self::Hpack(HpackError::Index) => "hpack_index",
            Self::Hpack(HpackError::Integer) => "hpack_integer",
            Self::Hpack(HpackError::Huffman) => "hpack_huffman",
            Self::Hpack(HpackError::SizeUpdate) => "hpack_size_update",
            Self::Hpack(HpackError::TooLarge) => "header_list_too_large",
        }
    }

    /// Whether the server exceeds a limit of ours (fault `too_large`) rather than breaking HTTP/2
    /// (fault `malformed`).
    #[must_use]
    pub const fn is_too_large(self) -> bool {
        matches!(self, Self::HeaderBlockTooLarge | Self::Flood | Self::Hpack(HpackError::TooLarge))
    }

    /// The code for the GOAWAY frame.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::FrameTooLarge | Self::FrameLength => ErrorCode::FrameSizeError,
            Self::Window | Self::WindowOverflow => ErrorCode::FlowControlError,
            Self::Hpack(HpackError::TooLarge) | Self::HeaderBlockTooLarge | Self::Flood => {
                ErrorCode::EnhanceYourCalm
            }
            Self::Hpack(_) => ErrorCode::CompressionError,
            _ => ErrorCode::ProtocolError,
        }
    }
}
