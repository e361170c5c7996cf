//! An exchange, and an arrival with its exchange.

use super::fault::Fault;
use crate::clock::Nanos;
use crate::plan::ExpectedStatus;
use crate::schedule::Arrival;

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeEnd {
    /// A complete response.
    Response(ResponseSummary),
    /// No complete response.
    Fault(Fault),
    /// In flight when the drain ended.
    Unfinished,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseSummary {
    /// The status code.
    pub status: u16,
    /// Bytes of the body, without heads and framing.
    pub body_bytes: u64,
}

/// Headers and body of a response, kept on request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedResponse {
    /// Header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The first bytes of the body.
    pub body: Vec<u8>,
}

/// A sample of the connection's `TCP_INFO` (Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSample {
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// Segments retransmitted since the connection's last sample.
    pub retransmits: u32,
}

/// One request and its response or fault, on the run's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The label's number.
    pub label: u16,
    /// The connection's number in its worker, from 1; 0 without a connection.
    pub connection: u32,
    /// Time it waited for a free connection at the limit on connections; 0 unless there are more
    /// lanes than streams.
    pub blocked: Nanos,
    /// When it wrote the first byte; `done` if it never did.
    pub write: Nanos,
    /// Whether the request was written completely.
    pub written: bool,
    /// When the first byte of the response was read.
    pub first_byte: Option<Nanos>,
    /// The instant of its end.
    pub done: Nanos,
    /// How it ended.
    pub end: ExchangeEnd,
    /// Whether the body of the response is not as expected: failed, whatever the status.
    pub wrong_body: bool,
    /// Time to open a TCP or Unix connection, if one was opened.
    pub connect: Option<Nanos>,
    /// Time of the TLS handshake, if there was one.
    pub tls: Option<Nanos>,
    /// Bytes read, heads and framing included, before TLS.
    pub bytes_in: u64,
    /// Bytes written, heads included, before TLS.
    pub bytes_out: u64,
    /// The TCP sample, if one was taken.
    pub tcp: Option<TcpSample>,
    /// The response, if it was to be kept.
    pub captured: Option<Box<CapturedResponse>>,
}

impl Exchange {
    /// An exchange that ended at `now` with a fault before anything was written.
    #[must_use]
    pub fn faulted(now: Nanos, fault: Fault) -> Self {
        Self { end: ExchangeEnd::Fault(fault), ..Self::unfinished(now) }
    }

    /// An exchange that is unfinished at `now`.
    #[must_use]
    pub fn unfinished(now: Nanos) -> Self {
        Self {
            label: 0,
            connection: 0,
            blocked: 0,
            write: now,
            written: false,
            first_byte: None,
            done: now,
            end: ExchangeEnd::Unfinished,
            wrong_body: false,
            connect: None,
            tls: None,
            bytes_in: 0,
            bytes_out: 0,
            tcp: None,
            captured: None,
        }
    }

    /// Whether it left the generator: not if the generator had no descriptor or local port for it.
    #[must_use]
    #[inline]
    pub fn has_left(&self) -> bool {
        self.bytes_out > 0
            || !matches!(self.end, ExchangeEnd::Fault(fault) if fault.is_generators())
    }

    /// Whether it is a response as expected.
    #[must_use]
    #[inline]
    pub fn is_ok(&self, expect: &ExpectedStatus) -> bool {
        matches!(self.end, ExchangeEnd::Response(answer) if expect.accepts(answer.status))
            && !self.wrong_body
    }

    /// Service time: from the first byte written to the end.
    #[must_use]
    pub fn service(&self) -> Nanos {
        self.done.saturating_sub(self.write)
    }
}

/// One arrival from due to done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number and the instant it was due.
    pub arrival: Arrival,
    /// Time it waited for a free lane because all were busy.
    pub blocked: Nanos,
    /// When it was fired.
    pub fired: Nanos,
    /// The exchange that it fired.
    pub exchange: Exchange,
}

impl Outcome {
    /// Response time: from due to done.
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.exchange.done.saturating_sub(self.arrival.due)
    }

    /// The generator's own delay: from due to fired, without the wait for a free lane.
    #[must_use]
    pub fn lateness(&self) -> Nanos {
        self.fired.saturating_sub(self.arrival.due).saturating_sub(self.blocked)
    }
}
