//! Writes a copy to an HTTP/1.1 connection.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_core::record::Fault;

use crate::message::body::BufferedBody;
use crate::message::chunks::{write_end, write_size};
use crate::message::head::RequestHead;
use crate::proxy::upstream::link::BackendLink;

const WITH_HEAD: u64 = 16 << 10;

/// The unwritten rest of a copy.
#[derive(Debug, Default)]
pub(super) struct CopyWriter {
    /// The head, and a small body.
    first: Vec<u8>,
    rest: Vec<Bytes>,
    /// The buffer being written: 0 is `first`.
    index: usize,
    /// Bytes of it already written.
    sent: usize,
}

impl CopyWriter {
    pub(super) fn new(head: RequestHead, body: &BufferedBody) -> Self {
        let mut end = Vec::new();
        if body.chunked {
            write_end(&mut end, head.values("trailer"), body.trailers.as_ref());
        }
        let mut writer = Self { first: head.into_bytes().into(), ..Self::default() };
        for data in &body.segments {
            writer.body(data, body);
        }
        if body.chunked {
            writer.add(Bytes::from(end), body);
        }
        writer
    }

    fn body(&mut self, data: &Bytes, body: &BufferedBody) {
        if !body.chunked {
            return self.add(data.clone(), body);
        }
        let mut size = Vec::new();
        write_size(&mut size, data.len());
        self.add(Bytes::from(size), body);
        self.add(data.clone(), body);
        self.add(Bytes::from_static(b"\r\n"), body);
    }

    fn add(&mut self, data: Bytes, body: &BufferedBody) {
        if body.len <= WITH_HEAD {
            self.first.extend_from_slice(&data);
        } else {
            self.rest.push(data);
        }
    }

    pub(super) fn is_untouched(&self) -> bool {
        self.index == 0 && self.sent == 0
    }

    /// Writes as much as possible; ready when all is written.
    pub(super) fn poll(
        &mut self,
        link: &mut BackendLink,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Fault>> {
        loop {
            let data: &[u8] = match self.index.checked_sub(1) {
                None => &self.first,
                Some(index) => match self.rest.get(index) {
                    Some(data) => data,
                    None => return link.poll_flush(cx),
                },
            };
            if self.sent < data.len() {
                self.sent += ready!(link.poll_write(cx, &data[self.sent..]))?;
            } else {
                (self.index, self.sent) = (self.index + 1, 0);
            }
        }
    }
}
