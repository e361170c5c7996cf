//! Plain counts.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::exchange::{ExchangeEnd, Exchange};

/// Larger counts are not read: no run comes near, and sums of them stay within 64 bits.
const READ_MAX: u64 = 1 << 56;

/// Defines the counts, and what is done with each of them.
macro_rules! counts {
    ($($(#[$doc:meta])+ $name:ident),+ $(,)?) => {
        /// Plain counts. Each is a total, and merges by addition.
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

            /// Takes the value of the count of this name, when there is one.
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
    /// Arrivals fired: iterations that were started, and have ended since.
    started,
    /// Of the started, those that were cut short.
    interrupted,
    /// Exchanges that left the generator, or tried to with a socket of their own: ok + failed +
    /// unfinished.
    sent,
    /// Of the sent, those whose request was wholly written. What a server can have counted.
    written,
    /// Responses that met the expectation.
    ok,
    /// Responses that did not, and faults of the sent.
    failed,
    /// In flight when the drain ended.
    unfinished,
    /// Due but never sent.
    dropped,
    /// Of the dropped, those of agents of a fleet that were lost: what was sent of them after their
    /// last report is not known.
    lost,
    /// Bytes read.
    bytes_in,
    /// Bytes of whole answers' bodies, without heads and framing.
    body_bytes,
    /// Bytes written.
    bytes_out,
    /// Connections opened.
    opened,
    /// Reused connections found closed, and replaced for the same request.
    stale_reconnects,
    /// Responses followed by unsolicited bytes; their connection was closed.
    excess,
    /// TCP segments sent again, as far as sampled.
    retransmits,
    /// Idle connections, held beside the load, that the server closed.
    idle_lost,
    /// Idle connections, to be held beside the load, that could not be opened before the end.
    idle_failed,
    /// Redirects followed: requests beyond the one that each arrival sends.
    redirects,
    /// Streams opened on connections of HTTP/2 or HTTP/3.
    streams,
    /// Of these streams, those of HTTP/3.
    http3_streams,
    /// Offers of HTTP/3 (`Alt-Svc`) to which no connection could be opened: TCP was used instead.
    http3_fallbacks,
    /// QUIC packets sent, as far as sampled.
    quic_packets,
    /// Of these packets, those found lost.
    quic_lost,
    /// Bytes of header blocks received over HTTP/2 and HTTP/3, as they were sent.
    header_bytes,
    /// Bytes of the names and values in these blocks.
    header_text_bytes,
    /// Requests that the server said it had not handled (a refused or rejected stream, or one above
    /// the last of GOAWAY), and that were sent again.
    unhandled,
    /// Streams that the server reset, refused ones included.
    stream_resets,
    /// GOAWAY frames received.
    goaways,
    /// Request bodies that waited for the server's flow-control window.
    window_waits,
    /// How long bodies waited for it, added up, in ns.
    window_wait_time,
    /// Sessions opened on connections to a WebSocket.
    sessions,
    /// Sessions that the server ended while no message was under way.
    sessions_ended,
    /// Requests that waited for a stream while every connection had as many as its server allows.
    stream_waits,
    /// Streams that the server allowed on a connection, added up over these requests.
    streams_allowed,
    /// Fired, and never sent: the generator had no descriptor or no local port for a connection.
    unsent,
    /// Of the failed, answers with an expected status whose body was not as expected.
    wrong_bodies,
    /// Calls of connect() for TCP.
    connects,
    /// CPU time of those calls in ns. A call takes tens of microseconds, and milliseconds when the
    /// kernel searches long for a free local port: then the generator's ports are what limits.
    connect_cpu,
}

impl Counts {
    /// What the connections spoke: `HTTP/1.1`, `HTTP/2`, `HTTP/3`, `WebSocket`, or several.
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

    /// Requests that were due: those sent, those that could not be, and one for each arrival that
    /// was dropped. For plain requests it is the number of arrivals.
    #[must_use]
    pub fn due(&self) -> u64 {
        self.begun() + self.dropped
    }

    /// Exchanges begun, whether they left or not.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.sent + self.unsent
    }

    /// Whether each arrival was one request, which ended as its arrival did.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        (self.started, self.interrupted) == (self.begun(), self.unfinished)
    }

    /// Completed iterations.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.started - self.interrupted
    }

    /// Counts an iteration that has ended.
    #[inline]
    pub fn end_arrival(&mut self, interrupted: bool) {
        self.started += 1;
        self.interrupted += u64::from(interrupted);
    }

    /// Of the sent, those that ended, with a response or a fault.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.ok + self.failed
    }

    /// Exchanges that ended, those too that never left.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.completed() + self.unsent
    }

    /// Whether they can be those of a run: sent = ok + failed + unfinished, and no more were
    /// interrupted than started.
    #[must_use]
    pub fn add_up(&self) -> bool {
        self.all().all(|count| count <= READ_MAX)
            && self.sent == self.ok + self.failed + self.unfinished
            && self.interrupted <= self.started
            && self.lost <= self.dropped
    }

    /// Adds what one exchange counts for, which met the expectation or did not; its arrival is
    /// counted apart ([`Counts::end_arrival`]).
    #[inline]
    pub(super) fn add_exchange(&mut self, exchange: &Exchange, is_ok: bool) {
        let (is_sent, is_unfinished) = (exchange.has_left(), exchange.end == ExchangeEnd::Unfinished);
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
    /// A count that is not there is 0. Files from before iterations had counts of their own lack
    /// `started`: each arrival was one request.
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
