//! Frames and the integers of QUIC (RFC 9114, section 7; RFC 9000, section 16).

use super::violation::StreamViolation;

pub(super) mod kind {
    pub(crate) const DATA: u64 = 0x0;
    pub(crate) const HEADERS: u64 = 0x1;
    pub(crate) const CANCEL_PUSH: u64 = 0x3;
    pub(crate) const SETTINGS: u64 = 0x4;
    pub(crate) const PUSH_PROMISE: u64 = 0x5;
    pub(crate) const GOAWAY: u64 = 0x7;
    pub(crate) const MAX_PUSH_ID: u64 = 0xd;

    /// Types of HTTP/2 that HTTP/3 forbids (RFC 9114, section 7.2.8).
    pub(crate) const fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }
}

/// Maximum bytes of type and length.
const HEADER_MAX: usize = 16;

/// Takes an integer from the front of `bytes`; `None` while it is incomplete.
pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, _) = bytes.split_first()?;
    let length = 1 << (first >> 6);
    let (integer, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let value = integer.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    // The first two bits are the length.
    Some(value & (u64::MAX >> (66 - 8 * length as u32)))
}

/// Appends an integer below 2^62 in its shortest form.
pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: u64,
    pub(super) length: u64,
}

/// Collects a frame header that may be split over slices.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FrameHeaderReader {
    bytes: [u8; HEADER_MAX],
    length: u8,
}

impl FrameHeaderReader {
    /// Takes the bytes of a frame header from the front of `bytes`; `None` while it is incomplete.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        if self.length == 0 {
            // Most lie in one slice.
            let mut rest = *bytes;
            if let Some(header) = whole(&mut rest) {
                *bytes = rest;
                return Some(header);
            }
        }
        while let Some((&byte, rest)) = bytes.split_first() {
            *bytes = rest;
            self.bytes[usize::from(self.length)] = byte;
            self.length += 1;
            if let Some(header) = whole(&mut &self.bytes[..usize::from(self.length)]) {
                self.length = 0;
                return Some(header);
            }
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

fn whole(bytes: &mut &[u8]) -> Option<FrameHeader> {
    let kind = take_varint(bytes)?;
    let length = take_varint(bytes)?;
    Some(FrameHeader { kind, length })
}

/// Collects a payload that may be split over slices.
#[derive(Debug, Default)]
pub(super) struct PayloadBuffer {
    bytes: Vec<u8>,
}

impl PayloadBuffer {
    /// Takes bytes of a payload of which `left` bytes remain, and hands it to `done` when it is
    /// complete.
    pub(super) fn take<T>(
        &mut self,
        bytes: &mut &[u8],
        left: &mut u64,
        done: impl FnOnce(&[u8]) -> Result<T, StreamViolation>,
    ) -> Result<Option<T>, StreamViolation> {
        let here = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let (taken, rest) = bytes.split_at(here);
        *bytes = rest;
        *left -= here as u64;
        if *left > 0 {
            self.bytes.extend_from_slice(taken);
            return Ok(None);
        }
        if self.bytes.is_empty() {
            return done(taken).map(Some);
        }
        self.bytes.extend_from_slice(taken);
        let whole = std::mem::take(&mut self.bytes);
        done(&whole).map(Some)
    }
}
