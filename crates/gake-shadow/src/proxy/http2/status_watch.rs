//! Finds responses without `:status`, which are malformed (RFC 9113, section 8.3.2): the codec takes
//! them for 200.
//!
//! What the codec reads is parsed beside it, as far as frames with headers.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::rc::Rc;

use gake_codec::http2::HeaderDecoder;

/// Bytes of a frame's header.
const FRAME_HEADER: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

const END_HEADERS: u8 = 0x04;
const PADDED: u8 = 0x08;
const PRIORITY: u8 = 0x20;

/// Bytes of the dependency and weight in a frame with [`PRIORITY`].
const PRIORITY_BYTES: usize = 5;

/// The most bytes of a header block, compressed and not: more than the codec accepts.
const BLOCK_MAX: usize = 1 << 20;

/// The streams of a connection that wait for the head of their response, and whether its status has
/// come.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedHeads(Rc<RefCell<Vec<(u32, HeadStatus)>>>);

/// What is known of the status of a final response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeadStatus {
    Awaited,
    Present,
    Missing,
}

/// A stream that waits for the head of its response.
#[derive(Debug)]
pub(crate) struct ExpectedHead {
    heads: ExpectedHeads,
    stream: u32,
}

impl ExpectedHeads {
    pub(crate) fn expect(&self, stream: u32) -> ExpectedHead {
        self.0.borrow_mut().push((stream, HeadStatus::Awaited));
        ExpectedHead { heads: self.clone(), stream }
    }

    /// Notes a header block. Later blocks of a stream are trailers.
    fn note(&self, stream: u32, status: u16) {
        let found = match status {
            100..200 => return,
            0 => HeadStatus::Missing,
            _ => HeadStatus::Present,
        };
        let expected = (stream, HeadStatus::Awaited);
        if let Some(head) = self.0.borrow_mut().iter_mut().find(|head| **head == expected) {
            head.1 = found;
        }
    }
}

impl ExpectedHead {
    pub(crate) fn lacks_status(&self) -> bool {
        self.heads.0.borrow().contains(&(self.stream, HeadStatus::Missing))
    }
}

impl Drop for ExpectedHead {
    fn drop(&mut self) {
        self.heads.0.borrow_mut().retain(|head| head.0 != self.stream);
    }
}

/// Watches the bytes of a connection to a backend.
#[derive(Debug)]
pub(crate) struct StatusWatch {
    heads: ExpectedHeads,
    decoder: HeaderDecoder,
    header: [u8; FRAME_HEADER],
    /// Bytes of the header that have come.
    header_bytes: usize,
    /// Bytes of the payload that have not come.
    payload_left: usize,
    /// The block of the current frame and those that it continues.
    block: Vec<u8>,
    /// Where the payload of the current frame starts in it.
    payload: usize,
}

impl StatusWatch {
    pub(crate) fn new(heads: &ExpectedHeads) -> Self {
        Self {
            heads: heads.clone(),
            decoder: HeaderDecoder::new(BLOCK_MAX),
            header: [0; FRAME_HEADER],
            header_bytes: 0,
            payload_left: 0,
            block: Vec::new(),
            payload: 0,
        }
    }

    /// Takes bytes in the order in which the codec reads them.
    ///
    /// # Errors
    /// They break the protocol, in a way that the codec refuses, too.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.header_bytes < FRAME_HEADER {
                let (some, rest) =
                    bytes.split_at(bytes.len().min(FRAME_HEADER - self.header_bytes));
                self.header[self.header_bytes..][..some.len()].copy_from_slice(some);
                self.header_bytes += some.len();
                bytes = rest;
                if self.header_bytes == FRAME_HEADER {
                    let [high, middle, low, ..] = self.header;
                    self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                    self.payload = self.block.len();
                }
            } else {
                let (some, rest) = bytes.split_at(bytes.len().min(self.payload_left));
                if self.has_fields() {
                    if self.block.len() + some.len() > BLOCK_MAX {
                        return Err(ErrorKind::InvalidData.into());
                    }
                    self.block.extend_from_slice(some);
                }
                self.payload_left -= some.len();
                bytes = rest;
            }
            if self.header_bytes == FRAME_HEADER && self.payload_left == 0 {
                self.header_bytes = 0;
                self.end_frame().ok_or(ErrorKind::InvalidData)?;
            }
        }
        Ok(())
    }

    fn has_fields(&self) -> bool {
        matches!(self.header[3], HEADERS | CONTINUATION)
    }

    fn end_frame(&mut self) -> Option<()> {
        if !self.has_fields() {
            return Some(());
        }
        let [_, _, _, kind, flags, stream @ ..] = self.header;
        if kind == HEADERS {
            let mut start = self.payload;
            if flags & PADDED != 0 {
                let padding = usize::from(*self.block.get(start)?);
                start += 1;
                self.block.truncate(self.block.len().checked_sub(padding)?);
            }
            start += if flags & PRIORITY != 0 { PRIORITY_BYTES } else { 0 };
            if start > self.block.len() {
                return None;
            }
            self.block.drain(self.payload..start);
        }
        if flags & END_HEADERS != 0 {
            let fields = self.decoder.decode(&self.block).ok()?;
            self.heads.note(u32::from_be_bytes(stream) & (u32::MAX >> 1), fields.status);
            self.block.clear();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    }

    /// `:status` is 200, 103, and `a: b`.
    const OK: &[u8] = &[0x88];
    const EARLY: &[u8] = b"\x08\x03103";
    const FIELD: &[u8] = b"\x00\x01a\x01b";

    #[test]
    fn a_first_final_block_without_a_status_is_found() {
        let padded = [&[2][..], &[0, 0, 0, 0, 9], OK, &[0, 0]].concat();
        let streams = [1, 3, 5, 7, 9, 11];
        let bytes = [
            frame(4, 0, 0, &[]),
            frame(HEADERS, END_HEADERS, 1, OK),
            frame(0, 0, 1, b"body with \x01\x04"),
            frame(HEADERS, END_HEADERS | 1, 1, FIELD),
            frame(HEADERS, END_HEADERS, 3, FIELD),
            frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 5, &padded),
            frame(HEADERS, END_HEADERS, 7, EARLY),
            frame(HEADERS, 0, 7, &[]),
            frame(CONTINUATION, 0, 7, FIELD),
            frame(CONTINUATION, END_HEADERS, 7, &[]),
            frame(HEADERS, 0, 9, OK),
            frame(CONTINUATION, END_HEADERS, 9, FIELD),
        ]
        .concat();
        for size in [1, 7, bytes.len()] {
            let heads = ExpectedHeads::default();
            let expected = streams.map(|stream| heads.expect(stream));
            let mut watch = StatusWatch::new(&heads);
            bytes.chunks(size).for_each(|bytes| watch.take(bytes).unwrap());
            let lacks = expected.each_ref().map(ExpectedHead::lacks_status);
            assert_eq!(lacks, [false, true, false, true, false, false], "in slices of {size}");
            drop(expected);
            assert!(heads.0.borrow().is_empty());
        }
    }

    #[test]
    fn broken_frames_are_errors() {
        let watch = || StatusWatch::new(&ExpectedHeads::default());
        assert!(watch().take(&frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0])).is_err());
        assert!(watch().take(&frame(HEADERS, END_HEADERS | PRIORITY, 1, &[9, 0])).is_err());
        assert!(watch().take(&frame(HEADERS, END_HEADERS, 1, &[0x80])).is_err());
    }
}
