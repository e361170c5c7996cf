//! Frames of a server.

use gake_core::record::CloseCode;

/// Maximum bytes of the payload of a control frame.
pub const CONTROL_MAX: usize = 125;

/// Maximum bytes of a server's frame header, which has no mask.
const HEADER_MAX: usize = 10;

/// Opcodes of frames (RFC 6455, section 5.2).
#[allow(missing_docs, reason = "the RFC's names")]
pub mod opcode {
    pub const CONTINUATION: u8 = 0;
    pub const TEXT: u8 = 1;
    pub const BINARY: u8 = 2;
    pub const CLOSE: u8 = 8;
    pub const PING: u8 = 9;
    pub const PONG: u8 = 10;
}

/// Receives the content of frames, in order.
pub trait FrameEvents {
    /// The next bytes of a message.
    fn data(&mut self, bytes: &[u8]);

    /// The message is complete.
    fn message(&mut self, is_text: bool);

    /// A ping, which requires a pong with the same payload.
    fn ping(&mut self, payload: &[u8]);

    /// A pong.
    fn pong(&mut self, payload: &[u8]);

    /// The server closes the session. No event follows.
    fn close(&mut self, code: CloseCode, reason: &[u8]);
}

/// Why a frame is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A server's frame is masked, or its reserved bits are set.
    #[error("a frame is masked or has reserved bits")]
    Bits,
    /// A reserved opcode.
    #[error("a frame has an unknown opcode")]
    Opcode,
    /// A control frame that is fragmented, or over 125 bytes.
    #[error("a control frame is fragmented or too long")]
    Control,
    /// A continuation without a message, or a message within another.
    #[error("a message's frames are out of order")]
    Order,
    /// A length of 2^63 bytes or more.
    #[error("a frame has an impossible length")]
    Length,
    /// A close frame with half a code, or with one that must not be sent.
    #[error("a close frame has a bad code")]
    Close,
}

impl FrameError {
    /// A stable name in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bits => "websocket_bits",
            Self::Opcode => "websocket_opcode",
            Self::Control => "websocket_control",
            Self::Order => "websocket_order",
            Self::Length => "websocket_length",
            Self::Close => "websocket_close",
        }
    }
}

/// Reads frames. Headers and control frames are buffered; the bytes of messages are passed on as
/// they come.
#[derive(Debug, Default)]
pub struct FrameReader {
    header: [u8; HEADER_MAX],
    header_len: usize,
    /// Remaining bytes of the payload, once the header is complete.
    left: Option<u64>,
    control: Vec<u8>,
    /// Whether a message is incomplete.
    in_message: bool,
    /// Whether that message is text.
    is_text: bool,
    is_closed: bool,
}

impl FrameReader {
    /// Takes bytes and reports their content. Bytes after a close frame are ignored.
    ///
    /// # Errors
    /// The first invalid frame. The reader is unusable afterwards.
    pub fn read<E: FrameEvents>(&mut self, bytes: &[u8], events: &mut E) -> Result<(), FrameError> {
        let mut rest = bytes;
        while !self.is_closed {
            let left = match self.left {
                Some(left) => left,
                None => match self.take_header(&mut rest)? {
                    Some(left) => left,
                    None => return Ok(()),
                },
            };
            let now = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (payload, after) = rest.split_at(now);
            rest = after;
            let left = left - now as u64;
            self.left = Some(left);
            if self.is_control() {
                self.control.extend_from_slice(payload);
            } else if !payload.is_empty() {
                events.data(payload);
            }
            if left > 0 {
                return Ok(());
            }
            self.end(events)?;
        }
        Ok(())
    }

    /// Takes bytes of a header; the length of the payload once it is complete.
    fn take_header(&mut self, rest: &mut &[u8]) -> Result<Option<u64>, FrameError> {
        loop {
            let wanted = match (self.header_len, self.header[1] & 0x7f) {
                (0 | 1, _) => 2,
                (_, 126) => 4,
                (_, 127) => HEADER_MAX,
                _ => 2,
            };
            if self.header_len == wanted {
                break;
            }
            let Some((&byte, after)) = rest.split_first() else { return Ok(None) };
            *rest = after;
            self.header[self.header_len] = byte;
            self.header_len += 1;
        }
        self.check()?;
        let length = match self.header[1] {
            126 => u64::from(u16::from_be_bytes([self.header[2], self.header[3]])),
            127 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&self.header[2..]);
                u64::from_be_bytes(bytes)
            }
            short => u64::from(short),
        };
        if self.is_control() && (length > CONTROL_MAX as u64 || !self.is_final()) {
            return Err(FrameError::Control);
        }
        if length >> 63 != 0 {
            return Err(FrameError::Length);
        }
        self.left = Some(length);
        Ok(Some(length))
    }

    fn check(&mut self) -> Result<(), FrameError> {
        if self.header[0] & 0x70 != 0 || self.header[1] & 0x80 != 0 {
            return Err(FrameError::Bits);
        }
        match (self.opcode(), self.in_message) {
            (opcode::CONTINUATION, true) => {}
            (opcode::TEXT | opcode::BINARY, false) => {
                self.in_message = true;
                self.is_text = self.opcode() == opcode::TEXT;
            }
            (opcode::CONTINUATION | opcode::TEXT | opcode::BINARY, _) => {
                return Err(FrameError::Order);
            }
            (opcode::CLOSE | opcode::PING | opcode::PONG, _) => {}
            _ => return Err(FrameError::Opcode),
        }
        Ok(())
    }

    fn end<E: FrameEvents>(&mut self, events: &mut E) -> Result<(), FrameError> {
        (self.left, self.header_len) = (None, 0);
        match self.opcode() {
            opcode::CLOSE => {
                self.is_closed = true;
                let (code, reason) = closing(&self.control)?;
                events.close(code, reason);
            }
            opcode::PING => events.ping(&self.control),
            opcode::PONG => events.pong(&self.control),
            _ if self.is_final() => {
                self.in_message = false;
                events.message(self.is_text);
            }
            _ => {}
        }
        self.control.clear();
        Ok(())
    }

    fn opcode(&self) -> u8 {
        self.header[0] & 0x0f
    }

    fn is_final(&self) -> bool {
        self.header[0] & 0x80 != 0
    }

    fn is_control(&self) -> bool {
        self.opcode() & 8 != 0
    }
}

