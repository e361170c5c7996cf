//! The received and not yet consumed part of an HTTP/1.1 body, in frames.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use gake_codec::http1::{Header, Visitor};
use http::HeaderMap;
use http_body::Frame;

use crate::proxy::policy::headers::map_of;

/// A queue of data frames, followed by trailers.
#[derive(Debug, Default)]
pub(crate) struct BodyFrames {
    /// The data of all frames.
    bytes: BytesMut,
    lengths: VecDeque<usize>,
    trailers: Option<HeaderMap>,
}

impl BodyFrames {
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty() && self.trailers.is_none()
    }

    /// The next frame; trailers are the last.
    pub(crate) fn next(&mut self) -> Option<Frame<Bytes>> {
        match self.lengths.pop_front() {
            Some(length) => Some(Frame::data(self.bytes.split_to(length).freeze())),
            None => self.trailers.take().map(Frame::trailers),
        }
    }
}

impl Visitor for BodyFrames {
    fn body(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.lengths.push_back(bytes.len());
    }

    fn wants_trailers(&self) -> bool {
        true
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        self.trailers = Some(map_of(trailers));
    }
}
