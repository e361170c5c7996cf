//! The control streams of both sides (RFC 9114, section 6.2.1).

use super::frame::{FrameStart, Payload, StartReader, kind, put_varint, take_varint};
use super::violation::StreamViolation;

/// Bytes of a frame of the control stream that is read: SETTINGS is the largest.
const PAYLOAD_MAX: u64 = 4096;

/// The types of unidirectional streams.
pub mod stream_kind {
    /// The control stream.
    pub const CONTROL: u64 = 0x0;
    /// A push.
    pub const PUSH: u64 = 0x1;

    /// Takes a type from the front of a stream; `None` while it is not whole.
    #[must_use]
    pub fn take(bytes: &mut &[u8]) -> Option<u64> {
        super::take_varint(bytes)
    }
}

/// What this side writes on its control stream: no dynamic table, and header blocks of at most
/// `header_bytes`.
#[must_use]
pub fn control_opening(header_bytes: usize) -> Vec<u8> {
    let mut settings = Vec::new();
    put_varint(&mut settings, setting::MAX_FIELD_SECTION_SIZE);
    put_varint(&mut settings, header_bytes as u64);
    let mut bytes = Vec::new();
    put_varint(&mut bytes, stream_kind::CONTROL);
    put_varint(&mut bytes, kind::SETTINGS);
    put_varint(&mut bytes, settings.len() as u64);
    bytes.append(&mut settings);
    bytes
}

mod setting {
    pub(super) const MAX_FIELD_SECTION_SIZE: u64 = 0x6;

    /// Settings that HTTP/2 has and HTTP/3 forbids (RFC 9114, section 7.2.4.1).
    pub(super) const fn is_of_http2(setting: u64) -> bool {
        matches!(setting, 0x0 | 0x2 | 0x3 | 0x4 | 0x5)
    }
}

/// What the server says on its control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlEvent {
    /// It will handle no request on this stream or on a later one.
    Goaway(u64),
}

/// Reads the server's control stream, behind its type.
#[derive(Debug, Default)]
pub struct ControlReader {
    has_settings: bool,
    start: StartReader,
    frame: Option<FrameStart>,
    payload: Payload,
    last_goaway: Option<u64>,
}

impl ControlReader {
    /// Takes what came, in slices of any size.
    ///
    /// # Errors
    /// What the server does wrong, which ends its connection.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        mut tell: impl FnMut(ControlEvent),
    ) -> Result<(), StreamViolation> {
        while !bytes.is_empty() || self.frame.is_some_and(|frame| frame.length == 0) {
            let Some(frame) = &mut self.frame else {
                self.frame = self.start.take(&mut bytes);
                if let Some(frame) = self.frame {
                    self.check(frame)?;
                }
                continue;
            };
            let kind = frame.kind;
            if !matches!(kind, kind::SETTINGS | kind::GOAWAY) {
                // Frames of no interest are passed over, however long they are.
                let here = usize::try_from(frame.length).unwrap_or(usize::MAX).min(bytes.len());
                bytes = &bytes[here..];
                frame.length -= here as u64;
                if frame.length == 0 {
                    self.frame = None;
                }
                continue;
            }
            let mut left = frame.length;
            let taken = self.payload.take(&mut bytes, &mut left, |payload| match kind {
                kind::SETTINGS => settings(payload).map(|()| None),
                _ => goaway(payload).map(Some),
            })?;
            frame.length = left;
            if let Some(said) = taken {
                self.frame = None;
                if let Some(stream) = said {
                    self.said_goaway(stream)?;
                    tell(ControlEvent::Goaway(stream));
                }
            }
        }
        Ok(())
    }

    /// Judges a frame by its start.
    fn check(&mut self, frame: FrameStart) -> Result<(), StreamViolation> {
        let is_first = !std::mem::replace(&mut self.has_settings, true);
        match (frame.kind, is_first) {
            (kind::SETTINGS, true) => {}
            (_, true) => return Err(StreamViolation::SettingsMissing),
            (kind::SETTINGS | kind::DATA | kind::HEADERS | kind::PUSH_PROMISE, _)
            | (kind::MAX_PUSH_ID, _) => return Err(StreamViolation::FrameUnexpected),
            (kind::CANCEL_PUSH, _) => return Err(StreamViolation::Push),
            (other, _) if kind::is_of_http2(other) => {
                return Err(StreamViolation::FrameUnexpected);
            }
            _ => {}
        }
        let is_read = matches!(frame.kind, kind::SETTINGS | kind::GOAWAY);
        match is_read && frame.length > PAYLOAD_MAX {
            true => Err(StreamViolation::FrameLength),
            false => Ok(()),
        }
    }

    fn said_goaway(&mut self, stream: u64) -> Result<(), StreamViolation> {
        // Only streams that a client opens for requests can be named.
        let grows = self.last_goaway.is_some_and(|last| stream > last);
        if grows || !stream.is_multiple_of(4) {
            return Err(StreamViolation::GoawayGrows);
        }
        self.last_goaway = Some(stream);
        Ok(())
    }
}

fn settings(mut payload: &[u8]) -> Result<(), StreamViolation> {
    while !payload.is_empty() {
        let setting = take_varint(&mut payload).ok_or(StreamViolation::FrameLength)?;
        take_varint(&mut payload).ok_or(StreamViolation::FrameLength)?;
        if setting::is_of_http2(setting) {
            return Err(StreamViolation::Settings);
        }
    }
    Ok(())
}

fn goaway(mut payload: &[u8]) -> Result<u64, StreamViolation> {
    let stream = take_varint(&mut payload).filter(|_| payload.is_empty());
    stream.ok_or(StreamViolation::FrameLength)
}
