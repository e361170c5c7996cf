//! The read state of a connection.

use super::violation::Violation;

/// Frames in a row that make no progress on any stream.
const IDLE_FRAMES_MAX: u32 = 10_000;

#[derive(Debug, Default)]
pub(super) struct ReadState {
    /// An incomplete frame, other than DATA.
    pub(super) partial: Vec<u8>,
    pub(super) data: Option<DataFrame>,
    pub(super) block: Option<HeaderBlock>,
    /// The bytes of `block` received. Cleared, not dropped, to reuse its memory.
    pub(super) block_bytes: Vec<u8>,
    idle_frames: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DataFrame {
    pub(super) stream: u32,
    /// Remaining bytes of the payload, padding included.
    pub(super) left: usize,
    pub(super) padding: usize,
    /// Whether the next byte is the length of the padding.
    pub(super) has_padding_length: bool,
    pub(super) ends: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HeaderBlock {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

impl ReadState {
    /// Resets the count of idle frames: a stream has made progress.
    #[inline]
    pub(super) const fn useful_frame(&mut self) {
        self.idle_frames = 0;
    }

    /// Counts a frame without progress.
    pub(super) const fn idle_frame(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX { Err(Violation::Flood) } else { Ok(()) }
    }
}
