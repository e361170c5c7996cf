//! Plain counts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::exchange::{Exchange, ExchangeEnd};

/// Maximum of a decoded count, far beyond any run; sums of such counts fit 64 bits.
const READ_MAX: u64 = 1 << 56;

macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {
        /// Totals, merged by addition.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct Counts {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl Counts {
            /// Adds `other`.
            pub fn merge(&mut self, other: &Self) {
                $(self.$name = self.$name.saturating_add(other.$name);)+
            }

            fn all(&self) -> impl Iterator<Item = u64> {
                [$(self.$name),+].into_iter()
            }

            /// Reads the count with this name; ignores unknown names.
            fn read<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
                match name {
                    $(stringify!($name) => self.$name = map.next_value()?,)+
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
                Ok(())
            }
        }
    };
}

counts! {
    /// Iterations started that have ended.
    started,
    /// Of the started, the interrupted.
    interrupted,
    /// Exchanges that left the generator, or failed to with a socket of their own: ok + failed +
    /// unfinished.
    sent,
    /// Of the sent, those whose request was written completely: what a server may have counted.
    written,
    /// Responses that meet the expectation.
    ok,
    /// Responses that do not, and faults of the sent.
    failed,
    /// In flight when the drain ended.
    unfinished,
    /// Due but never sent.
    dropped,
    /// Of the dropped, arrivals of lost agents, some of which may have been sent after their last
    /// report.
    lost,
    /// Bytes read.
    bytes_in,
    /// Bytes of complete response bodies, without heads and framing.
    body_bytes,
    /// Bytes written.
    bytes_out,
    /// Connections opened.
    opened,
    /// Reused connections that were found closed and replaced for the same request.
    stale_reconnects,
    /// Responses followed by unsolicited bytes; their connection was closed.
    excess,
    /// TCP segments retransmitted, as far as sampled.
    retransmits,
    /// Idle connections that the server closed.
    idle_lost,
    /// Idle connections that could not be opened before the end.
    idle_failed,
    /// Redirects followed: requests beyond the first of an arrival.
    redirects,
    /// Streams opened over HTTP/2 and HTTP/3.
    streams,
    /// Of these streams, over HTTP/3.
    http3_streams,
    /// HTTP/3 offers (`Alt-Svc`) that fell back to TCP because no connection could be opened.
    http3_fallbacks,
    /// QUIC packets sent, as far as sampled.
    quic_packets,
    /// Of these packets, the lost.
    quic_lost,
    /// Bytes of header blocks received over HTTP/2 and HTTP/3, as they were sent.
    header_bytes,
    /// Bytes of the names and values in these blocks.
    header_text_bytes,
    /// Requests retried because the server had not processed them (refused or rejected streams,
    /// streams above the last one of GOAWAY).
    unhandled,
    /// Streams reset by the server, refused ones included.
    stream_resets,
    /// GOAWAY frames received.
    goaways,
    /// Request bodies that waited for flow control.
    window_waits,
    /// Total time that bodies waited for flow control, in ns.
    window_wait_time,
    /// WebSocket sessions opened.
    sessions,
    /// Sessions that the server ended while idle.
    sessions_ended,
    /// Requests that waited for a stream because all connections were at the server's limit.
    stream_waits,
    /// The server's stream limits, summed over these requests.
    streams_allowed,
    /// Exchanges never sent: the generator had no descriptor or no local port left.
    unsent,
    /// Of the failed, responses with an expected status and an unexpected body.
    wrong_bodies,
    /// `connect()` calls for TCP.
    connects,
    /// CPU time of those calls, in ns: tens of microseconds each, milliseconds when local ports run
    /// out and the kernel searches for a free one.
    connect_cpu,
}

