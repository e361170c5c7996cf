//! One request of a client: its connection, retries and redirects.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Exchange, Fault, Phase, ResponseSummary};

use crate::client::meter::{Meter, bump};
use crate::client::pool::{ConnectionPool, ConnectionSlot};
use crate::client::redirect::{BAD_LOCATION, RedirectVisitor};
use crate::client::request::PreparedRequest;
use crate::client::shared::Shared;
use crate::client::transport::{AnyTransport, IdleState, Timing, Transport, TransportError};
use crate::client::visitor::ExchangeVisitor;
use crate::net::alarm::Alarm;
use crate::net::deadline::Deadline;
use crate::tls::protocol::Protocol;

/// Maximum retries of a request that the server reports as unprocessed.
const UNHANDLED_MAX: u32 = 5;

pub(crate) struct Call<'a, C, V> {
    pub(crate) shared: &'a Shared<C>,
    pub(crate) pool: &'a Rc<ConnectionPool<AnyTransport>>,
    pub(crate) alarm: &'a Alarm<'a>,
    pub(crate) deadline: &'a Deadline,
    /// Updated as instants and bytes become known.
    pub(crate) exchange: &'a mut Exchange,
    /// Sees the last response, after redirects.
    pub(crate) visitor: &'a mut V,
}

struct Checkout<'a> {
    slot: ConnectionSlot<'a, AnyTransport>,
    /// When the request can be written.
    write: Nanos,
    is_reused: bool,
}

