//! The stream of a response.

use gake_core::record::GrpcStatus;

use super::frame::{FrameHeader, FrameHeaderReader, PayloadBuffer, kind};
use super::qpack;
use super::violation::StreamViolation;
use crate::http1::{ResponseHead, Version, Visitor};
use crate::http2::{HeaderFields, MessageError, ResponseFields};

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamResponse {
    /// The status code.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// The `grpc-status` of its last header block.
    pub grpc_status: Option<GrpcStatus>,
}

#[derive(Debug, Clone, Copy)]
struct ReaderOptions {
    header_bytes: usize,
    interim: u32,
    is_head: bool,
}

/// Reads the response on one stream.
#[derive(Debug)]
pub struct ResponseReader {
    options: ReaderOptions,
    header: FrameHeaderReader,
    frame: Option<FrameHeader>,
    block: PayloadBuffer,
    /// 0 before the head of the response.
    status: u16,
    /// The length of the body, if announced.
    announced: Option<u64>,
    body_bytes: u64,
    interim: u32,
    has_trailers: bool,
    grpc_status: Option<GrpcStatus>,
    /// Bytes of header blocks, encoded and decoded.
    pub header_bytes: (u64, u64),
}

impl ResponseReader {
    /// A reader of the response to one request (HEAD if `is_head`), with header blocks of at most
    /// `header_bytes` and at most `interim` interim responses.
    #[must_use]
    pub fn new(header_bytes: usize, interim: u32, is_head: bool) -> Self {
        Self {
            options: ReaderOptions { header_bytes, interim, is_head },
            header: FrameHeaderReader::default(),
            frame: None,
            block: PayloadBuffer::default(),
            status: 0,
            announced: None,
            body_bytes: 0,
            interim: 0,
            has_trailers: false,
            grpc_status: None,
            header_bytes: (0, 0),
        }
    }

    /// Takes the stream in slices of any size and shows it to `visitor`. `text` is a reusable buffer.
    ///
    /// # Errors
    /// The first violation.
    pub fn receive<V: Visitor>(
        &mut self,
        mut bytes: &[u8],
        text: &mut Vec<u8>,
        visitor: &mut V,
    ) -> Result<(), StreamViolation> {
        while !bytes.is_empty() || self.frame.is_some_and(|frame| frame.length == 0) {
            let Some(frame) = &mut self.frame else {
                self.frame = self.header.take(&mut bytes);
                if let Some(frame) = self.frame {
                    self.check(frame)?;
                }
                continue;
            };
            if frame.kind == kind::HEADERS {
                let mut left = frame.length;
                let (bytes_max, status) = (self.options.header_bytes, self.status);
                let block = self.block.take(&mut bytes, &mut left, |block| {
                    read_block(block, text, bytes_max, status, visitor)
                })?;
                frame.length = left;
                if let Some(block) = block {
                    self.frame = None;
                    self.head(block)?;
                }
                continue;
            }
            let here = usize::try_from(frame.length).unwrap_or(usize::MAX).min(bytes.len());
            let (payload, rest) = bytes.split_at(here);
            bytes = rest;
            frame.length -= here as u64;
            let (is_data, is_over) = (frame.kind == kind::DATA, frame.length == 0);
            if is_over {
                self.frame = None;
            }
            if is_data && !payload.is_empty() {
                self.body_bytes += payload.len() as u64;
                visitor.body(payload);
            }
        }
        Ok(())
    }

    /// The response, at the end of its stream.
    ///
    /// # Errors
    /// The response is incomplete.
    pub fn finish(&self) -> Result<StreamResponse, StreamViolation> {
        if self.frame.is_some() || !self.header.is_empty() {
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

    fn check(&self, frame: FrameHeader) -> Result<(), StreamViolation> {
        match frame.kind {
            kind::DATA if self.status == 0 => Err(MessageError::DataBeforeHeaders.into()),
            kind::DATA | kind::HEADERS if self.has_trailers => Err(MessageError::Trailers.into()),
            kind::HEADERS if frame.length > self.options.header_bytes as u64 => {
                Err(StreamViolation::HeaderBlockTooLarge)
            }
            kind::DATA | kind::HEADERS => Ok(()),
            kind::PUSH_PROMISE => Err(StreamViolation::Push),
            kind::SETTINGS | kind::GOAWAY | kind::CANCEL_PUSH | kind::MAX_PUSH_ID => {
                Err(StreamViolation::FrameUnexpected)
            }
            other if kind::is_of_http2(other) => Err(StreamViolation::FrameUnexpected),
            // Unknown types are skipped.
            _ => Ok(()),
        }
    }

    /// Applies a header block of `length` bytes: an interim head, the final one, or trailers.
    fn head(&mut self, (fields, length): (ResponseFields, usize)) -> Result<(), MessageError> {
        self.header_bytes.0 += length as u64;
        self.header_bytes.1 += u64::from(fields.text_bytes);
        if let Some(error) = fields.error {
            return Err(error);
        }
        self.grpc_status = fields.grpc_status;
        match (self.status, fields.status) {
            (0, 0) => Err(MessageError::StatusMissing),
            (0, 101) => Err(MessageError::Interim),
            (0, 100..=199) => {
                self.interim += 1;
                match self.interim > self.options.interim {
                    true => Err(MessageError::TooManyInterim),
                    false => Ok(()),
                }
            }
            (0, status) => {
                self.status = status;
                let is_empty = self.options.is_head || matches!(status, 204 | 304);
                self.announced = if is_empty { Some(0) } else { fields.content_length };
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
    bytes_max: usize,
    status: u16,
    visitor: &mut V,
) -> Result<(ResponseFields, usize), StreamViolation> {
    let is_shown = visitor.may_want();
    let mut shown = HeaderFields::new();
    let fields = qpack::decode(block, text, bytes_max, |name, value| {
        if is_shown && !name.starts_with(b":") {
            shown.push((name.to_vec(), value.to_vec()));
        }
    })
    .map_err(StreamViolation::Qpack)?;
    if is_shown && fields.error.is_none() {
        // A name that is not a token is an error.
        let name = |name| std::str::from_utf8(name).unwrap_or_default();
        let headers: Vec<_> =
            shown.iter().map(|(key, value)| httparse::Header { name: name(key), value }).collect();
        match (status, fields.status) {
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
    Ok((fields, block.len()))
}
