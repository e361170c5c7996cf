//! What the server says: frames, in whatever slices they come.

use gake_core::record::ErrorCode;

use super::connection::ClientConnection;
use super::events::{StreamEnd, StreamEnding, StreamEvents};
use super::fields::FieldsMeaning;
use super::frame::{FrameHeader, HEADER_LEN, PAYLOAD_MAX, flag, kind, put_number};
use super::message_error::MessageError;
use super::violation::Violation;

/// Frames in a row that neither bring nor allow anything.
const IDLE_FRAMES_MAX: u32 = 10_000;

/// Frames of one header block.
const BLOCK_FRAMES_MAX: u32 = 1_000;

/// How far the input is read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// A frame that has not come whole; DATA is never kept.
    partial: Vec<u8>,
    data: Option<Data>,
    block: Option<Block>,
    /// What of `block` has come; kept for its memory.
    block_bytes: Vec<u8>,
    idle_frames: u32,
}

/// A DATA frame under way.
#[derive(Debug, Clone, Copy)]
struct Data {
    stream: u32,
    /// Bytes of the payload to come, padding included.
    left: usize,
    padding: usize,
    /// Whether the first byte says how long the padding is.
    has_padding_length: bool,
    ends: bool,
}

/// A header block under way.
#[derive(Debug, Clone, Copy)]
struct Block {
    stream: u32,
    ends: bool,
    frames: u32,
    bytes: u64,
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

impl ClientConnection {
    /// Takes what the server has sent. The outcome does not depend on how it is split.
    ///
    /// # Errors
    /// What ends the connection. Streams that live then are still to be ended.
    pub fn receive<E: StreamEvents>(
        &mut self,
        mut input: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        while !input.is_empty() {
            if self.reading.data.is_some() {
                self.data_part(&mut input, events)?;
            } else if self.reading.partial.is_empty() && input.len() >= HEADER_LEN {
                let Some((bytes, rest)) = input.split_first_chunk() else { return Ok(()) };
                let header = FrameHeader::read(bytes);
                self.check(header)?;
                if header.kind == kind::DATA {
                    input = rest;
                    self.begin_data(header, events)?;
                } else if let Some((payload, rest)) = rest.split_at_checked(header.length) {
                    input = rest;
                    self.frame(header, payload, events)?;
                } else {
                    self.reading.partial.extend_from_slice(input);
                    return Ok(());
                }
            } else {
                self.partial_frame(&mut input, events)?;
            }
        }
        Ok(())
    }

    /// A frame that does not lie in one slice.
    #[cold]
    fn partial_frame<E: StreamEvents>(
        &mut self,
        input: &mut &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let partial = &mut self.reading.partial;
        let header = partial.first_chunk().map(FrameHeader::read);
        let wanted = header.map_or(HEADER_LEN, |header| HEADER_LEN + header.length);
        let (part, rest) = input.split_at(input.len().min(wanted - partial.len()));
        partial.extend_from_slice(part);
        *input = rest;
        let Some(header) = partial.first_chunk().map(FrameHeader::read) else { return Ok(()) };
        let is_whole = partial.len() == HEADER_LEN + header.length;
        if partial.len() == HEADER_LEN {
            self.check(header)?;
            if header.kind == kind::DATA {
                self.reading.partial.clear();
                return self.begin_data(header, events);
            }
        }
        if is_whole {
            let mut whole = std::mem::take(&mut self.reading.partial);
            let taken = self.frame(header, &whole[HEADER_LEN..], events);
            whole.clear();
            // A large frame must not cost memory for the rest of the connection's life.
            whole.shrink_to(256);
            self.reading.partial = whole;
            return taken;
        }
        Ok(())
    }

