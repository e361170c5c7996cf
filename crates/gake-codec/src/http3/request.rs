//! A request as the bytes of its stream.

use std::sync::Arc;

use bytes::Bytes;

use super::frame::{kind, put_varint};
use super::qpack;

/// An encoded request, sent without a copy.
#[derive(Debug, Clone)]
pub struct StreamRequest {
    block: Box<[u8]>,
    /// HEADERS, and the header of DATA if there is a body.
    head: Bytes,
    body: Option<Bytes>,
    /// Whether the method is HEAD, so that the response has no body.
    pub is_head: bool,
    /// Whether it is a gRPC call, whose response has a status in its trailers.
    pub is_grpc: bool,
}

impl StreamRequest {
    /// A request with these fields, pseudo-headers first.
    #[must_use]
    pub fn new<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        body: Option<Arc<[u8]>>,
    ) -> Self {
        let mut block = Vec::new();
        qpack::encode(fields, &mut block);
        let body = body.filter(|body| !body.is_empty()).map(Bytes::from_owner);
        let head = head(&block, body.as_ref());
        Self { block: block.into_boxed_slice(), head, body, is_head: false, is_grpc: false }
    }

    /// Appends a header.
    pub fn push(&mut self, name: &str, value: &[u8]) {
        let mut block = self.block.to_vec();
        qpack::put_field(name, value, &mut block);
        self.head = head(&block, self.body.as_ref());
        self.block = block.into_boxed_slice();
    }

    /// Bytes of its stream.
    #[allow(clippy::len_without_is_empty, reason = "a request is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The bytes of its stream, in order; the second is empty without a body.
    #[must_use]
    pub fn buffers(&self) -> [Bytes; 2] {
        [self.head.clone(), self.body.clone().unwrap_or_default()]
    }
}

/// HEADERS with this block, and the header of DATA.
fn head(block: &[u8], body: Option<&Bytes>) -> Bytes {
    let mut head = Vec::new();
    put_varint(&mut head, kind::HEADERS);
    put_varint(&mut head, block.len() as u64);
    head.extend_from_slice(block);
    if let Some(body) = body {
        put_varint(&mut head, kind::DATA);
        put_varint(&mut head, body.len() as u64);
    }
    head.into()
}
