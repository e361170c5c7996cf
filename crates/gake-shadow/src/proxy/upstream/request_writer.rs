//! A request in parts on its way to a backend that speaks HTTP/1.1.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::Body;

use crate::message::chunks::{write_chunk, write_end};
use crate::message::head::{Framing, RequestHead};
use crate::proxy::client::response_writer::TOGETHER;
use crate::proxy::client::upload::UploadError;
use crate::proxy::exchange::request_body::SendBody;
use crate::proxy::upstream::link::BackendLink;

/// What is still to be written of a request.
pub(crate) struct RequestWriter {
    /// What is written now.
    out: Vec<u8>,
    sent: usize,
    /// Something has been written.
    has_begun: bool,
    /// Announces trailers.
    head: RequestHead,
    /// How the body is framed; a length is what is left of it.
    framing: Framing,
    /// `None` when all of it is in `out`.
    body: Option<SendBody>,
    /// The body ended before its end: the request is never whole.
    is_aborted: bool,
}

/// What [`RequestWriter::fill`] has found.
enum Filled {
    /// There is something to be written.
    Some,
    /// The body has not come any further.
    Waits,
    /// The client broke off.
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

    /// Whether nothing has been written.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.has_begun
    }

    /// Writes what the connection takes; ready when all of it is with the backend.
    pub(crate) fn poll(
        &mut self,
        link: &mut BackendLink,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), UploadError>> {
        loop {
            // Kept, for what came before it may have to wait.
            let filled = if self.is_aborted { Filled::Aborted } else { self.fill(cx) };
            self.is_aborted = matches!(filled, Filled::Aborted);
            while self.sent < self.out.len() {
                let written = ready!(link.poll_write(cx, &self.out[self.sent..]));
                self.sent += written.map_err(UploadError::Master)?;
                self.has_begun = true;
            }
            self.out.clear();
            self.sent = 0;
            match filled {
                Filled::Aborted => return Poll::Ready(Err(UploadError::Client)),
                Filled::Some if self.body.is_some() => {}
                Filled::Some => return link.poll_flush(cx).map_err(UploadError::Master),
                Filled::Waits => {
                    // TLS may hold what was written; an error is seen by the next write.
                    let _ = link.poll_flush(cx);
                    return Poll::Pending;
                }
            }
        }
    }

    /// Adds what has come of the body.
    fn fill(&mut self, cx: &mut Context<'_>) -> Filled {
        while self.out.len() < TOGETHER {
            let Some(body) = &mut self.body else { break };
            let mut next = Poll::Ready(None);
            if !body.is_end_stream() {
                next = Pin::new(body).poll_frame(cx);
            }
            let trailers = match next {
                Poll::Pending => return Filled::Waits,
                Poll::Ready(Some(Err(_))) => return Filled::Aborted,
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
                Framing::Length(_) => return Filled::Aborted,
            }
        }
        Filled::Some
    }

    fn add(&mut self, data: &[u8]) {
        match &mut self.framing {
            // It would be the end.
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
