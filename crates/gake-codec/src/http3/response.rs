//! The stream of a response: its frames, and what they say.

use gake_core::record::GrpcStatus;

use super::frame::{FrameStart, Payload, StartReader, kind};
use super::qpack;
use super::violation::StreamViolation;
use crate::http1::{ResponseHead, Version, Visitor};
use crate::http2::{FieldsMeaning, HeaderFields, MessageError};

/// A whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamResponse {
    /// Its status.
    pub status: u16,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The status of gRPC, when its last header block has one.
    pub grpc_status: Option<GrpcStatus>,
}

/// Limits on what a server can make a client hold, and what the response is to.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    header_bytes: usize,
    interim: u32,
    is_head: bool,
}

/// Reads the response on one stream.
#[derive(Debug)]
pub struct ResponseReader {
    bounds: Bounds,
    start: StartReader,
    frame: Option<FrameStart>,
    block: Payload,
    /// 0 before the head of the response.
    status: u16,
    /// How long the body is, when that is known beforehand.
    announced: Option<u64>,
    body_bytes: u64,
    interim: u32,
    has_trailers: bool,
    grpc_status: Option<GrpcStatus>,
    /// Bytes of header blocks, as they came and as text.
    pub header_bytes: (u64, u64),
}

impl ResponseReader {
    /// A reader of the response to a request, to HEAD if `is_head`, with header blocks of at most
    /// `header_bytes` and at most `interim` interim responses.
    #[must_use]
    pub fn new(header_bytes: usize, interim: u32, is_head: bool) -> Self {
        Self {
            bounds: Bounds { header_bytes, interim, is_head },
            start: StartReader::default(),
            frame: None,
            block: Payload::default(),
            status: 0,
            announced: None,
            body_bytes: 0,
            interim: 0,
            has_trailers: false,
            grpc_status: None,
            header_bytes: (0, 0),
        }
    }

    /// Takes what came, in slices of any size, and shows it to `visitor`. `text` is a buffer to be
    /// used again.
    ///
    /// # Errors
    /// What the server does wrong.
    pub fn receive<V: Visitor>(
        &mut self,
        mut bytes: &[u8],
        text: &mut Vec<u8>,
        visitor: &mut V,
    ) -> Result<(), StreamViolation> {
        while !bytes.is_empty() || self.frame.is_some_and(|frame| frame.length == 0) {
            let Some(frame) = &mut self.frame else {
                self.frame = self.start.take(&mut bytes);
                if let Some(frame) = self.frame {
                    self.check(frame)?;
                }
                continue;
            };
            if frame.kind == kind::HEADERS {
                let mut left = frame.length;
                let (bounds, status) = (self.bounds, self.status);
                let block = self.block.take(&mut bytes, &mut left, |block| {
                    read_block(block, text, bounds, status, visitor)
                })?;
                frame.length = left;
                if let Some(block) = block {
                    self.frame = None;
                    self.head(block)?;
                }
                continue;
            }
            let here = usize::try_from(frame.length).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, rest) = bytes.split_at(here);
            bytes = rest;
            frame.length -= here as u64;
            let (is_data, is_over) = (frame.kind == kind::DATA, frame.length == 0);
            if is_over {
                self.frame = None;
            }
            if is_data && !piece.is_empty() {
                self.body_bytes += piece.len() as u64;
                visitor.body(piece);
            }
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// When the response is not whole.
    pub fn finish(&self) -> Result<StreamResponse, StreamViolation> {
        if self.frame.is_some() || !self.start.is_empty() {
            return Err(StreamViolation::FrameCut);
        }
        if self.status == 0 {
            return Err(MessageError::StatusMissing.into());
        }
        if self.announced.is_some_and(|announced| announced != self.body_bytes) {
            return Err(MessageError::LengthMismatch.into());
        }
        let Self { status, body_bytes, grpc_status, .. } = *self;
        Ok(StreamResponse { status, body_bytes, grpc_status })
    }

    /// Judges a frame by its start.
    fn check(&self, frame: FrameStart) -> Result<(), StreamViolation> {
        match frame.kind {
            kind::DATA if self.status == 0 => Err(MessageError::DataBeforeHeaders.into()),
            kind::DATA | kind::HEADERS if self.has_trailers => Err(MessageError::Trailers.into()),
            kind::HEADERS if frame.length > self.bounds.header_bytes as u64 => {
                Err(StreamViolation::HeaderBlockTooLarge)
            }
            kind::DATA | kind::HEADERS => Ok(()),
            kind::PUSH_PROMISE => Err(StreamViolation::Push),
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
                Err(StreamViolation::FrameUnexpected)
            }
            other if kind::is_of_http2(other) => Err(StreamViolation::FrameUnexpected),
            // Frames of types to come are passed over.
            _ => Ok(()),
        }
    }

    /// What a header block is to its response: an interim head, the final one, or trailers.
    fn head(&mut self, (said, length): (FieldsMeaning, usize)) -> Result<(), MessageError> {
        self.header_bytes.0 += length as u64;
        self.header_bytes.1 += u64::from(said.text_bytes);
        if let Some(error) = said.error {
            return Err(error);
        }
        self.grpc_status = said.grpc_status;
        match (self.status, said.status) {
            (0, 0) => Err(MessageError::StatusMissing),
            (0, 101) => Err(MessageError::Interim),
            (0, 100..=199) => {
                self.interim += 1;
                match self.interim > self.bounds.interim {
                    true => Err(MessageError::TooManyInterim),
                    false => Ok(()),
                }
            }
            (0, status) => {
                self.status = status;
                let is_empty = self.bounds.is_head || matches!(status, 204 | 304);
                self.announced = if is_empty { Some(0) } else { said.content_length };
                Ok(())
            }
            (_, 1..) => Err(MessageError::PseudoHeader),
            (_, 0) => {
                self.has_trailers = true;
                Ok(())
            }
        }
    }
}

/// Decodes a block and shows it, unless it is an interim head or malformed.
fn read_block<V: Visitor>(
    block: &[u8],
    text: &mut Vec<u8>,
    bounds: Bounds,
    status: u16,
    visitor: &mut V,
) -> Result<(FieldsMeaning, usize), StreamViolation> {
    let is_shown = visitor.may_want();
    let mut fields = HeaderFields::new();
    let said = qpack::decode(block, text, bounds.header_bytes, |name, value| {
        if is_shown && !name.starts_with(b":") {
            fields.push((name.to_vec(), value.to_vec()));
        }
    })
    .map_err(StreamViolation::Qpack)?;
    if is_shown && said.error.is_none() {
        // A name that is not a token is an error.
        let name = |name| std::str::from_utf8(name).unwrap_or_default();
        let headers: Vec<_> =
            fields.iter().map(|(key, value)| httparse::Header { name: name(key), value }).collect();
        match (status, said.status) {
            // HTTP/3 has no reason phrase.
            (0, status @ 200..) => visitor.head(&ResponseHead {
                status,
                version: Version::Http11,
                reason: "",
                headers: &headers,
            }),
            (1.., 0) => visitor.trailers(&headers),
            _ => {}
        }
    }
    Ok((said, block.len()))
}
