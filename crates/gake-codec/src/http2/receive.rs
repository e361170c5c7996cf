//! Receiving frames from slices of any size.

use super::connection::ClientConnection;
use super::events::StreamEvents;
use super::frame::{FrameHeader, HEADER_LEN, PAYLOAD_MAX, flag, kind};
use super::violation::Violation;

impl ClientConnection {
    /// Takes bytes from the server. The outcome does not depend on how they are split.
    ///
    /// # Errors
    /// The violation that ends the connection. The caller must end the live streams.
    pub fn receive<E: StreamEvents>(
        &mut self,
        mut input: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        while !input.is_empty() {
            if self.read_state.data.is_some() {
                self.data_bytes(&mut input, events)?;
            } else if self.read_state.partial.is_empty() && input.len() >= HEADER_LEN {
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
                    self.read_state.partial.extend_from_slice(input);
                    return Ok(());
                }
            } else {
                self.partial_frame(&mut input, events)?;
            }
        }
        Ok(())
    }

    /// Collects a frame that spans several slices.
    #[cold]
    fn partial_frame<E: StreamEvents>(
        &mut self,
        input: &mut &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        let partial = &mut self.read_state.partial;
        let header = partial.first_chunk().map(FrameHeader::read);
        let wanted = header.map_or(HEADER_LEN, |header| HEADER_LEN + header.length);
        let (bytes, rest) = input.split_at(input.len().min(wanted - partial.len()));
        partial.extend_from_slice(bytes);
        *input = rest;
        let Some(header) = partial.first_chunk().map(FrameHeader::read) else { return Ok(()) };
        let is_whole = partial.len() == HEADER_LEN + header.length;
        if partial.len() == HEADER_LEN {
            self.check(header)?;
            if header.kind == kind::DATA {
                self.read_state.partial.clear();
                return self.begin_data(header, events);
            }
        }
        if is_whole {
            let mut whole = std::mem::take(&mut self.read_state.partial);
            let taken = self.frame(header, &whole[HEADER_LEN..], events);
            whole.clear();
            // A large frame must not hold memory until the connection closes.
            whole.shrink_to(256);
            self.read_state.partial = whole;
            return taken;
        }
        Ok(())
    }

    #[inline]
    fn check(&self, header: FrameHeader) -> Result<(), Violation> {
        if !self.peer.has_settings && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Violation::NotHttp2);
        }
        if header.length > PAYLOAD_MAX {
            return Err(Violation::FrameTooLarge);
        }
        match &self.read_state.block {
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

    /// Whether no stream with this number was ever started.
    #[inline]
    pub(super) const fn is_idle(&self, stream: u32) -> bool {
        stream == 0 || stream.is_multiple_of(2) || stream >= self.next_id
    }
}