impl<'a, C: Clock + Clone + 'static, V: ExchangeVisitor> Call<'a, C, V> {
    /// Follows redirects from the response to `request` that has the target `to`, until a response
    /// is not one.
    pub(crate) async fn follow(
        &mut self,
        request: &PreparedRequest,
        answer: ResponseSummary,
        to: String,
    ) -> Result<ResponseSummary, Fault> {
        let Shared { network, clock, meter, .. } = self.shared;
        let Some(message) = &request.message else { return Ok(answer) };
        let settings = &network.settings;
        let Some(mut message) = message.follow(answer.status, &to, settings.redirect_rules)? else {
            return Ok(answer);
        };
        for _ in 0..settings.max_redirects {
            let located = self.alarm.before(pin!(network.locate(&message.location))).await;
            let origin = located.unwrap_or(Err(Fault::Timeout(Phase::Connect)))?;
            let request = network.encode(origin, message).map_err(|_| BAD_LOCATION)?;
            bump(&meter.redirects);
            let (answer, to) = self.hop(&request, clock.now()).await?;
            let (Some(to), Some(from)) = (to, request.message) else { return Ok(answer) };
            match from.follow(answer.status, &to, settings.redirect_rules)? {
                Some(next) => message = next,
                None => return Ok(answer),
            }
        }
        Err(Fault::RedirectLimit)
    }

    /// Sends one request and reads its response, preferably on an open connection. Returns the
    /// target of a redirect, too.
    pub(crate) async fn hop(
        &mut self,
        request: &PreparedRequest,
        now: Nanos,
    ) -> Result<(ResponseSummary, Option<String>), Fault> {
        let Shared { clock, scratch, meter, .. } = self.shared;
        let (mut may_reuse, mut unhandled) = (true, 0);
        loop {
            let Checkout { slot, write, is_reused } =
                self.check_out((request.origin, Some(request)), now, may_reuse).await?;
            if self.exchange.bytes_out == 0 {
                self.exchange.write = write;
            }
            let (alarm, deadline) = (self.alarm, self.deadline);
            let timing = Timing { clock, scratch, alarm, deadline, write };
            let follows = (request.message.is_some(), self.follows_alternatives(&slot));
            let mut visitor = RedirectVisitor::new(follows, &mut *self.visitor);
            if let Some(facts) = slot.facts() {
                visitor.connected(facts);
            }
            let (exchange, timing, shown) = (&mut *self.exchange, &timing, &mut visitor);
            // Not a function of its own: each layer of futures costs a request a cache line.
            let answer = match &*slot {
                AnyTransport::Http1(http1) => {
                    http1.exchange(request, exchange, timing, shown).await
                }
                AnyTransport::Http2(http2) => {
                    http2.exchange(request, exchange, timing, shown).await
                }
                // Boxed: futures of other transports stay small.
                AnyTransport::Http3(http3) => {
                    Box::pin(http3.exchange(request, exchange, timing, shown)).await
                }
                AnyTransport::WebSocket(session) => {
                    session.exchange(request, exchange, timing, shown).await
                }
            };
            if self.shared.network.counts_addresses {
                let service = self.exchange.done.saturating_sub(write);
                count(meter, slot.peer(), &answer, (service, is_reused));
            }
            match answer {
                Ok(answer) => {
                    if let Some(port) = visitor.http3_port {
                        self.shared.dialer.alternatives.advertise(request.origin, port);
                    }
                    return Ok((answer, visitor.to));
                }
                Err(TransportError::BeforeRequest(_)) if is_reused => {}
                Err(TransportError::BeforeResponse(_))
                    if is_reused && request.rendered.idempotent => {}
                Err(TransportError::Unhandled(_)) if unhandled < UNHANDLED_MAX => {
                    unhandled += 1;
                    bump(&meter.unhandled);
                    self.exchange.written = false;
                    continue;
                }
                Err(error) => return Err(error.fault()),
            }
            bump(&meter.stale_reconnects);
            self.exchange.written = false;
            may_reuse = false;
        }
    }

    /// Opens a connection to an origin, unless one with a free slot is open, and waits for the
    /// settings of an HTTP/2 server.
    pub(crate) async fn connect(&mut self, origin: u32, now: Nanos) -> Result<(), Fault> {
        let checkout = self.check_out((origin, None), now, true).await?;
        let greeting = self.alarm.before(pin!(checkout.slot.greeting())).await;
        greeting.unwrap_or(Err(Fault::Timeout(Phase::Connect)))
    }

    /// Takes a slot on an open connection, opens a connection, or waits for either. A new connection
    /// may send `request` as early data.
    async fn check_out(
        &mut self,
        (origin, request): (u32, Option<&PreparedRequest>),
        mut now: Nanos,
        mut may_reuse: bool,
    ) -> Result<Checkout<'a>, Fault> {
        let (pool, clock) = (self.pool, &self.shared.clock);
        let mut ticket = None;
        loop {
            // FIFO: newcomers queue behind earlier waiters.
            if ticket.is_some() || !pool.has_waiters(origin) {
                if may_reuse && let Some(slot) = self.reuse(origin, now) {
                    return Ok(Checkout { slot, write: now, is_reused: true });
                }
                if let Some(permit) = pool.permit(origin) {
                    // Boxed: futures that open no connection stay small.
                    let dialing = pool.dialing();
                    let connection = Box::pin(self.dial(origin, request)).await?;
                    drop(dialing);
                    let slot = pool.admit(connection, origin, permit);
                    return Ok(Checkout { slot, write: clock.now(), is_reused: false });
                }
            }
            if ticket.is_none() && pool.is_full() {
                self.shared.meter.waits_for_slot();
            }
            let waits = self.alarm.before(pin!(pool.wait(origin, &mut ticket))).await;
            let woken = clock.now();
            self.exchange.blocked += woken.saturating_sub(now);
            (now, may_reuse) = (woken, true);
            waits.ok_or(Fault::Timeout(Phase::Connect))?;
        }
    }

    async fn dial(
        &mut self,
        origin: u32,
        request: Option<&PreparedRequest>,
    ) -> Result<AnyTransport, Fault> {
        let to = (origin, request);
        self.shared.dialer.dial(to, self.alarm, self.deadline, self.exchange).await
    }

    /// Whether `Alt-Svc` on this connection is followed. Neither proxies nor Unix sockets carry
    /// HTTP/3.
    #[inline]
    fn follows_alternatives(&self, slot: &ConnectionSlot<'_, AnyTransport>) -> bool {
        self.shared.network.settings.protocol == Protocol::Advertised
            && !slot.is_http3()
            && slot.facts().is_some_and(|facts| facts.tls.is_some() && facts.peer.is_some())
            && !self.shared.network.has_proxy()
    }

    /// Whether the origin advertises HTTP/3 and this connection speaks something else.
    #[inline]
    fn is_superseded(&self, slot: &ConnectionSlot<'_, AnyTransport>, origin: u32) -> bool {
        self.shared.network.settings.protocol == Protocol::Advertised
            && self.shared.dialer.alternatives.port(origin).is_some()
            && !slot.is_http3()
    }

    /// A slot on an open, usable connection. Counts unusable ones.
    #[inline]
    fn reuse(&self, origin: u32, now: Nanos) -> Option<ConnectionSlot<'a, AnyTransport>> {
        let Shared { network, dialer, scratch, meter, .. } = self.shared;
        let changes = network.lookups.changes();
        if changes > 0 {
            self.pool.evict_idle(changes, |to, idle| dialer.has_left(to, idle.peer()));
        }
        while let Some(slot) = self.pool.take(origin) {
            let has_left = changes > 0 && dialer.has_left(origin, slot.peer());
            if has_left || self.is_superseded(&slot, origin) {
                slot.retire();
                continue;
            }
            match slot.idle_state(now, scratch) {
                IdleState::Usable => return Some(slot),
                IdleState::Ended => bump(&meter.stale_reconnects),
                IdleState::Unsolicited => bump(&meter.excess),
            }
        }
        None
    }
}

/// Adds the end of an exchange to the load of its address, unless the server never saw it.
fn count(
    meter: &Meter,
    peer: Option<SocketAddr>,
    answer: &Result<ResponseSummary, TransportError>,
    (service, is_reused): (Nanos, bool),
) {
    let Some(peer) = peer else { return };
    let (service, is_failed) = match answer {
        Ok(answer) => (Some(service), answer.status >= 400),
        Err(TransportError::BeforeRequest(_)) if is_reused => return,
        Err(TransportError::Unhandled(_)) => return,
        Err(_) => (None, true),
    };
    meter.addresses.borrow_mut().add(peer, service, is_failed);
}