/// The code and the reason in a close frame.
fn closing(payload: &[u8]) -> Result<(CloseCode, &[u8]), FrameError> {
    match payload {
        [] => Ok((CloseCode::NONE, payload)),
        [_] => Err(FrameError::Close),
        [high, low, reason @ ..] => {
            let code = CloseCode::new(u16::from_be_bytes([*high, *low]));
            if code.may_be_sent() { Ok((code, reason)) } else { Err(FrameError::Close) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq, Eq)]
    struct RecordedEvents {
        open: Vec<u8>,
        all: Vec<String>,
    }

    impl FrameEvents for RecordedEvents {
        fn data(&mut self, bytes: &[u8]) {
            self.open.extend_from_slice(bytes);
        }

        fn message(&mut self, is_text: bool) {
            let text = String::from_utf8(std::mem::take(&mut self.open)).unwrap();
            self.all.push(if is_text { text } else { format!("binary {}", text.len()) });
        }

        fn ping(&mut self, payload: &[u8]) {
            self.all.push(format!("ping {}", payload.len()));
        }

        fn pong(&mut self, payload: &[u8]) {
            self.all.push(format!("pong {}", payload.len()));
        }

        fn close(&mut self, code: CloseCode, reason: &[u8]) {
            self.all.push(format!("close {code}: {}", String::from_utf8_lossy(reason)));
        }
    }

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![first];
        match payload.len() {
            short @ 0..126 => out.push(short as u8),
            middle @ 126..65_536 => {
                out.push(126);
                out.extend_from_slice(&(middle as u16).to_be_bytes());
            }
            long => {
                out.push(127);
                out.extend_from_slice(&(long as u64).to_be_bytes());
            }
        }
        out.extend_from_slice(payload);
        out
    }

    fn read(bytes: &[u8], size: usize) -> Result<Vec<String>, FrameError> {
        let (mut reader, mut events) = (FrameReader::default(), RecordedEvents::default());
        for chunk in bytes.chunks(size) {
            reader.read(chunk, &mut events)?;
        }
        Ok(events.all)
    }

    #[test]
    fn chunk_sizes_do_not_change_messages() {
        let long = vec![b'l'; 70_000];
        let middle = vec![b'm'; 300];
        let bytes = [
            frame(0x81, b"one"),
            frame(0x01, b"tw"),
            frame(0x89, b"hi"),
            frame(0x80, b"o"),
            frame(0x82, &middle),
            frame(0x8a, b""),
            frame(0x81, b""),
            frame(0x82, &long),
            frame(0x88, b"\x03\xe9bye"),
            frame(0x81, b"ignored"),
        ]
        .concat();
        let whole = read(&bytes, bytes.len()).unwrap();
        let expected = ["one", "ping 2", "two", "binary 300", "pong 0", "", "binary 70000"];
        assert_eq!(whole[..7], expected);
        assert_eq!(whole[7..], ["close 1001 going away: bye"]);
        for size in [1, 2, 3, 7, 1_000] {
            assert_eq!(read(&bytes, size).as_ref(), Ok(&whole), "{size}");
        }
    }

    #[test]
    fn bad_frames_are_named() {
        for (bytes, error) in [
            (vec![0x81, 0x81, 0, 0, 0, 0, b'x'], FrameError::Bits),
            (vec![0xc1, 0], FrameError::Bits),
            (vec![0x83, 0], FrameError::Opcode),
            (vec![0x80, 0], FrameError::Order),
            ([frame(0x01, b"a"), frame(0x81, b"b")].concat(), FrameError::Order),
            (vec![0x09, 0], FrameError::Control),
            (frame(0x89, &[0; 126]), FrameError::Control),
            (vec![0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], FrameError::Length),
            (frame(0x88, b"\x03"), FrameError::Close),
            (frame(0x88, b"\x03\xed"), FrameError::Close),
        ] {
            assert_eq!(read(&bytes, 3), Err(error), "{bytes:?}");
        }
    }
}
