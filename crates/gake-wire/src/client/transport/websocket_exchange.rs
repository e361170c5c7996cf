//! One message in a WebSocket session, and its reply.

use std::io;
use std::task::{Context, Poll};

use gake_codec::websocket::{FrameError, MessageFrame};
use gake_core::clock::Clock;
use gake_core::record::{Exchange, Fault, Phase, ResponseSummary};

use super::interface::{Timing, TransportError};
use super::session_stream::{AwaitedReply, ReadOutcome, SessionStream};
use crate::client::settings::ReplyRule;
use crate::net::fault;

/// The status of a message with a reply: that of the open session.
pub(super) const OPEN: u16 = 101;

pub(super) struct MessageExchange<'a, C> {
    message: &'a MessageFrame,
    rule: &'a ReplyRule,
    exchange: &'a mut Exchange,
    timing: &'a Timing<'a, C>,
    /// Whether the reply is shown to a visitor.
    is_shown: bool,
    /// Bytes of the message written so far.
    sent: usize,
    /// The fault that ended writing; a close frame may still be readable.
    broken: Option<Fault>,
}

impl<'a, C: Clock> MessageExchange<'a, C> {
    pub(super) fn new(
        message: &'a MessageFrame,
        rule: &'a ReplyRule,
        exchange: &'a mut Exchange,
        timing: &'a Timing<'a, C>,
        is_shown: bool,
    ) -> Self {
        exchange.written = false;
        exchange.first_byte = None;
        if let Some(first_byte) = timing.deadline.first_byte {
            timing.alarm.set(timing.write.saturating_add(first_byte).min(timing.deadline.end));
        }
        Self { message, rule, exchange, timing, is_shown, sent: 0, broken: None }
    }

    /// Writes and reads until the reply has come.
    pub(super) fn poll(
        &mut self,
        line: &mut SessionStream,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ResponseSummary, TransportError>> {
        loop {
            if self.timing.alarm.has_passed(cx) {
                self.exchange.done = self.timing.clock.now();
                return Poll::Ready(Err(TransportError::Final(Fault::Timeout(self.phase()))));
            }
            if self.broken.is_none()
                && let Err(error) = self.write(line, cx)
            {
                self.broken = Some(fault::of_write(&error));
            }
            if self.exchange.written && *self.rule == ReplyRule::None {
                let now = self.timing.clock.now();
                (self.exchange.first_byte, self.exchange.done) = (Some(now), now);
                return Poll::Ready(Ok(ResponseSummary { status: OPEN, body_bytes: 0 }));
            }
            let (count, outcome) = match line.read(cx, self.timing.scratch, self.awaited()) {
                Poll::Ready(Ok(read)) => read,
                Poll::Ready(Err(error)) => {
                    let fault = fault::of_read(&error, self.phase());
                    return Poll::Ready(Err(self.ended(line, self.broken.unwrap_or(fault))));
                }
                Poll::Pending => {
                    let Some(fault) = self.broken else { return Poll::Pending };
                    return Poll::Ready(Err(self.ended(line, fault)));
                }
            };
            if let Some(end) = self.take(line, count, outcome) {
                return Poll::Ready(end);
            }
        }
    }

    /// Writes the message between pongs.
    fn write(&mut self, line: &mut SessionStream, cx: &mut Context<'_>) -> io::Result<()> {
        if !line.is_midway {
            self.exchange.bytes_out += line.write_pongs(cx)?;
        }
        if self.exchange.written || line.is_within_pong() {
            return Ok(());
        }
        while self.sent < self.message.bytes.len() {
            match line.stream.poll_write(cx, &self.message.bytes[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.exchange.bytes_out += count as u64;
                    line.is_midway = self.sent < self.message.bytes.len();
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        if let Poll::Ready(flushed) = line.stream.poll_flush(cx) {
            flushed?;
            self.exchange.written = true;
        }
        Ok(())
    }

    /// The awaited reply. A message that comes before this one is written cannot be its reply.
    fn awaited(&self) -> AwaitedReply<'a> {
        match self.rule {
            _ if !self.exchange.written => AwaitedReply::Nothing,
            ReplyRule::None => AwaitedReply::Nothing,
            _ if self.message.is_ping => AwaitedReply::Pong,
            ReplyRule::Next => AwaitedReply::Message(None, self.is_shown),
            ReplyRule::Matching(check) => AwaitedReply::Message(Some(check), true),
        }
    }

    /// Takes the outcome of a read; `None` while the reply is awaited.
    fn take(
        &mut self,
        line: &SessionStream,
        count: usize,
        outcome: Result<ReadOutcome, FrameError>,
    ) -> Option<Result<ResponseSummary, TransportError>> {
        self.exchange.bytes_in += count as u64;
        let now = self.timing.clock.now();
        self.exchange.done = now;
        let phase = self.phase();
        if count > 0 && self.exchange.written && self.exchange.first_byte.is_none() {
            self.exchange.first_byte = Some(now);
            if self.timing.deadline.first_byte.is_some() {
                self.timing.alarm.set(self.timing.deadline.end);
            }
        }
        let fault = match outcome {
            Ok(ReadOutcome::More) => return None,
            Ok(ReadOutcome::Reply(body_bytes)) => {
                return Some(Ok(ResponseSummary { status: OPEN, body_bytes }));
            }
            Ok(ReadOutcome::TooLarge) => Fault::TooLarge("message"),
            Ok(ReadOutcome::Closed(code)) => Fault::WebSocketClosed(code),
            Ok(ReadOutcome::Ended) => self.broken.unwrap_or(Fault::ClosedEarly(phase)),
            Err(error) => Fault::Malformed(error.name()),
        };
        Some(Err(self.ended(line, fault)))
    }

    /// A message of which no byte was written can go over another session.
    fn ended(&mut self, line: &SessionStream, fault: Fault) -> TransportError {
        self.exchange.done = self.timing.clock.now();
        match self.sent == 0 && line.stream.is_plain() {
            true => TransportError::BeforeRequest(fault),
            false => TransportError::Final(fault),
        }
    }

    fn phase(&self) -> Phase {
        if self.exchange.first_byte.is_some() { Phase::Body } else { Phase::FirstByte }
    }
}
