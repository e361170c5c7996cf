//! One exchange, and one arrival with its exchange.

use super::fault::Fault;
use crate::clock::Nanos;
use crate::plan::ExpectedStatus;
use crate::schedule::Arrival;

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeEnd {
    /// A whole response came.
    Response(ResponseSummary),
    /// It ended without a whole response.
    Fault(Fault),
    /// It was in flight when the drain ended.
    Unfinished,
}

/// A whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Its status code.
    pub status: u16,
    /// Bytes of its body, without heads and framing.
    pub body_bytes: u64,
}

/// What was kept of an answer, on request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedResponse {
    /// Its header lines, in order.
    pub headers: Vec<(String, String)>,
    /// The first bytes of its body.
    pub body: Vec<u8>,
}

/// What TCP says of the connection (Linux `TCP_INFO`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSample {
    /// Smoothed round-trip time.
    pub rtt: Nanos,
    /// Segments sent again since the connection's last sample.
    pub retransmits: u32,
}

/// One request and what came of it, on the run's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The number of its label.
    pub label: u16,
    /// The number of its connection among those that its worker has opened, from 1; 0 when it had
    /// none.
    pub connection: u32,
    /// How long it waited for a connection with room because the bound on connections was reached;
    /// 0 unless lanes outnumber the places on connections.
    pub blocked: Nanos,
    /// When it had a connection and wrote the first byte; the end when it never wrote.
    pub write: Nanos,
    /// Whether every byte of the request was handed to the kernel.
    pub written: bool,
    /// When the first byte of the answer was read.
    pub first_byte: Option<Nanos>,
    /// When it ended.
    pub done: Nanos,
    /// How it ended.
    pub end: ExchangeEnd,
    /// Whether the body of its answer is not what was expected: then it failed, whatever the
    /// status.
    pub wrong_body: bool,
    /// Time spent opening a TCP or Unix connection, when one was opened.
    pub connect: Option<Nanos>,
    /// Time spent in the TLS handshake, when there was one.
    pub tls: Option<Nanos>,
    /// Bytes read, heads and framing included, before TLS.
    pub bytes_in: u64,
    /// Bytes written, heads included, before TLS.
    pub bytes_out: u64,
    /// The TCP sample, if one was taken.
    pub tcp: Option<TcpSample>,
    /// What was kept of the answer.
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

    /// Whether it left the generator. It did not when there was no descriptor or no local port for
    /// its connection.
    #[must_use]
    #[inline]
    pub fn has_left(&self) -> bool {
        self.bytes_out > 0 || !matches!(self.end, ExchangeEnd::Fault(fault) if fault.is_generators())
    }

    /// Whether it is an answer as expected.
    #[must_use]
    #[inline]
    pub fn is_ok(&self, expect: &ExpectedStatus) -> bool {
        matches!(self.end, ExchangeEnd::Response(answer) if expect.accepts(answer.status))
            && !self.wrong_body
    }

    /// From the first byte written to the end: what the server did.
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
    /// How long it waited for a free connection because all were busy.
    pub blocked: Nanos,
    /// When it was fired.
    pub fired: Nanos,
    /// What the work did.
    pub exchange: Exchange,
}

impl Outcome {
    /// From due to done: the latency that a user sees.
    #[must_use]
    pub fn response(&self) -> Nanos {
        self.exchange.done.saturating_sub(self.arrival.due)
    }

    /// The generator's own delay: from due to fired, without the wait for a free connection,
    /// which is the bound's and the server's.
    #[must_use]
    pub fn lateness(&self) -> Nanos {
        self.fired.saturating_sub(self.arrival.due).saturating_sub(self.blocked)
    }
}
