//! The fast lane of a user of a closed loop: HTTP/1.1 over a plain TCP connection of its own.
//!
//! It writes a request with one call, and feeds what it reads to the connection's parser. It has no
//! rules: what needs one is left to the transport, which continues with the same parser, the bytes
//! written so far, and the read that was not understood.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use gake_codec::http1::ParseProgress;
use gake_core::clock::{Clock, Nanos, nanos};
use gake_core::record::{Exchange, TcpSample};
use gake_core::work::{FastEnd, FastLane, FastRead, FastResponse};

use crate::client::Client;
use crate::client::meter::{Meter, bump};
use crate::client::pool::PooledConnection;
use crate::client::transport::{AnyTransport, LentConnection};
use crate::load::prepared_requests::PreparedRequests;
use crate::net::scratch::Scratch;

/// A lane that served fewer exchanges cost more than it saved.
const WORTH_IT: u32 = 64;

/// Exchanges without a fast lane after one that was not worth it, at first; doubled each time.
const PAUSE_FIRST: u32 = 16;
const PAUSE_MAX: u32 = 1 << 16;

/// A connection lent to the engine.
#[derive(Debug)]
pub struct HttpFastLane {
    lent: LentConnection,
    wire: Arc<PreparedRequests>,
    scratch: Rc<Scratch>,
    meter: Rc<Meter>,
    origin: u32,
    limit: Nanos,
    /// The request in flight: its label, its length, whether its redirects are followed.
    label: u16,
    length: usize,
    follows: bool,
    /// Bytes of it written.
    sent: usize,
    bytes_in: u64,
    is_reusable: bool,
    served: u32,
    connection: Rc<PooledConnection<AnyTransport>>,
}

/// When a user's connection is lent: not for a while if that was not worth it.
#[derive(Debug, Default)]
pub(super) struct FastPace {
    left: u32,
    pause: u32,
}

impl FastPace {
    /// Whether to try it now.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }

    fn never_again(&mut self) {
        self.left = u32::MAX;
    }

    fn ended_after(&mut self, served: u32) {
        self.pause = match served {
            WORTH_IT.. => 0,
            _ => (2 * self.pause).clamp(PAUSE_FIRST, PAUSE_MAX),
        };
        self.left = self.pause;
    }
}

/// Whether exchanges are plain: requests are ready, and only the end of a response is of interest.
fn are_plain(wire: &PreparedRequests) -> bool {
    let settings = &wire.network.settings;
    wire.are_ready()
        && settings.feed.is_none()
        && settings.inspect.is_none()
        && settings.keep.is_none()
        && settings.dns_ttl.is_none()
        && !settings.stream
        && !settings.pooled
}

impl HttpFastLane {
    /// Lends the idle connection of `client` to the origin of request `number`.
    pub(super) fn lend<C: Clock + Clone + 'static>(
        wire: &Arc<PreparedRequests>,
        client: &Client<C>,
        pace: &mut FastPace,
        (number, now): (u64, Nanos),
    ) -> Option<Self> {
        if !are_plain(wire) {
            pace.never_again();
            return None;
        }
        let origin = wire.request(number, &mut None).request.origin;
        let connection = client.idle(origin)?;
        let AnyTransport::Http1(http1) = connection.transport() else {
            pace.never_again();
            return None;
        };
        let (scratch, meter) =
            (Rc::clone(&client.shared().scratch), Rc::clone(&client.shared().meter));
        let Some(lent) = http1.lend(now) else {
            pace.ended_after(0);
            return None;
        };
        let timeouts = &wire.network.settings.timeouts;
        let total = nanos(timeouts.total);
        Some(Self {
            lent,
            wire: Arc::clone(wire),
            scratch,
            meter,
            origin,
            limit: timeouts.first_byte.map_or(total, |first_byte| nanos(first_byte).min(total)),
            label: 0,
            length: 0,
            follows: false,
            sent: 0,
            bytes_in: 0,
            is_reusable: true,
            served: 0,
            connection,
        })
    }

    /// Gives the connection back. Returns the exchange in flight.
    pub(super) fn end(self, end: FastEnd, pace: &mut FastPace) -> Option<Exchange> {
        let Self { lent, connection, sent, length, bytes_in, label, served, .. } = self;
        let AnyTransport::Http1(http1) = connection.transport() else { return None };
        pace.ended_after(served);
        match end {
            FastEnd::Idle(at) => {
                http1.take_back(lent, at, None);
                if !self.is_reusable {
                    http1.retire();
                }
                None
            }
            FastEnd::InFlight { arrival, first_byte } => {
                let number = lent.number;
                http1.take_back(lent, arrival.due, (sent > 0).then_some(sent));
                Some(Exchange {
                    label,
                    connection: number,
                    written: length > 0 && sent == length,
                    first_byte,
                    bytes_in,
                    bytes_out: sent as u64,
                    ..Exchange::unfinished(arrival.due)
                })
            }
        }
    }
}