impl Counts {
    /// The protocols of the connections, for display: `HTTP/1.1`, `HTTP/3 and HTTP/2`.
    #[must_use]
    pub fn spoken(&self) -> &'static str {
        let http2 = self.streams.saturating_sub(self.http3_streams);
        let is_streams_alone = self.streams.saturating_sub(self.unhandled) >= self.written;
        match (self.sessions, http2, self.http3_streams) {
            (0, 0, 0) => "HTTP/1.1",
            (0, _, 0) if is_streams_alone => "HTTP/2",
            (0, 0, _) if is_streams_alone => "HTTP/3",
            (0, _, 1..) if is_streams_alone => "HTTP/3 and HTTP/2",
            (0, _, 0) => "HTTP/2 and HTTP/1.1",
            (0, 0, _) => "HTTP/3 and HTTP/1.1",
            (0, ..) => "HTTP/3, HTTP/2 and HTTP/1.1",
            (sessions, 0, 0) if sessions >= self.opened => "WebSocket",
            (_, 0, 0) => "HTTP/1.1 and WebSocket",
            (_, _, 0) => "HTTP/2 and WebSocket",
            (..) => "HTTP/3 and WebSocket",
        }
    }

    /// Arrivals that were due: started + dropped.
    #[must_use]
    pub fn arrivals(&self) -> u64 {
        self.started + self.dropped
    }

    /// Requests that were due: sent, unsent, and one for each dropped arrival. For plain requests,
    /// the number of arrivals.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.begun() + self.dropped
    }

    /// Exchanges begun: sent + unsent.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.sent + self.unsent
    }

    /// Whether each arrival was a single request.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        (self.started, self.interrupted) == (self.begun(), self.unfinished)
    }

    /// Completed iterations.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.started - self.interrupted
    }

    /// Counts the end of an iteration.
    #[inline]
    pub fn end_arrival(&mut self, interrupted: bool) {
        self.started += 1;
        self.interrupted += u64::from(interrupted);
    }

    /// Of the sent, those that ended with a response or a fault.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.ok + self.failed
    }

    /// Exchanges that ended, unsent ones included.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.completed() + self.unsent
    }

    /// Whether the invariants hold: sent = ok + failed + unfinished, interrupted ≤ started, lost ≤
    /// dropped.
    #[must_use]
    pub fn add_up(&self) -> bool {
        self.all().all(|count| count <= READ_MAX)
            && self.sent == self.ok + self.failed + self.unfinished
            && self.interrupted <= self.started
            && self.lost <= self.dropped
    }

    /// Adds an exchange. Its arrival is counted by [`Counts::end_arrival`].
    #[inline]
    pub(super) fn add_exchange(&mut self, exchange: &Exchange, is_ok: bool) {
        let (is_sent, is_unfinished) =
            (exchange.has_left(), exchange.end == ExchangeEnd::Unfinished);
        self.sent += u64::from(is_sent);
        self.written += u64::from(exchange.written);
        self.ok += u64::from(is_ok);
        self.failed += u64::from(is_sent && !is_ok && !is_unfinished);
        self.unfinished += u64::from(is_unfinished);
        self.bytes_in += exchange.bytes_in;
        self.bytes_out += exchange.bytes_out;
        self.unsent += u64::from(!is_sent);
        self.wrong_bodies += u64::from(exchange.wrong_body);
        if let ExchangeEnd::Response(answer) = exchange.end {
            self.body_bytes += answer.body_bytes;
        }
    }
}

impl<'de> Deserialize<'de> for Counts {
    /// Missing counts are 0. Old files lack `started`: each arrival was one request.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountsVisitor;

        impl<'de> Visitor<'de> for CountsVisitor {
            type Value = Counts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counts by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Counts, A::Error> {
                let (mut counts, mut is_old) = (Counts::default(), true);
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    is_old &= name != "started";
                    counts.read(&name, &mut map)?;
                }
                if is_old {
                    (counts.started, counts.interrupted) = (counts.begun(), counts.unfinished);
                }
                if counts.add_up() {
                    Ok(counts)
                } else {
                    Err(A::Error::custom("the counts do not add up"))
                }
            }
        }

        deserializer.deserialize_map(CountsVisitor)
    }
}
