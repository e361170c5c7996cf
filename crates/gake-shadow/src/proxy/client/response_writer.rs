//! Writes responses to clients as bytes: the end-to-end headers, and the body in our own framing.

use bytes::Bytes;
use gake_codec::http1::{Header, ResponseHead, Visitor};
use http::{HeaderMap, StatusCode};

use crate::collect::OutcomeSlot;
use crate::message::chunks::{write_chunk, write_end};
use crate::message::line::{is, is_one_of, write_line};
use crate::proxy::client::date::DateCache;
use crate::proxy::policy::headers::{self, ResponseLines, VIA_US};
use crate::proxy::upstream::link::SWITCHING;

/// Bytes to collect before a write.
pub(crate) const WRITE_BYTES: usize = 16 << 10;

/// The context in which a response is written.
pub(crate) struct ResponseContext<'a> {
    pub(crate) request_is_head: bool,
    /// The client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// The client accepts trailers.
    pub(crate) takes_trailers: bool,
    /// The response is known to have no body.
    pub(crate) is_empty: bool,
    /// The connection closes after the response.
    pub(crate) closes: bool,
    /// The `Date` for responses without one.
    pub(crate) date: &'a DateCache,
}

/// The progress of a response.
#[derive(Debug, Default)]
pub(crate) struct ResponseState {
    /// The status of the final head; 0 before it.
    pub(crate) status: u16,
    /// The framing is not supported, and nothing was written.
    pub(crate) is_unsupported: bool,
    /// The body ends with the connection, because an HTTP/1.0 client knows no chunks.
    pub(crate) is_ended_by_close: bool,
    is_chunked: bool,
    /// The `Trailer` lines, if the client accepts trailers.
    announced: Vec<Box<[u8]>>,
    trailers: Option<HeaderMap>,
}

/// Writes a response as it is parsed.
pub(crate) struct ResponseWriter<'a> {
    pub(crate) state: &'a mut ResponseState,
    pub(crate) context: ResponseContext<'a>,
    pub(crate) out: &'a mut Vec<u8>,
    /// Records the response for listeners.
    pub(crate) slot: Option<&'a mut OutcomeSlot>,
}

impl ResponseContext<'_> {
    pub(crate) fn version(&self) -> &'static [u8] {
        if self.is_http10 { b"HTTP/1.0" } else { b"HTTP/1.1" }
    }

    /// Writes a `Connection` line unless the version implies it.
    pub(crate) fn write_connection(&self, has_end: bool, out: &mut Vec<u8>) {
        match (self.is_http10, self.closes) {
            (true, false) if has_end => write_line(out, b"connection", b"keep-alive"),
            (false, true) => write_line(out, b"connection", b"close"),
            _ => {}
        }
    }
}

impl ResponseState {
    /// Whether anything was written to the client.
    pub(crate) fn has_begun(&self) -> bool {
        self.status != 0 && !self.is_unsupported
    }

    pub(crate) fn trailers(&mut self, trailers: HeaderMap) {
        self.trailers = Some(trailers);
    }

    pub(crate) fn body(&self, bytes: &[u8], out: &mut Vec<u8>) {
        match self.is_chunked {
            // An empty chunk would end the body.
            true if bytes.is_empty() => {}
            true => write_chunk(out, bytes),
            false => out.extend_from_slice(bytes),
        }
    }

    /// Writes the end of a complete body.
    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        if self.is_chunked {
            write_end(out, self.announced.iter().map(|line| &**line), self.trailers.as_ref());
        }
    }
}

impl Visitor for ResponseWriter<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let lines = ResponseLines::of(head.headers);
        self.state.status = head.status;
        if lines.is_unsupported {
            self.state.is_unsupported = true;
            return;
        }
        if head.status == SWITCHING {
            return self.switched(head, lines.has_date);
        }
        if let Some(slot) = &mut self.slot
            && let Ok(status) = StatusCode::from_u16(head.status)
        {
            slot.head(status, &lines.map());
        }
        self.status_line(head);
        let can_body = !self.context.request_is_head && !matches!(head.status, 204 | 304);
        for (name, value) in lines.end_to_end() {
            let is_left_out = match name.len() {
                // Without a body, only a response to HEAD has a length.
                14 if is(name.as_bytes(), "content-length") => {
                    !can_body && !self.context.request_is_head
                }
                7 if is(name.as_bytes(), "trailer") => !can_body || self.context.is_http10,
                _ => false,
            };
            if !is_left_out {
                write_line(self.out, name.as_bytes(), value);
            }
        }
        if self.context.takes_trailers {
            let announced = head.headers.iter().filter(|line| is(line.name.as_bytes(), "trailer"));
            self.state.announced = announced.map(|line| line.value.into()).collect();
        }
        write_line(self.out, b"via", VIA_US.as_bytes());
        let has_length = lines.has_length();
        let has_end = !can_body || has_length || self.context.is_empty;
        if can_body && !has_length && self.context.is_empty {
            write_line(self.out, b"content-length", b"0");
        }
        self.state.is_ended_by_close = self.context.is_http10 && !has_end;
        self.context.write_connection(has_end, self.out);
        if !has_end && !self.context.is_http10 {
            write_line(self.out, b"transfer-encoding", b"chunked");
            self.state.is_chunked = true;
        }
        if !lines.has_date {
            write_line(self.out, b"date", &self.context.date.now());
        }
        self.out.extend_from_slice(b"\r\n");
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.state.is_unsupported {
            return;
        }
        if let Some(slot) = &mut self.slot {
            slot.data(&Bytes::copy_from_slice(bytes));
        }
        self.state.body(bytes, self.out);
    }

    fn wants_trailers(&self) -> bool {
        self.context.takes_trailers || self.slot.is_some()
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        let trailers = headers::map_of(trailers);
        if let Some(slot) = &mut self.slot {
            slot.trailers(&trailers);
        }
        self.state.trailers(trailers);
    }
}

impl ResponseWriter<'_> {
    /// Writes the head of a protocol switch, with its `Connection` headers.
    fn switched(&mut self, head: &ResponseHead<'_>, has_date: bool) {
        if let Some(slot) = &mut self.slot {
            let mut headers = headers::map_of(head.headers);
            headers::add_via(&mut headers);
            slot.head(StatusCode::SWITCHING_PROTOCOLS, &headers);
        }
        self.status_line(head);
        for header in head.headers {
            let name = header.name.as_bytes();
            // They would describe a body.
            if !is_one_of(name, &["content-length", "transfer-encoding", "trailer"]) {
                write_line(self.out, name, header.value);
            }
        }
        write_line(self.out, b"via", VIA_US.as_bytes());
        if !has_date {
            write_line(self.out, b"date", &self.context.date.now());
        }
        self.out.extend_from_slice(b"\r\n");
    }

    fn status_line(&mut self, head: &ResponseHead<'_>) {
        self.out.extend_from_slice(self.context.version());
        self.out.push(b' ');
        let digits = [head.status / 100, head.status / 10 % 10, head.status % 10];
        self.out.extend(digits.map(|digit| b'0' + digit as u8));
        self.out.push(b' ');
        self.out.extend_from_slice(head.reason.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }
}
