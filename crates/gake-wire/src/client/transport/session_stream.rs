//! The stream of a WebSocket session: received frames, and pongs.

use std::io;
use std::task::{Context, Poll, Waker, ready};

use gake_codec::websocket::{FrameError, FrameEvents, FrameReader, PongQueue, close_frame};
use gake_core::record::CloseCode;

use crate::client::meter::Meter;
use crate::load::check::{BodyCheck, CHECKED_BYTES_MAX};
use crate::net::scratch::Scratch;
use crate::net::stream::Stream;

#[derive(Debug)]
pub(super) struct SessionStream {
    pub(super) stream: Stream,
    /// Whether a message is partially written, so that its rest must come first.
    pub(super) is_midway: bool,
    reader: FrameReader,
    incoming: SessionInbox,
    is_flushed: bool,
}

#[derive(Debug, Default)]
struct SessionInbox {
    pongs: PongQueue,
    /// The incoming message, if it is checked or shown.
    held: Vec<u8>,
    bytes: u64,
    /// Whether that message began before a reply was awaited.
    is_early: bool,
    closed: Option<CloseCode>,
    broken: Option<FrameError>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AwaitedReply<'a> {
    Nothing,
    Pong,
    /// A message that passes the check, if any, and whether to hold its bytes.
    Message(Option<&'a BodyCheck>, bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// The awaited reply has not come.
    More,
    /// The reply, with its bytes.
    Reply(u64),
    /// A message is too large to be checked.
    TooLarge,
    /// The server has closed the session.
    Closed(CloseCode),
    /// The stream has ended without a close frame.
    Ended,
}

impl SessionStream {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            is_midway: false,
            reader: FrameReader::default(),
            incoming: SessionInbox::default(),
            is_flushed: true,
        }
    }

    /// Takes frames that came with the response to the upgrade.
    pub(super) fn take_early(&mut self, bytes: &[u8]) -> Result<ReadOutcome, FrameError> {
        self.incoming.take(&mut self.reader, bytes, AwaitedReply::Nothing)
    }

    /// The reply, if it was held.
    pub(super) fn held(&self) -> &[u8] {
        &self.incoming.held
    }

    pub(super) fn clear_held(&mut self) {
        self.incoming.held.clear();
        self.incoming.held.shrink_to(KEPT_CAPACITY);
    }

    /// Whether a pong is partially written, so that its rest must come first.
    pub(super) fn is_within_pong(&self) -> bool {
        self.incoming.pongs.is_midway()
    }

    /// Reads once; the number of bytes, and the outcome.
    pub(super) fn read(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &Scratch,
        awaited: AwaitedReply<'_>,
    ) -> Poll<io::Result<(usize, Result<ReadOutcome, FrameError>)>> {
        let Self { stream, reader, incoming, .. } = self;
        scratch.read(stream, cx, |bytes| match bytes.len() {
            0 => (0, Ok(ReadOutcome::Ended)),
            count => (count, incoming.take(reader, bytes, awaited)),
        })
    }

    /// Writes queued pongs as far as the stream takes them. Returns the bytes written.
    pub(super) fn write_pongs(&mut self, cx: &mut Context<'_>) -> io::Result<u64> {
        let mut total = 0;
        while !self.incoming.pongs.bytes().is_empty() {
            match self.stream.poll_write(cx, self.incoming.pongs.bytes()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.incoming.pongs.wrote(count);
                    self.is_flushed = false;
                    total += count as u64;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(total),
            }
        }
        if !self.is_flushed
            && let Poll::Ready(flushed) = self.stream.poll_flush(cx)
        {
            flushed?;
            self.is_flushed = true;
        }
        Ok(total)
    }

    /// Reads and replies to pings until the session ends; returns whether it ended without a protocol
    /// error.
    pub(super) fn attend(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &Scratch,
        meter: &Meter,
    ) -> Poll<bool> {
        loop {
            if self.incoming.broken.is_some() || self.incoming.closed.is_some() {
                return Poll::Ready(self.incoming.broken.is_none());
            }
            match self.write_pongs(cx) {
                Ok(written) => meter.add_bytes(0, written),
                Err(_) => return Poll::Ready(true),
            }
            match ready!(self.read(cx, scratch, AwaitedReply::Nothing)) {
                Ok((count, outcome)) => {
                    meter.add_bytes(count as u64, 0);
                    if outcome == Ok(ReadOutcome::Ended) {
                        return Poll::Ready(true);
                    }
                }
                Err(_) => return Poll::Ready(true),
            }
        }
    }

    /// Sends a close frame, if the stream takes it without waiting.
    pub(super) fn close(&mut self) {
        if self.is_midway || self.is_within_pong() {
            return;
        }
        let code = match (self.incoming.broken, self.incoming.closed) {
            (Some(_), _) => CloseCode::PROTOCOL_ERROR,
            (None, Some(echo)) => echo,
            (None, None) => CloseCode::NORMAL,
        };
        let cx = &mut Context::from_waker(Waker::noop());
        if self.stream.poll_write(cx, &close_frame(code)).is_ready() {
            let _ = self.stream.poll_flush(cx);
        }
    }
}

