//! The control streams of both sides (RFC 9114, section 6.2.1).

use super::frame::{FrameHeader, FrameHeaderReader, PayloadBuffer, kind, put_varint, take_varint};
use super::violation::StreamViolation;

/// Maximum payload of SETTINGS and GOAWAY.
const PAYLOAD_MAX: u64 = 4096;

/// The types of unidirectional streams.
pub mod stream_kind {
    /// The control stream.
    pub const CONTROL: u64 = 0x0;
    /// A push stream.
    pub const PUSH: u64 = 0x1;

    /// Takes the type from the front of a stream; `None` while it is incomplete.
    #[must_use]
    pub fn take(bytes: &mut &[u8]) -> Option<u64> {
        super::take_varint(bytes)
    }
}

/// The content of the client's control stream: SETTINGS without a dynamic table, and with header
/// blocks of at most `header_bytes`.
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

    /// Settings of HTTP/2 that HTTP/3 forbids (RFC 9114, section 7.2.4.1).
    pub(super) const fn is_of_http2(setting: u64) -> bool {
        matches!(setting, 0x0 | 0x2 | 0x3 | 0x4 | 0x5)
    }
}

/// An event on the server's control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlEvent {
    /// The server will process no request on this stream or a later one.
    Goaway(u64),
}

/// Reads the server's control stream, after its type.
#[derive(Debug, Default)]
pub struct ControlReader {
    has_settings: bool,
    header: FrameHeaderReader,
    frame: Option<FrameHeader>,
    payload: PayloadBuffer,
    last_goaway: Option<u64>,
}

impl ControlReader {
    /// Takes the stream in slices of any size and calls `event` for each event.
    ///
    /// # Errors
    /// The violation that ends the connection.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        mut event: impl FnMut(ControlEvent),
    ) -> Result<(), StreamViolation> {
        while !bytes.is_empty() || self.frame.is_some_and(|frame| frame.length == 0) {
            let Some(frame) = &mut self.frame else {
                self.frame = self.header.take(&mut bytes);
                if let Some(frame) = self.frame {
                    self.check(frame)?;
                }
                continue;
            };
            let kind = frame.kind;
            if !matches!(kind, kind::SETTINGS | kind::GOAWAY) {
                // Other frames are skipped, whatever their length.
                let here = usize::try_from(frame.length).unwrap_or(usize::MAX).min(bytes.len());
                bytes = &bytes[here..];
                frame.length -= here as u64;
                if frame.length == 0 {
                    self.frame = None;
                }
                continue;
            }
            let mut left = frame.length;
            let read = self.payload.take(&mut bytes, &mut left, |payload| match kind {
                kind::SETTINGS => settings(payload).map(|()| None),
                _ => goaway(payload).map(Some),
            })?;
            frame.length = left;
            if let Some(goaway) = read {
                self.frame = None;
                if let Some(stream) = goaway {
                    self.check_goaway(stream)?;
                    event(ControlEvent::Goaway(stream));
                }
            }
        }
        Ok(())
    }

    fn check(&mut self, frame: FrameHeader) -> Result<(), StreamViolation> {
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

    fn check_goaway(&mut self, stream: u64) -> Result<(), StreamViolation> {
        // The stream must be a client's bidirectional one.
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
