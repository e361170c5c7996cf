//! Frames of the client: messages and control frames.

use gake_core::record::CloseCode;

use super::frame::opcode;

/// The payload of a ping.
const PING: &[u8] = b"gake";

/// The mask of control frames: their payload stays readable on the wire.
const NO_MASK: [u8; 4] = [0; 4];

/// A message of a load in one frame, ready to be written.
///
/// RFC 6455 demands a new random mask for every frame, so that scripts in browsers cannot choose the
/// bytes on the wire. A load test chooses them anyway, so its messages share a mask.
#[derive(Debug)]
pub struct MessageFrame {
    /// The whole frame, masked.
    pub bytes: Vec<u8>,
    /// Whether it is a ping.
    pub is_ping: bool,
}

impl MessageFrame {
    /// Text if `message` is UTF-8, binary otherwise, a ping without a message.
    pub fn new(message: Option<&[u8]>) -> Self {
        let (opcode, payload) = match message {
            None => (opcode::PING, PING),
            Some(message) if std::str::from_utf8(message).is_ok() => (opcode::TEXT, message),
            Some(message) => (opcode::BINARY, message),
        };
        let mut bytes = Vec::with_capacity(payload.len() + 14);
        put_frame(&mut bytes, opcode, payload, random_mask());
        Self { bytes, is_ping: message.is_none() }
    }
}

/// An unpredictable mask; zeros if the system has no randomness.
pub fn random_mask() -> [u8; 4] {
    let mut mask = NO_MASK;
    let _ = aws_lc_rs::rand::fill(&mut mask);
    mask
}

/// Appends an unfragmented frame.
pub fn put_frame(out: &mut Vec<u8>, opcode: u8, payload: &[u8], mask: [u8; 4]) {
    out.push(0x80 | opcode);
    match payload.len() {
        short @ 0..126 => out.push(0x80 | short as u8),
        middle @ 126..65_536 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(middle as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    for bytes in out[start..].chunks_mut(mask.len()) {
        bytes.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// A close frame; empty for [`CloseCode::NONE`].
pub fn close_frame(code: CloseCode) -> Vec<u8> {
    let mut out = Vec::with_capacity(8);
    let number = code.number().to_be_bytes();
    let payload = if code == CloseCode::NONE { &[][..] } else { &number };
    put_frame(&mut out, opcode::CLOSE, payload, NO_MASK);
    out
}

/// The pongs to write: the rest of a partially written one, and the reply to the latest ping, which
/// is enough (RFC 6455, section 5.5.3).
#[derive(Debug, Default)]
pub struct PongQueue {
    bytes: Vec<u8>,
    /// Remaining bytes of a partially written frame.
    begun: usize,
}

impl PongQueue {
    /// Queues the reply to a ping with this payload.
    pub fn put(&mut self, payload: &[u8]) {
        self.bytes.truncate(self.begun);
        put_frame(&mut self.bytes, opcode::PONG, payload, NO_MASK);
    }

    /// The bytes to write.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a frame is partially written, so that its rest must come first.
    pub fn is_midway(&self) -> bool {
        self.begun > 0
    }

    /// Records that the first `count` bytes were written.
    pub fn wrote(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.begun = match count.cmp(&self.begun) {
            std::cmp::Ordering::Less => self.begun - count,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => self.bytes.len(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_match_the_rfc() {
        let frame = |opcode, payload: &[u8], mask| {
            let mut out = Vec::new();
            put_frame(&mut out, opcode, payload, mask);
            out
        };
        // RFC 6455, section 5.7.
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(frame(1, b"Hello", [0x37, 0xfa, 0x21, 0x3d]), masked);
        assert_eq!(frame(2, &[0; 300], NO_MASK)[..4], [0x82, 0xfe, 1, 44]);
        assert_eq!(frame(2, &[0; 70_000], NO_MASK)[..10], [0x82, 0xff, 0, 0, 0, 0, 0, 1, 17, 112]);
        assert_eq!(close_frame(CloseCode::NORMAL), [0x88, 0x82, 0, 0, 0, 0, 3, 0xe8]);
        assert_eq!(close_frame(CloseCode::NONE), [0x88, 0x80, 0, 0, 0, 0]);
    }

    #[test]
    fn a_message_is_text_binary_or_a_ping() {
        let first = |message| MessageFrame::new(message).bytes[0];
        assert_eq!(first(Some("é".as_bytes())), 0x81);
        assert_eq!(first(Some(&b"\xff"[..])), 0x82);
        assert_eq!(first(None), 0x89);
        assert!(MessageFrame::new(None).is_ping && !MessageFrame::new(Some(b"")).is_ping);
    }

    #[test]
    fn of_many_pings_the_latest_is_answered_and_no_pong_is_cut() {
        let mut pongs = PongQueue::default();
        (0..1000).for_each(|_| pongs.put(b"old"));
        assert_eq!(pongs.bytes(), [0x8a, 0x83, 0, 0, 0, 0, b'o', b'l', b'd']);
        pongs.wrote(7);
        assert!(pongs.is_midway());
        (0..1000).for_each(|_| pongs.put(b"new"));
        assert_eq!(pongs.bytes(), [b'l', b'd', 0x8a, 0x83, 0, 0, 0, 0, b'n', b'e', b'w']);
        pongs.wrote(1);
        pongs.put(b"");
        assert_eq!(pongs.bytes(), [b'd', 0x8a, 0x80, 0, 0, 0, 0]);
        pongs.wrote(1);
        assert!(!pongs.is_midway());
        pongs.wrote(6);
        assert!(pongs.bytes().is_empty() && !pongs.is_midway());
    }
}
