//! HEADERS and CONTINUATION: heads, trailers and the end of responses.

use gake_core::record::ErrorCode;

use super::connection::ClientConnection;
use super::events::{StreamEnding, StreamEvents};
use super::fields::ResponseFields;
use super::frame::{FrameHeader, HEADER_LEN, flag};
use super::message_error::MessageError;
use super::read_state::HeaderBlock;
use super::violation::Violation;

/// Frames of one header block.
const BLOCK_FRAMES_MAX: u32 = 1_000;

impl ClientConnection {
    #[inline]
    pub(super) fn headers<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        mut payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        if self.is_idle(header.stream) {
            return Err(Violation::FrameStream);
        }
        if header.has(flag::PADDED) {
            let (padding, rest) = payload.split_first().ok_or(Violation::FrameLength)?;
            let length = rest.len().checked_sub(usize::from(*padding));
            payload = &rest[..length.ok_or(Violation::Padding)?];
        }
        if header.has(flag::PRIORITY) {
            payload = payload.get(5..).ok_or(Violation::FrameLength)?;
        }
        let block = HeaderBlock {
            stream: header.stream,
            ends: header.has(flag::END_STREAM),
            frames: 1,
            bytes: (HEADER_LEN + header.length) as u64,
        };
        if header.has(flag::END_HEADERS) {
            return self.block(block, payload, events);
        }
        self.read_state.block = Some(block);
        self.read_state.block_bytes.extend_from_slice(payload);
        Ok(())
    }

    #[cold]
    pub(super) fn continuation<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(block) = &mut self.read_state.block else { return Err(Violation::Continuation) };
        block.frames += 1;
        block.bytes += (HEADER_LEN + header.length) as u64;
        let bytes = &mut self.read_state.block_bytes;
        bytes.extend_from_slice(payload);
        if bytes.len() > self.limits.header_bytes || block.frames > BLOCK_FRAMES_MAX {
            return Err(Violation::HeaderBlockTooLarge);
        }
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        let block = *block;
        self.read_state.block = None;
        let mut bytes = std::mem::take(&mut self.read_state.block_bytes);
        let taken = self.block(block, &bytes, events);
        bytes.clear();
        bytes.shrink_to(256);
        self.read_state.block_bytes = bytes;
        taken
    }

    /// Takes a complete header block. Blocks of ended streams are decoded, too: they change the
    /// table.
    #[inline]
    fn block<E: StreamEvents>(
        &mut self,
        block: HeaderBlock,
        bytes: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(slot) = self.streams.find(block.stream) else {
            self.decoder.decode(bytes)?;
            self.counts.bytes_in += block.bytes;
            let is_late = self.has_reset;
            return if is_late {
                self.read_state.idle_frame()
            } else {
                Err(Violation::FrameStream)
            };
        };
        let stream = self.streams.get(slot);
        stream.bytes_in += block.bytes;
        let owner = stream.owner;
        let is_first = !std::mem::replace(&mut stream.has_begun, true);
        let mut shown = Vec::new();
        let fields = if stream.is_shown {
            let mut keep = |name: &[u8], value: &[u8]| shown.push((name.to_vec(), value.to_vec()));
            self.decoder.decode_shown(bytes, &mut keep)?
        } else {
            self.decoder.decode(bytes)?
        };
        self.counts.header_bytes += bytes.len() as u64;
        self.counts.header_text_bytes += u64::from(fields.text_bytes);
        self.read_state.useful_frame();
        if is_first {
            events.began(owner);
        }
        if let Err(error) = self.head(slot, &fields, block.ends) {
            self.malformed(slot, error, events);
            return Ok(());
        }
        let stream = self.streams.get(slot);
        if stream.is_shown {
            shown.retain(|(name, _)| !name.starts_with(b":"));
            match fields.status {
                0 => events.trailers(owner, shown),
                status if status == stream.status => events.head(owner, status, shown),
                _ => {}
            }
        }
        if block.ends {
            self.streams.get(slot).grpc_status = fields.grpc_status;
            self.complete(slot, events);
        }
        Ok(())
    }

    /// Applies a header block to its stream: an interim head, the final one, or trailers.
    #[inline]
    fn head(&mut self, slot: u32, fields: &ResponseFields, ends: bool) -> Result<(), MessageError> {
        if let Some(error) = fields.error {
            return Err(error);
        }
        let interim_max = self.limits.interim;
        let stream = self.streams.get(slot);
        match (stream.status, fields.status) {
            (0, 0) => Err(MessageError::StatusMissing),
            (0, 101) => Err(MessageError::Interim),
            (0, 100..=199) if ends => Err(MessageError::Interim),
            (0, 100..=199) => {
                stream.interim += 1;
                match stream.interim > interim_max {
                    true => Err(MessageError::TooManyInterim),
                    false => Ok(()),
                }
            }
            (0, status) => {
                stream.status = status;
                let is_empty = stream.is_head || matches!(status, 204 | 304);
                stream.announced = if is_empty { Some(0) } else { fields.content_length };
                Ok(())
            }
            (_, 1..) => Err(MessageError::PseudoHeader),
            (_, 0) if ends => Ok(()),
            (_, 0) => Err(MessageError::Trailers),
        }
    }

    /// The server has ended a stream: its response is complete.
    #[inline]
    pub(super) fn complete<E: StreamEvents>(&mut self, slot: u32, events: &mut E) {
        let stream = self.streams.get(slot);
        let (owner, status, body_bytes) = (stream.owner, stream.status, stream.body);
        if stream.announced.is_some_and(|announced| announced != body_bytes) {
            return self.malformed(slot, MessageError::LengthMismatch, events);
        }
        if status == 0 {
            return self.malformed(slot, MessageError::StatusMissing, events);
        }
        let ending = StreamEnding::Response { status, body_bytes };
        let end = if stream.upload.is_some() {
            // The response has ended before the request, whose rest is pointless.
            self.abort(slot, ErrorCode::NoError, ending)
        } else {
            let stream = self.streams.remove(slot);
            self.ended(&stream, ending)
        };
        events.ended(owner, end);
    }

    #[cold]
    pub(super) fn malformed<E: StreamEvents>(
        &mut self,
        slot: u32,
        error: MessageError,
        events: &mut E,
    ) {
        let owner = self.streams.get(slot).owner;
        let end = self.abort(slot, error.code(), StreamEnding::Malformed(error));
        events.ended(owner, end);
    }
}
