//! Control frames: SETTINGS, PING, GOAWAY, WINDOW_UPDATE, RST_STREAM.

use gake_core::record::ErrorCode;

use super::connection::ClientConnection;
use super::events::{StreamEnding, StreamEvents};
use super::frame::{FrameHeader, HEADER_LEN, flag, kind, number, put_header, setting};
use super::message_error::MessageError;
use super::violation::Violation;

/// The largest window (RFC 9113, section 6.9.1).
const WINDOW_MAX: i64 = (1 << 31) - 1;

impl ClientConnection {
    #[cold]
    pub(super) fn control_frame<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        self.counts.bytes_in += (HEADER_LEN + header.length) as u64;
        let fixed = match header.kind {
            kind::RST_STREAM | kind::WINDOW_UPDATE => Some(4),
            kind::PRIORITY => Some(5),
            kind::PING => Some(8),
            _ => None,
        };
        if fixed.is_some_and(|fixed| fixed != payload.len()) {
            return Err(Violation::FrameLength);
        }
        let of_connection = matches!(header.kind, kind::SETTINGS | kind::PING | kind::GOAWAY);
        let of_stream = matches!(header.kind, kind::RST_STREAM | kind::PRIORITY);
        if of_connection && header.stream != 0 || of_stream && header.stream == 0 {
            return Err(Violation::FrameStream);
        }
        match header.kind {
            kind::SETTINGS => self.settings(header, payload),
            kind::PING => self.ping(header, payload),
            kind::GOAWAY => self.goaway(payload, events),
            kind::WINDOW_UPDATE => self.window_update(header, payload, events),
            kind::RST_STREAM => self.reset(header, payload, events),
            kind::PUSH_PROMISE => Err(Violation::Push),
            // Clients ignore priorities; unknown frames must be ignored.
            _ => self.read_state.idle_frame(),
        }
    }

    fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        self.read_state.idle_frame()?;
        if header.has(flag::ACK) {
            self.peer.has_acknowledged = true;
            return if payload.is_empty() { Ok(()) } else { Err(Violation::FrameLength) };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Violation::FrameLength);
        }
        if !std::mem::replace(&mut self.peer.has_settings, true) {
            self.peer.streams = u32::MAX;
        }
        for [a, b, value @ ..] in settings {
            self.setting(u16::from_be_bytes([*a, *b]), u32::from_be_bytes(*value))?;
        }
        self.control(|out| put_header(out, 0, kind::SETTINGS, flag::ACK, 0));
        Ok(())
    }

    fn setting(&mut self, setting: u16, value: u32) -> Result<(), Violation> {
        match setting {
            setting::HEADER_TABLE_SIZE => self.resize_table(value as usize),
            // A server may only send 0.
            setting::ENABLE_PUSH if value != 0 => return Err(Violation::Settings),
            setting::MAX_CONCURRENT_STREAMS => self.peer.streams = value,
            setting::INITIAL_WINDOW_SIZE => {
                if i64::from(value) > WINDOW_MAX {
                    return Err(Violation::WindowOverflow);
                }
                let change = i64::from(value) - i64::from(self.peer.first_window);
                self.peer.first_window = value;
                for (_, stream) in self.streams.iter_mut() {
                    stream.window += change;
                    if stream.window > WINDOW_MAX {
                        return Err(Violation::WindowOverflow);
                    }
                }
            }
            setting::MAX_FRAME_SIZE => {
                if !(1 << 14..1 << 24).contains(&value) {
                    return Err(Violation::Settings);
                }
                self.peer.payload_max = value as usize;
            }
            // MAX_HEADER_LIST_SIZE is advisory; unknown settings must be ignored.
            _ => {}
        }
        Ok(())
    }

    fn ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        self.read_state.idle_frame()?;
        if !header.has(flag::ACK) {
            self.control(|out| {
                put_header(out, payload.len(), kind::PING, flag::ACK, 0);
                out.extend_from_slice(payload);
            });
        }
        Ok(())
    }

    fn goaway<E: StreamEvents>(&mut self, payload: &[u8], events: &mut E) -> Result<(), Violation> {
        let (Some(_), Some(code)) = (payload.first_chunk::<8>(), payload.get(4..)) else {
            return Err(Violation::FrameLength);
        };
        self.read_state.idle_frame()?;
        self.counts.goaways += 1;
        let (last, code) = (number(payload) & 0x7fff_ffff, ErrorCode::from_number(number(code)));
        // Servers often send two: first with the highest number, then with the real one.
        let last = self.goaway.map_or(last, |(before, _)| before.min(last));
        self.goaway = Some((last, code));
        let above =
            |(slot, stream): (u32, &mut super::streams::Stream)| (stream.id > last).then_some(slot);
        let gone: Vec<u32> = self.streams.iter_mut().filter_map(above).collect();
        for slot in gone {
            let stream = self.streams.remove(slot);
            events.ended(stream.owner, self.ended(&stream, StreamEnding::GoneAway(code)));
        }
        Ok(())
    }

    fn window_update<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        self.read_state.idle_frame()?;
        let more = i64::from(number(payload) & 0x7fff_ffff);
        if header.stream == 0 {
            self.peer.window += more;
            return match self.peer.window > WINDOW_MAX {
                _ if more == 0 => Err(Violation::WindowUpdate),
                true => Err(Violation::WindowOverflow),
                false => Ok(()),
            };
        }
        if self.is_idle(header.stream) {
            return Err(Violation::FrameStream);
        }
        if let Some(slot) = self.streams.find(header.stream) {
            let stream = self.streams.get(slot);
            stream.window += more;
            let is_over = stream.window > WINDOW_MAX;
            if more == 0 {
                self.malformed(slot, MessageError::Window, events);
            } else if is_over {
                self.malformed(slot, MessageError::WindowOverflow, events);
            }
        }
        Ok(())
    }

    fn reset<E: StreamEvents>(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        events: &mut E,
    ) -> Result<(), Violation> {
        if self.is_idle(header.stream) {
            return Err(Violation::FrameStream);
        }
        let Some(slot) = self.streams.find(header.stream) else {
            return self.read_state.idle_frame();
        };
        self.counts.resets += 1;
        let code = ErrorCode::from_number(number(payload));
        let stream = self.streams.remove(slot);
        let ending = match code {
            ErrorCode::RefusedStream => StreamEnding::Refused,
            code => StreamEnding::Reset(code),
        };
        events.ended(stream.owner, self.ended(&stream, ending));
        Ok(())
    }
}