/// The buffer capacity that a session keeps for the next message.
const KEPT_CAPACITY: usize = 64 * 1024;

impl SessionInbox {
    fn take(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        awaited: AwaitedReply<'_>,
    ) -> Result<ReadOutcome, FrameError> {
        let mut listener =
            FrameListener { incoming: self, awaited, reply: None, is_too_large: false };
        let read = reader.read(bytes, &mut listener);
        let FrameListener { reply, is_too_large, .. } = listener;
        self.broken = read.err();
        match (reply, self.broken, self.closed) {
            // A fault after the reply only ends the session.
            (Some(bytes), ..) => Ok(ReadOutcome::Reply(bytes)),
            (None, Some(error), _) => Err(error),
            (None, None, Some(code)) => Ok(ReadOutcome::Closed(code)),
            _ if is_too_large => Ok(ReadOutcome::TooLarge),
            _ => Ok(ReadOutcome::More),
        }
    }
}

struct FrameListener<'a> {
    incoming: &'a mut SessionInbox,
    awaited: AwaitedReply<'a>,
    reply: Option<u64>,
    is_too_large: bool,
}

impl FrameListener<'_> {
    fn accept(&mut self, bytes: u64) {
        self.reply = Some(bytes);
        self.awaited = AwaitedReply::Nothing;
    }
}

impl FrameEvents for FrameListener<'_> {
    fn data(&mut self, bytes: &[u8]) {
        let incoming = &mut *self.incoming;
        incoming.bytes += bytes.len() as u64;
        match self.awaited {
            AwaitedReply::Nothing => incoming.is_early = true,
            AwaitedReply::Message(_, true) if !incoming.is_early => {
                if incoming.held.len() + bytes.len() > CHECKED_BYTES_MAX {
                    self.is_too_large = true;
                } else {
                    incoming.held.extend_from_slice(bytes);
                }
            }
            AwaitedReply::Message(..) | AwaitedReply::Pong => {}
        }
    }

    fn message(&mut self, _is_text: bool) {
        let bytes = std::mem::take(&mut self.incoming.bytes);
        let is_early = std::mem::take(&mut self.incoming.is_early);
        let AwaitedReply::Message(check, _) = self.awaited else { return };
        if is_early || self.is_too_large {
            return;
        }
        if check.is_none_or(|check| check.is_met(b"", &self.incoming.held)) {
            self.accept(bytes);
        } else {
            self.incoming.held.clear();
        }
    }

    fn ping(&mut self, payload: &[u8]) {
        self.incoming.pongs.put(payload);
    }

    fn pong(&mut self, _payload: &[u8]) {
        if let AwaitedReply::Pong = self.awaited {
            self.accept(0);
        }
    }

    fn close(&mut self, code: CloseCode, _reason: &[u8]) {
        self.incoming.closed = Some(code);
    }
}
