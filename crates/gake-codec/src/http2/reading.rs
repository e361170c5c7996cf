//! How far the input of a connection is read.

use super::violation::Violation;

/// Frames in a row that neither bring nor allow anything.
const IDLE_FRAMES_MAX: u32 = 10_000;

/// How far the input is read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// A frame that has not come whole; DATA is never kept.
    pub(super) partial: Vec<u8>,
    pub(super) data: Option<Data>,
    pub(super) block: Option<Block>,
    /// What of `block` has come; kept for its memory.
    pub(super) block_bytes: Vec<u8>,
    idle_frames: u32,
}

/// A DATA frame under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub(super) stream: u32,
    /// Bytes of the payload to come, padding included.
    pub(super) left: usize,
    pub(super) padding: usize,
    /// Whether the first byte says how long the padding is.
    pub(super) has_padding_length: bool,
    pub(super) ends: bool,
}

/// A header block under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

impl Reading {
    /// Something has come that brings the connection on.
    #[inline]
    pub(super) const fn is_useful(&mut self) {
        self.idle_frames = 0;
    }

    /// A frame has come that does not.
    pub(super) const fn idle_frame(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames > IDLE_FRAMES_MAX { Err(Violation::Flood) } else { Ok(()) }
    }
}
