//! Writes a framed request to an HTTP/1.1 connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Body;

use crate::message::chunks::{write_chunk, write_end};
use crate::message::head::{Framing, RequestHead};
use crate::proxy::client::response_writer::WRITE_BYTES;
use crate::proxy::client::upload::UploadError;
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::upstream::link::BackendLink;

pub(crate) struct RequestWriter {
    /// The buffer being written.
    out: Vec<u8>,
    sent: usize,
    has_begun: bool,
    /// For its `Trailer` lines.
    head: RequestHead,
    /// The framing of the body; a length is the remaining one.
    framing: Framing,
    /// `None` once all of it is in `out`.
    body: Option<SendBody>,
    /// The body ended early: the request cannot be completed.
    is_aborted: bool,
}

/// The result of [`RequestWriter::fill`].
enum FillResult {
    /// There is data to write.
    Ready,
    /// The body has no more data yet.
    Pending,
    Aborted,
}

impl RequestWriter {
    pub(crate) fn new(head: &RequestHead, body: SendBody) -> Self {
        Self {
            out: head.bytes().to_vec(),
            sent: 0,
            has_begun: false,
            head: head.clone(),
            framing: head.framing(),
            body: Some(body),
            is_aborted: false,
        }
    }

    pub(crate) fn is_untouched(&self) -> bool {
        !self.has_begun
    }

    /// Writes as much as possible; ready when the request is complete.
    pub(crate) fn poll(
        &mut self,
        link: &mut BackendLink,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), UploadError>> {
        loop {
            // Remembered, because earlier data may still have to be written.
            let filled = if self.is_aborted { FillResult::Aborted } else { self.fill(cx) };
            self.is_aborted = matches!(filled, FillResult::Aborted);
            while self.sent < self.out.len() {
                let written = ready!(link.poll_write(cx, &self.out[self.sent..]));
                self.sent += written.map_err(UploadError::Master)?;
                self.has_begun = true;
            }
            self.out.clear();
            self.sent = 0;
            match filled {
                FillResult::Aborted => return Poll::Ready(Err(UploadError::Client)),
                FillResult::Ready if self.body.is_some() => {}
                FillResult::Ready => return link.poll_flush(cx).map_err(UploadError::Master),
                FillResult::Pending => {
                    // Flushes TLS; errors surface at the next write.
                    let _ = link.poll_flush(cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Buffers available body data.
    fn fill(&mut self, cx: &mut Context<'_>) -> FillResult {
        while self.out.len() < WRITE_BYTES {
            let Some(body) = &mut self.body else { break };
            let mut next = Poll::Ready(None);
            if !body.is_end_stream() {
                next = Pin::new(body).poll_frame(cx);
            }
            let trailers = match next {
                Poll::Pending => return FillResult::Pending,
                Poll::Ready(Some(Err(_))) => return FillResult::Aborted,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        self.add(&data);
                        continue;
                    }
                    Err(frame) => frame.into_trailers().ok(),
                },
                Poll::Ready(None) => None,
            };
            self.body = None;
            match self.framing {
                Framing::Chunked => {
                    write_end(&mut self.out, self.head.values("trailer"), trailers.as_ref())
                }
                Framing::Length(0) => {}
                Framing::Length(_) => return FillResult::Aborted,
            }
        }
        FillResult::Ready
    }

    fn add(&mut self, data: &[u8]) {
        match &mut self.framing {
            // An empty chunk would end the body.
            Framing::Chunked if data.is_empty() => {}
            Framing::Chunked => write_chunk(&mut self.out, data),
            Framing::Length(left) => {
                let taken = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                self.out.extend_from_slice(&data[..taken]);
            }
        }
    }
}
