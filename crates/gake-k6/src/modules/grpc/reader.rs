//! Reads responses: headers, messages and trailers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use gake_codec::http1::{Header, ResponseHead, Visitor};
use gake_core::record::GrpcStatus;
use gake_wire::{ExchangeVisitor, GrpcError, GrpcMessages};

use super::status::{INTERNAL, of_head};

/// k6's error for a unary response with more than one message.
const SEVERAL: &str = "cardinality violation: expected <EOF> for non server-streaming RPCs, but \
                       received another message";

/// k6's error for a unary response without a message.
const NO_MESSAGE: &str =
    "cardinality violation: received no response message from non-server-streaming RPC";

/// The messages of a stream, in both directions.
pub(super) trait StreamMessages: std::fmt::Debug {
    /// The next message to send, with its prefix.
    fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Arc<[u8]>>>;

    /// Takes a received message; an error if it is not of the method's type.
    fn received(&self, message: &[u8]) -> Result<(), GrpcError>;
}

/// Names and values.
type Metadata = Vec<(String, String)>;

/// Reads the response of a call; of a unary call at most two messages.
#[derive(Debug, Default)]
pub(super) struct GrpcReader {
    pub(super) headers: Vec<(String, String)>,
    pub(super) trailers: Vec<(String, String)>,
    /// The last message.
    pub(super) message: Option<Vec<u8>>,
    /// Why the response is invalid.
    pub(super) wrong: Option<(GrpcStatus, String)>,
    /// Whether `wrong` is set, shared with the task that awaits the response.
    pub(super) is_wrong: Rc<Cell<bool>>,
    /// Maximum bytes of a message.
    max: usize,
    /// Whether the body consists of messages.
    has_messages: bool,
    messages: GrpcMessages,
    stream: Option<Rc<dyn StreamMessages>>,
}

impl GrpcReader {
    /// A reader of messages of at most `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// A reader of messages of at most `max` bytes, passed on to `stream`.
    pub(super) fn of_stream(max: usize, stream: Rc<dyn StreamMessages>) -> Self {
        Self { stream: Some(stream), ..Self::new(max) }
    }

    /// Headers and trailers. For k6, headers with the status are trailers.
    pub(super) fn metadata(&mut self) -> (Metadata, Metadata) {
        let (headers, trailers) =
            (std::mem::take(&mut self.headers), std::mem::take(&mut self.trailers));
        match headers.iter().any(|(name, _)| name == "grpc-status") {
            true => (Vec::new(), headers),
            false => (headers, trailers),
        }
    }

    /// Ends a complete response with the status OK; sets `wrong` if messages are missing.
    pub(super) fn end(&mut self) {
        if self.wrong.is_some() {
            return;
        }
        if self.messages.left() > 0 {
            self.refuse(INTERNAL, GrpcError::CutShort.to_string());
        } else if self.message.is_none() && self.stream.is_none() {
            self.refuse(INTERNAL, NO_MESSAGE.to_owned());
        }
    }

    fn refuse(&mut self, status: GrpcStatus, why: String) {
        self.wrong = Some((status, why));
        self.is_wrong.set(true);
    }

    fn take(&mut self) {
        while self.wrong.is_none() {
            if let Some(size) = self.messages.announced().filter(|size| *size > self.max) {
                let max = self.max;
                let why = format!("grpc: received message larger than max ({size} vs. {max})");
                return self.refuse(GrpcStatus::RESOURCE_EXHAUSTED, why);
            }
            if let Some(stream) = &self.stream {
                let taken = self.messages.take().and_then(|message| {
                    message.map(|message| stream.received(message)).transpose()
                });
                match taken {
                    Ok(None) => return,
                    Ok(Some(())) => continue,
                    Err(error) => return self.refuse(INTERNAL, error.to_string()),
                }
            }
            let taken = self.messages.take().map(|message| message.map(<[u8]>::to_vec));
            match taken {
                Ok(None) => return,
                Ok(message) => {
                    if std::mem::replace(&mut self.message, message).is_some() {
                        self.refuse(INTERNAL, SEVERAL.to_owned());
                    }
                }
                Err(error) => self.refuse(INTERNAL, error.to_string()),
            }
        }
    }
}

impl Visitor for GrpcReader {
    fn head(&mut self, head: &ResponseHead<'_>) {
        let (stream, is_wrong) = (self.stream.take(), Rc::clone(&self.is_wrong));
        *self = Self { max: self.max, is_wrong, stream, ..Self::default() };
        self.is_wrong.set(false);
        self.headers = lines(head.headers);
        self.has_messages = head.status == 200;
        let kind = head.get("content-type").map(String::from_utf8_lossy);
        if self.has_messages
            && let Some((status, why)) = of_head(head.status, kind.as_deref())
        {
            self.refuse(status, why);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if self.has_messages && self.wrong.is_none() {
            self.messages.push(bytes);
            self.take();
        }
    }

    fn trailers(&mut self, trailers: &[Header<'_>]) {
        self.trailers = lines(trailers);
    }
}

impl ExchangeVisitor for GrpcReader {
    fn is_sending(&self) -> bool {
        self.stream.is_some()
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arc<[u8]>>> {
        self.stream.as_ref().map_or(Poll::Ready(None), |stream| stream.poll_next(cx))
    }
}

fn lines(headers: &[Header<'_>]) -> Vec<(String, String)> {
    let line = |header: &Header<'_>| {
        (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned())
    };
    headers.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use gake_wire::grpc_frame;

    use super::*;

    /// The error of a response with these chunks of body, and its last message.
    fn read(chunks: &[&[u8]]) -> (Option<(GrpcStatus, String)>, Option<Vec<u8>>) {
        let mut reader = GrpcReader { has_messages: true, ..GrpcReader::new(10) };
        for chunk in chunks {
            reader.body(chunk);
        }
        reader.end();
        (reader.wrong, reader.message)
    }

    #[test]
    fn a_unary_response_is_one_message() {
        let (one, two) = (grpc_frame(b"one"), grpc_frame(b"two"));
        assert_eq!(read(&[&one[..2], &one[2..]]), (None, Some(b"one".to_vec())));
        let (wrong, message) = read(&[&one, &two, &one]);
        assert_eq!(message.as_deref(), Some(&b"two"[..]));
        assert_eq!(wrong, Some((INTERNAL, SEVERAL.to_owned())));
        for (chunks, why) in [
            (&[][..], "no response message"),
            (&[&one[..4]][..], "within a message"),
            (&[&one[..], &two[..6]][..], "within a message"),
            (&[&[1, 0, 0, 0, 0][..]][..], "compressed"),
        ] {
            let (status, error) = read(chunks).0.unwrap();
            assert!(status == INTERNAL && error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_message_over_the_bound_is_refused_at_its_prefix() {
        let mut reader = GrpcReader { has_messages: true, ..GrpcReader::new(10) };
        reader.body(&grpc_frame(&[7; 10]));
        assert!(!reader.is_wrong.get());
        let mut reader = GrpcReader { has_messages: true, ..GrpcReader::new(10) };
        reader.body(&grpc_frame(&[7; 11])[..5]);
        assert!(reader.is_wrong.get());
        for _ in 0..100 {
            reader.body(&[7; 100]);
        }
        assert_eq!(reader.messages.left(), 5);
        let (status, error) = reader.wrong.unwrap();
        assert_eq!(status, GrpcStatus::RESOURCE_EXHAUSTED);
        assert_eq!(error, "grpc: received message larger than max (11 vs. 10)");
    }
}
