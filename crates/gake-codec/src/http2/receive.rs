//! Receiving the server's frames, in slices of any size.

use super::connection::ClientConnection;
use super::events::StreamEvents;
use super::frame::{FrameHeader, HEADER_LEN, PAYLOAD_MAX, flag, kind};
use super::violation::Violation;

impl ClientConnection {
    /// Takes what the server has sent. The outcome does not depend on how it is split.
    ///
    /// # Errors
    /// The violation that ends the connection. The caller must end the live streams.
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
}
