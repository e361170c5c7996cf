//! A request in parts on its way to a backend that speaks HTTP/1.1.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Request};
use http_body::Body;

use super::answer_bytes::{TOGETHER, write_chunk};
use super::headers::request_head;
use super::link::Link;
use super::plain::Framing;
use super::request_head::digits;
use super::send_body::SendBody;
use super::trailers::write_end;
use super::upload::Stopped;

/// What is still to be written of a request.
pub(super) struct RequestWriter {
    /// What is written now.
    out: Vec<u8>,
    sent: usize,
    /// Something has been written.
    has_begun: bool,
    /// Of the head, which announces trailers.
    headers: HeaderMap,
    /// How the body is framed; a length is what is left of it.
    framing: Framing,
    /// `None` when all of it is in `out`.
    body: Option<SendBody>,
    /// The body ended before its end: the request is never whole.
    is_broken_off: bool,
}

/// What [`RequestWriter::fill`] has found.
enum Filled {
    /// There is something to be written.
    Some,
    /// The body has not come any further.
    Waits,
    /// The client broke off.
    BrokenOff,
}

impl RequestWriter {
    pub(super) fn new(request: Request<SendBody>) -> Self {
        let (mut head, body) = request.into_parts();
        let framing = framing(&mut head.headers, &body);
        let out = request_head(&head.method, &head.uri.to_string(), &head.headers);
        let (headers, body) = (head.headers, Some(body));
        let (has_begun, is_broken_off) = (false, false);
        Self { out, sent: 0, has_begun, headers, framing, body, is_broken_off }
    }

    /// Whether nothing has been written.
    pub(super) fn is_untouched(&self) -> bool {
        !self.has_begun
    }

    /// Writes what the connection takes; ready when all of it is with the backend.
    pub(super) fn poll(
        &mut self,
        link: &mut Link,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        loop {
            // Kept, for what came before it may have to wait.
            let filled = if self.is_broken_off { Filled::BrokenOff } else { self.fill(cx) };
            self.is_broken_off = matches!(filled, Filled::BrokenOff);
            while self.sent < self.out.len() {
                let written = ready!(link.poll_write(cx, &self.out[self.sent..]));
                self.sent += written.map_err(Stopped::Master)?;
                self.has_begun = true;
            }
            self.out.clear();
            self.sent = 0;
            match filled {
                Filled::BrokenOff => return Poll::Ready(Err(Stopped::Client)),
                Filled::Some if self.body.is_some() => {}
                Filled::Some => return link.poll_flush(cx).map_err(Stopped::Master),
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
                Poll::Ready(Some(Err(_))) => return Filled::BrokenOff,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => {
                        self.add(&piece);
                        continue;
                    }
                    Err(frame) => frame.into_trailers().ok(),
                },
                Poll::Ready(None) => None,
            };
            self.body = None;
            match self.framing {
                Framing::Chunked => write_end(&mut self.out, &self.headers, trailers.as_ref()),
                Framing::Length(0) => {}
                Framing::Length(_) => return Filled::BrokenOff,
            }
        }
        Filled::Some
    }

    fn add(&mut self, piece: &[u8]) {
        match &mut self.framing {
            // It would be the end.
            Framing::Chunked if piece.is_empty() => {}
            Framing::Chunked => write_chunk(&mut self.out, piece),
            Framing::Length(left) => {
                let taken = piece.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                self.out.extend_from_slice(&piece[..taken]);
            }
        }
    }
}

/// The framing that a head says; one that says none is made to.
fn framing(headers: &mut HeaderMap, body: &SendBody) -> Framing {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
        return Framing::Chunked;
    }
    if let Some(length) = headers.get(CONTENT_LENGTH).and_then(|length| digits(length.as_bytes())) {
        return Framing::Length(length);
    }
    match body.size_hint().exact() {
        // Nobody said a length of nothing.
        Some(0) => Framing::Length(0),
        Some(length) => {
            headers.insert(CONTENT_LENGTH, length.into());
            Framing::Length(length)
        }
        None => {
            // Whatever it says: two framings are two requests to some server.
            headers.remove(CONTENT_LENGTH);
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            Framing::Chunked
        }
    }
}