    /// What can be said of a frame before its payload.
    #[inline]
    fn check(&self, header: FrameHeader) -> Result<(), Violation> {
        if !self.peer.has_settings && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Violation::NotHttp2);
        }
        if header.length > PAYLOAD_MAX {
            return Err(Violation::FrameTooLarge);
        }
        match &self.reading.block {
            Some(block) if header.kind != kind::CONTINUATION || header.stream != block.stream => {
                Err(Violation::Continuation)
            }
            None if header.kind == kind::CONTINUATION => Err(Violation::Continuation),
            _ => Ok(()),
        }
    }

    #[inline]
    fn frame<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        match header.kind {
            kind::HEADERS => self.headers(header, payload, events),
            kind::CONTINUATION => self.continuation(header, payload, events),
            _ => self.control_frame(header, payload, events),
        }
    }

    /// Whether no stream with this number was started.
    #[inline]
    pub(super) const fn is_idle(&self, stream: u32) -> bool {
        stream == 0 || stream.is_multiple_of(2) || stream >= self.next_id
    }

    fn begin_data<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        events: &mut E,
    ) -> Result<(), Violation> {
        if self.is_idle(header.stream) {
            return Err(Violation::FrameStream);
        }
        let length = header.length as u32;
        self.unacknowledged += length;
        if self.unacknowledged > self.limits.connection_window.max(super::connection::FIRST_WINDOW)
        {
            return Err(Violation::Window);
        }
        if self.unacknowledged >= self.limits.connection_window / 2 {
            let size = std::mem::take(&mut self.unacknowledged);
            self.control(|out| put_number(out, kind::WINDOW_UPDATE, 0, size));
        }
        let bytes = (HEADER_LEN + header.length) as u64;
        let has_padding_length = header.has(flag::PADDED);
        if has_padding_length && header.length == 0 {
            return Err(Violation::FrameLength);
        }
        let ends = header.has(flag::END_STREAM);
        match self.streams.find(header.stream) {
            Some(slot) => {
                self.streams.get(slot).bytes_in += bytes;
                self.stream_window(slot, length, ends)?;
                if self.streams.get(slot).status == 0 {
                    self.malformed(slot, MessageError::DataBeforeHeaders, events);
                }
            }
            None if self.has_reset => self.counts.bytes_in += bytes,
            None => return Err(Violation::FrameStream),
        }
        if header.length == 0 && !ends {
            return self.reading.idle_frame();
        }
        let (stream, left) = (header.stream, header.length);
        let data = Data { stream, left, padding: 0, has_padding_length, ends };
        if left == 0 {
            self.end_data(data, events);
        } else {
            self.reading.data = Some(data);
        }
        Ok(())
    }

    /// Takes `length` of a stream's window, and opens it again in time.
    #[inline]
    fn stream_window(&mut self, slot: u32, length: u32, ends: bool) -> Result<(), Violation> {
        let window = self.limits.stream_window;
        let stream = self.streams.get(slot);
        stream.unacknowledged += length;
        if stream.unacknowledged > window.max(super::connection::FIRST_WINDOW) {
            return Err(Violation::Window);
        }
        if stream.unacknowledged >= window / 2 && !ends {
            let (id, size) = (stream.id, std::mem::take(&mut stream.unacknowledged));
            if size > 0 {
                self.control(|out| put_number(out, kind::WINDOW_UPDATE, id, size));
            }
        }
        Ok(())
    }

    /// The next part of a DATA frame.
    #[inline]
    fn data_part<E: StreamEvents>(
        &mut self,
        input: &mut &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(mut data) = self.reading.data.take() else { return Ok(()) };
        if data.has_padding_length
            && let Some((padding, rest)) = input.split_first()
        {
            (data.padding, data.has_padding_length) = (usize::from(*padding), false);
            data.left -= 1;
            *input = rest;
            if data.padding > data.left {
                return Err(Violation::Padding);
            }
        }
        let (body, rest) = input.split_at(input.len().min(data.left - data.padding));
        if !body.is_empty() {
            self.reading.is_useful();
            if let Some(slot) = self.streams.find(data.stream) {
                let stream = self.streams.get(slot);
                stream.body += body.len() as u64;
                if stream.is_shown {
                    events.body(slot, body);
                }
            }
        }
        data.left -= body.len();
        let (padding, rest) = match data.left == data.padding {
            true => rest.split_at(rest.len().min(data.padding)),
            false => (&[][..], rest),
        };
        data.left -= padding.len();
        data.padding = data.padding.min(data.left);
        *input = rest;
        if data.left == 0 {
            self.end_data(data, events);
        } else {
            self.reading.data = Some(data);
        }
        Ok(())
    }

    #[inline]
    fn end_data<E: StreamEvents>(&mut self, data: Data, events: &mut E) {
        if data.ends
            && let Some(slot) = self.streams.find(data.stream)
        {
            self.answered(slot, events);
        }
    }

    #[inline]
    fn headers<E: StreamEvents>(
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
        let block = Block {
            stream: header.stream,
            ends: header.has(flag::END_STREAM),
            frames: 1,
            bytes: (HEADER_LEN + header.length) as u64,
        };
        if header.has(flag::END_HEADERS) {
            return self.block(block, payload, events);
        }
        self.reading.block = Some(block);
        self.reading.block_bytes.extend_from_slice(payload);
        Ok(())
    }

    #[cold]
    fn continuation<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(block) = &mut self.reading.block else { return Err(Violation::Continuation) };
        block.frames += 1;
        block.bytes += (HEADER_LEN + header.length) as u64;
        let bytes = &mut self.reading.block_bytes;
        bytes.extend_from_slice(payload);
        if bytes.len() > self.limits.header_bytes || block.frames > BLOCK_FRAMES_MAX {
            return Err(Violation::HeaderBlockTooLarge);
        }
        if !header.has(flag::END_HEADERS) {
            return Ok(());
        }
        let block = *block;
        self.reading.block = None;
        let mut bytes = std::mem::take(&mut self.reading.block_bytes);
        let taken = self.block(block, &bytes, events);
        bytes.clear();
        bytes.shrink_to(256);
        self.reading.block_bytes = bytes;
        taken
    }

    /// A whole header block. Those of streams that have ended are decoded too: they change the
    /// table.
    #[inline]
    fn block<E: StreamEvents>(
        &mut self,
        block: Block,
        bytes: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(slot) = self.streams.find(block.stream) else {
            self.decoder.decode(bytes)?;
            self.counts.bytes_in += block.bytes;
            let is_late = self.has_reset;
            return if is_late { self.reading.idle_frame() } else { Err(Violation::FrameStream) };
        };
        let stream = self.streams.get(slot);
        stream.bytes_in += block.bytes;
        let is_first = !std::mem::replace(&mut stream.has_begun, true);
        let mut fields = Vec::new();
        let meaning = if stream.is_shown && stream.status == 0 {
            let mut keep = |name: &[u8], value: &[u8]| fields.push((name.to_vec(), value.to_vec()));
            self.decoder.decode_shown(bytes, &mut keep)?
        } else {
            self.decoder.decode(bytes)?
        };
        self.reading.is_useful();
        if is_first {
            events.began(slot);
        }
        if let Err(error) = self.head(slot, &meaning, block.ends) {
            self.malformed(slot, error, events);
            return Ok(());
        }
        let stream = self.streams.get(slot);
        if stream.is_shown && stream.status == meaning.status {
            fields.retain(|(name, _)| !name.starts_with(b":"));
            events.head(slot, meaning.status, fields);
        }
        if block.ends {
            self.answered(slot, events);
        }
        Ok(())
    }

    /// What a header block says of its stream: an interim head, the final one, or trailers.
    #[inline]
    fn head(&mut self, slot: u32, said: &FieldsMeaning, ends: bool) -> Result<(), MessageError> {
        if let Some(error) = said.error {
            return Err(error);
        }
        let interim_max = self.limits.interim;
        let stream = self.streams.get(slot);
        match (stream.status, said.status) {
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
                stream.announced = if is_empty { Some(0) } else { said.content_length };
                Ok(())
            }
            (_, 1..) => Err(MessageError::PseudoHeader),
            (_, 0) if ends => Ok(()),
            (_, 0) => Err(MessageError::Trailers),
        }
    }

    /// The server has ended a stream with a whole response.
    #[inline]
    fn answered<E: StreamEvents>(&mut self, slot: u32, events: &mut E) {
        let stream = self.streams.get(slot);
        let (status, body_bytes) = (stream.status, stream.body);
        if stream.announced.is_some_and(|announced| announced != body_bytes) {
            return self.malformed(slot, MessageError::LengthMismatch, events);
        }
        if status == 0 {
            return self.malformed(slot, MessageError::StatusMissing, events);
        }
        let ending = StreamEnding::Answered { status, body_bytes };
        let end = if stream.upload.is_some() {
            // The answer has come before the request: the rest of it is not wanted.
            self.abort(slot, ErrorCode::NoError, ending)
        } else {
            let stream = self.streams.remove(slot);
            self.ended(&stream, ending)
        };
        events.ended(slot, end);
    }

    #[cold]
    pub(super) fn malformed<E: StreamEvents>(
        &mut self,
        slot: u32,
        error: MessageError,
        events: &mut E,
    ) {
        let end: StreamEnd =
            self.abort(slot, ErrorCode::ProtocolError, StreamEnding::Malformed(error));
        events.ended(slot, end);
    }
}
