//! An HTTP/1.1 connection to a backend, driven by its user with gake-wire's codec: no task, no
//! channel, no header map.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use gake_codec::http1::{
    Eof, KnownHeads, Malformed, ParseProgress, Response, ResponseLimits, ResponseParser, Visitor,
};
use gake_core::record::{Fault, Phase};
use gake_wire::fault;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::proxy::stream::SocketStream;

/// Maximum bytes of a response's head.
const HEAD_BYTES: usize = 128 << 10;
/// Maximum header lines of a response.
const HEADERS: usize = 100;
/// 101 Switching Protocols.
pub(crate) const SWITCHING: u16 = 101;
const READ_BYTES: usize = 64 << 10;

/// What the reads of a thread share: the buffer, because data is passed on immediately, and the heads
/// that need not be parsed again.
pub(crate) struct Scratch {
    bytes: RefCell<Box<[u8]>>,
    known: RefCell<KnownHeads>,
}

pub(crate) struct BackendLink {
    stream: SocketStream,
    parser: ResponseParser,
    /// Bytes read after a response that switched protocols.
    rest: Vec<u8>,
    /// Whether it has served a request: then the backend may close it concurrently with the next.
    pub(crate) used: bool,
    /// The tick of its last use.
    pub(crate) since: u64,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let bytes = RefCell::new(vec![0; READ_BYTES].into_boxed_slice());
        Self { bytes, known: RefCell::default() }
    }

    pub(crate) fn with<T>(&self, read: impl FnOnce(&mut [u8]) -> T) -> T {
        read(&mut self.bytes.borrow_mut())
    }
}

impl BackendLink {
    pub(crate) fn new(stream: SocketStream) -> Self {
        let limits = ResponseLimits {
            head_bytes: HEAD_BYTES,
            headers: HEADERS,
            ..ResponseLimits::default()
        };
        let parser = ResponseParser::new(limits).ignoring_length_beside_transfer_encoding();
        Self { stream, parser, rest: Vec::new(), used: false, since: 0 }
    }

    /// The connection, unless the backend has closed it or sent unsolicited data.
    pub(crate) fn ready(mut self) -> Option<Self> {
        self.stream.is_quiet().then_some(self)
    }

    /// Prepares for the response to the next request.
    pub(crate) fn start(&mut self, is_head: bool) {
        self.used = true;
        self.parser.start(is_head);
    }

    /// Like [`start`](Self::start), for a request to switch protocols.
    pub(crate) fn start_upgrade(&mut self) {
        self.used = true;
        self.parser.start_upgrade();
    }

    /// After a protocol switch: the stream, and the bytes read after the response.
    pub(crate) fn into_stream(self) -> (SocketStream, Bytes) {
        (self.stream, self.rest.into())
    }

    /// Writes once; returns the number of bytes written.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Fault>> {
        match ready!(Pin::new(&mut self.stream).poll_write(cx, bytes)) {
            Ok(0) => Poll::Ready(Err(Fault::Write)),
            Ok(written) => Poll::Ready(Ok(written)),
            Err(error) => Poll::Ready(Err(fault::of_write(&error))),
        }
    }

    /// Flushes the TLS buffer.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        Pin::new(&mut self.stream).poll_flush(cx).map_err(|error| fault::of_write(&error))
    }

    /// Reads once and feeds the visitor; returns the response when it is complete.
    pub(crate) fn poll_read<V: Visitor>(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &Scratch,
        visitor: &mut V,
    ) -> Poll<Result<Option<Response>, Fault>> {
        let mut bytes = scratch.bytes.borrow_mut();
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
        Poll::Ready(match read {
            Err(error) => Err(fault::of_read(&error, self.phase())),
            Ok(()) if buffer.filled().is_empty() => self.ended().map(Some),
            Ok(()) => {
                let in_body = self.parser.in_body();
                let known = &mut scratch.known.borrow_mut();
                match self.parser.feed_known(buffer.filled(), visitor, known) {
                    Ok(ParseProgress::More) => Ok(None),
                    Ok(ParseProgress::Done(response)) => {
                        if response.status == SWITCHING {
                            self.rest = buffer.filled()[response.consumed..].to_vec();
                        }
                        Ok(Some(response))
                    }
                    Err(malformed) => Err(of_malformed(malformed, in_body)),
                }
            }
        })
    }

    fn phase(&self) -> Phase {
        if self.parser.in_body() { Phase::Body } else { Phase::FirstByte }
    }

    fn ended(&mut self) -> Result<Response, Fault> {
        let phase = self.phase();
        match self.parser.eof() {
            Eof::Complete(response) => Ok(Response { keep_alive: false, ..response }),
            Eof::Nothing | Eof::Cut => Err(Fault::ClosedEarly(phase)),
        }
    }
}

/// Whether a fault may be caused by the backend closing an idle connection.
pub(crate) fn is_stale(fault: Fault) -> bool {
    matches!(fault, Fault::ClosedEarly(Phase::FirstByte) | Fault::Reset | Fault::Write)
}

fn of_malformed(malformed: Malformed, in_body: bool) -> Fault {
    if malformed.is_too_large() {
        Fault::TooLarge("head")
    } else if in_body {
        Fault::Malformed("a bad chunk")
    } else {
        Fault::Malformed("not an HTTP/1.1 response")
    }
}
