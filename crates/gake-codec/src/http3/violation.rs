//! Violations by a server.

use gake_core::record::{ErrorCode, Fault};

use crate::http2::{HpackError, MessageError};

/// A rule of HTTP/3 that the server broke, or a limit of ours that it exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamViolation {
    /// The response is malformed; its connection is sound.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The stream ended within a frame.
    #[error("the stream ends within a frame")]
    FrameCut,
    /// A frame on a stream, or at a position, that cannot have it.
    #[error("a frame is on a stream that cannot have it")]
    FrameUnexpected,
    /// A frame with the wrong length for its content.
    #[error("a frame does not have the length of its content")]
    FrameLength,
    /// A header block that is not QPACK, or uses a dynamic table, which gake does not allow.
    #[error("a header block is not QPACK without a dynamic table")]
    Qpack(HpackError),
    /// A header block in more bytes than the bound.
    #[error("a header block is longer than the bound")]
    HeaderBlockTooLarge,
    /// A setting that is not valid.
    #[error("SETTINGS holds a value that is not allowed")]
    Settings,
    /// The control stream does not begin with SETTINGS.
    #[error("the control stream does not begin with SETTINGS")]
    SettingsMissing,
    /// A GOAWAY with a later stream than an earlier GOAWAY, or with an invalid one.
    #[error("a GOAWAY names a later stream than an earlier one")]
    GoawayGrows,
    /// A push, which gake never allows.
    #[error("the server pushed although push is disabled")]
    Push,
    /// The control stream ended.
    #[error("the server closed its control stream")]
    ControlClosed,
    /// A second control stream.
    #[error("the server opened a second control stream")]
    SecondControl,
}

impl StreamViolation {
    /// A stable name in snake case, for reports and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message(error) => error.name(),
            Self::FrameCut => "frame_cut",
            Self::FrameUnexpected => "frame_unexpected",
            Self::FrameLength => "frame_length",
            Self::Qpack(HpackError::Truncated) => "qpack_truncated",
            Self::Qpack(HpackError::Index) => "qpack_index",
            Self::Qpack(HpackError::Integer) => "qpack_integer",
            Self::Qpack(HpackError::Huffman) => "qpack_huffman",
            Self::Qpack(HpackError::SizeUpdate) => "qpack_dynamic_table",
            Self::Qpack(HpackError::TooLarge) => "header_list_too_large",
            Self::HeaderBlockTooLarge => "header_block_too_large",
            Self::Settings => "settings",
            Self::SettingsMissing => "settings_missing",
            Self::GoawayGrows => "goaway",
            Self::Push => "push_promise",
            Self::ControlClosed => "control_stream_closed",
            Self::SecondControl => "control_stream",
        }
    }

    /// The fault of the failed exchange.
    #[must_use]
    pub const fn fault(self) -> Fault {
        match self {
            Self::HeaderBlockTooLarge | Self::Qpack(HpackError::TooLarge) => {
                Fault::TooLarge(self.name())
            }
            _ => Fault::Malformed(self.name()),
        }
    }

    /// The code for the reset of the stream, or the close of the connection.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Message(_) => ErrorCode::H3MessageError,
            Self::FrameCut | Self::FrameLength => ErrorCode::H3FrameError,
            Self::FrameUnexpected => ErrorCode::H3FrameUnexpected,
            Self::HeaderBlockTooLarge | Self::Qpack(HpackError::TooLarge) => {
                ErrorCode::H3ExcessiveLoad
            }
            Self::Qpack(_) => ErrorCode::QpackDecompressionFailed,
            Self::Settings => ErrorCode::H3SettingsError,
            Self::SettingsMissing => ErrorCode::H3MissingSettings,
            Self::GoawayGrows | Self::Push => ErrorCode::H3IdError,
            Self::ControlClosed => ErrorCode::H3ClosedCriticalStream,
            Self::SecondControl => ErrorCode::H3StreamCreationError,
        }
    }

    /// Whether it ends the connection with all its streams.
    #[must_use]
    pub const fn ends_connection(self) -> bool {
        !matches!(
            self,
            Self::Message(_) | Self::HeaderBlockTooLarge | Self::Qpack(HpackError::TooLarge)
        )
    }
}
