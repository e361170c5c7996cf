//! DATA: bodies of responses, counted and reported as they come.

use super::connection::{ClientConnection, FIRST_WINDOW};
use super::events::StreamEvents;
use super::frame::{FrameHeader, HEADER_LEN, flag, kind, put_number};
use super::message_error::MessageError;
use super::read_state::DataFrame;
use super::violation::Violation;

impl ClientConnection {
    pub(super) fn begin_data<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        events: &mut E,
    ) -> Result<(), Violation> {
        if self.is_idle(header.stream) {
            return Err(Violation::FrameStream);
        }
        let length = header.length as u32;
        self.unacknowledged += length;
        if self.unacknowledged > self.limits.connection_window.max(FIRST_WINDOW) {
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
            return self.read_state.idle_frame();
        }
        let (stream, left) = (header.stream, header.length);
        let data = DataFrame { stream, left, padding: 0, has_padding_length, ends };
        if left == 0 {
            self.end_data(data, events);
        } else {
            self.read_state.data = Some(data);
        }
        Ok(())
    }

    /// Consumes `length` of a stream's window, and widens it again before it is empty.
    #[inline]
    fn stream_window(&mut self, slot: u32, length: u32, ends: bool) -> Result<(), Violation> {
        let window = self.limits.stream_window;
        let stream = self.streams.get(slot);
        stream.unacknowledged += length;
        // Until the server acknowledges our settings, the initial window applies.
        let initial = if self.peer.has_acknowledged { 0 } else { FIRST_WINDOW };
        if stream.unacknowledged > window.max(initial) {
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

    /// Takes the next bytes of a DATA frame.
    #[inline]
    pub(super) fn data_bytes<E: StreamEvents>(
        &mut self,
        input: &mut &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let Some(mut data) = self.read_state.data.take() else { return Ok(()) };
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
            self.read_state.useful_frame();
            if let Some(slot) = self.streams.find(data.stream) {
                let stream = self.streams.get(slot);
                stream.body += body.len() as u64;
                if stream.is_shown {
                    events.body(stream.owner, body);
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
            self.read_state.data = Some(data);
        }
        Ok(())
    }

    #[inline]
    fn end_data<E: StreamEvents>(&mut self, data: DataFrame, events: &mut E) {
        if data.ends
            && let Some(slot) = self.streams.find(data.stream)
        {
            self.complete(slot, events);
        }
    }
}