impl FastLane for HttpFastLane {
    fn socket(&self) -> BorrowedFd<'_> {
        self.lent.socket.as_fd()
    }

    fn limit(&self) -> Nanos {
        self.limit
    }

    #[inline]
    fn send(&mut self, number: u64) -> bool {
        let mut made = None;
        let one = self.wire.request(number, &mut made);
        let rendered = &one.request.rendered;
        (self.label, self.sent, self.bytes_in) = (one.label, 0, 0);
        (self.length, self.follows) = (rendered.len(), one.request.message.is_some());
        if one.request.origin != self.origin || rendered.rest.is_some() || rendered.closes {
            return false;
        }
        self.lent.parser.start(rendered.is_head);
        // A fault is found again by the transport.
        self.sent = self.lent.socket.write(&rendered.first).unwrap_or(0);
        self.sent == self.length
    }

    #[inline]
    fn receive(&mut self) -> FastRead {
        let LentConnection { socket, parser, known, unread, .. } = &mut self.lent;
        let mut buffer = self.scratch.buffer();
        let count = match socket.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return FastRead::Nothing,
            Err(error) => {
                *unread = Some(Box::new(Err(error)));
                return FastRead::Other;
            }
        };
        let bytes = &buffer[..count];
        let is_redirect = self.follows && self.bytes_in == 0 && may_be_redirect(bytes);
        let fed = match count {
            0 => None,
            _ if is_redirect => None,
            _ => parser.feed_known(bytes, &mut (), &mut known.borrow_mut()).ok(),
        };
        let Some(fed) = fed else {
            // A parser that has failed fails again.
            *unread = Some(Box::new(Ok(bytes.to_vec())));
            return FastRead::Other;
        };
        self.bytes_in += count as u64;
        let ParseProgress::Done(response) = fed else {
            return FastRead::Part { has_more: count == buffer.len() };
        };
        self.served = self.served.saturating_add(1);
        self.is_reusable = response.reusable();
        if response.excess {
            bump(&self.meter.excess);
        }
        FastRead::Response(FastResponse {
            label: self.label,
            connection: self.lent.number,
            status: response.status,
            body_bytes: response.body_bytes,
            bytes_in: self.bytes_in,
            bytes_out: self.length as u64,
            is_reusable: self.is_reusable,
        })
    }

    #[inline]
    fn settle(
        &mut self,
        response: &FastResponse,
        service: Nanos,
        done: Nanos,
    ) -> Option<TcpSample> {
        if self.wire.network.counts_addresses {
            self.count(response, service);
        }
        self.lent.sampler.sample_socket(done, || Some(self.lent.socket.as_fd()))
    }
}

impl HttpFastLane {
    /// Adds an exchange to the load of its address.
    #[cold]
    fn count(&self, response: &FastResponse, service: Nanos) {
        if let Some(peer) = self.connection.transport().peer() {
            self.meter.addresses.borrow_mut().add(peer, Some(service), response.status >= 400);
        }
    }
}

/// Whether the first bytes of a response do not show that it is no redirect.
#[inline]
fn may_be_redirect(bytes: &[u8]) -> bool {
    !matches!(bytes.get("HTTP/1.1 ".len()), Some(b'2' | b'4' | b'5'))
}
