//! Responses and event streams, and how they are sent.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// The response to a request.
pub struct Reply {
    /// The head, and what is known of the body.
    bytes: Vec<Arc<[u8]>>,
    pub(crate) events: Option<Box<dyn Events>>,
}

/// The rest of a response without a length.
pub trait Events: Send {
    /// What is to be sent next; called whenever the viewer has got all before.
    fn next(&mut self, now: Instant) -> NextEvent;
}

/// The next part of a stream.
#[derive(Debug)]
pub enum NextEvent {
    /// Nothing yet.
    Nothing,
    /// These bytes.
    Some(Vec<Arc<[u8]>>),
    /// These bytes, and then the stream ends.
    Last(Vec<Arc<[u8]>>),
}

impl Reply {
    /// A response; `headers` are whole lines.
    #[must_use]
    pub fn new(status: &str, content_type: &str, headers: &str, body: Vec<Arc<[u8]>>) -> Self {
        let length: usize = body.iter().map(|bytes| bytes.len()).sum();
        let mut reply =
            Self::head(status, content_type, &format!("Content-Length: {length}\r\n{headers}"));
        reply.bytes.extend(body);
        reply
    }

    /// A response of text.
    #[must_use]
    pub fn text(status: &str, headers: &str, text: impl Into<String>) -> Self {
        let body = Arc::from(text.into().into_bytes());
        Self::new(status, "text/plain; charset=utf-8", headers, vec![body])
    }

    /// A stream of events; `headers` are whole lines.
    #[must_use]
    pub fn events(headers: &str, events: impl Events + 'static) -> Self {
        let mut reply = Self::head("200 OK", "text/event-stream", headers);
        reply.events = Some(Box::new(events));
        reply
    }

    fn head(status: &str, content_type: &str, headers: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nConnection: close\r\n\
             {headers}\r\n"
        );
        Self { bytes: vec![Arc::from(head.into_bytes())], events: None }
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

/// A reply on its way.
pub(crate) struct Sending {
    pub(crate) stream: TcpStream,
    unsent: VecDeque<Arc<[u8]>>,
    /// What was sent of the first unsent bytes.
    offset: usize,
    events: Option<Box<dyn Events>>,
    /// When it got its place.
    pub(crate) since: Instant,
    /// When the unsent bytes, if any, began to wait.
    waiting_since: Instant,
}

impl Sending {
    pub(crate) fn new(stream: TcpStream, reply: Reply, now: Instant) -> Self {
        Self {
            stream,
            unsent: reply.bytes.into(),
            offset: 0,
            events: reply.events,
            since: now,
            waiting_since: now,
        }
    }

    /// When the bytes that wait began to, if any do.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        (!self.unsent.is_empty()).then_some(self.waiting_since)
    }

    /// Sends what the connection takes now; whether there is more to come.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) fn advance(&mut self, now: Instant) -> io::Result<bool> {
        loop {
            if !self.write()? {
                return Ok(true);
            }
            let next = self.events.as_mut().map(|events| events.next(now));
            match next {
                None => return Ok(false),
                Some(NextEvent::Nothing) => return Ok(true),
                Some(NextEvent::Some(bytes)) => self.unsent.extend(bytes),
                Some(NextEvent::Last(bytes)) => {
                    self.unsent.extend(bytes);
                    self.events = None;
                }
            }
            self.waiting_since = now;
        }
    }

    /// Whether all is written.
    fn write(&mut self) -> io::Result<bool> {
        while let Some(first) = self.unsent.front() {
            match self.stream.write(&first[self.offset..]) {
                Ok(sent) if self.offset + sent == first.len() => {
                    self.unsent.pop_front();
                    self.offset = 0;
                }
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => self.offset += sent,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Closes a connection whose reply is sent.
    pub(crate) fn finish(mut self) {
        // Closing with unread bytes resets the connection, and the peer loses the response.
        let mut rest = [0; 4096];
        for _ in 0..4 {
            if !matches!(self.stream.read(&mut rest), Ok(1..)) {
                break;
            }
        }
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}
