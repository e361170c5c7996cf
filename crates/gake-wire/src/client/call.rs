//! One request of a client: the connection it goes over, the second try, and its redirects.

use std::pin::pin;
use std::rc::Rc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Answer, Exchange, Fault, Phase};

use crate::client::meter::bump;
use crate::client::pool::{Place, Pool};
use crate::client::redirect::{BAD_LOCATION, RedirectVisitor};
use crate::client::request::{Message, PreparedRequest};
use crate::client::shared::Shared;
use crate::client::transport::{AnyTransport, IdleState, Timing, Transport, TransportError};
use crate::client::visitor::ExchangeVisitor;
use crate::net::alarm::Alarm;
use crate::net::deadline::Deadline;
use crate::tls::protocol::Protocol;

/// How often a request is sent again that the server says it did not handle: a server that never
/// handles any must not be asked for ever.
const UNHANDLED_MAX: u32 = 5;

/// A call under way.
pub(crate) struct Call<'a, C, V> {
    pub(crate) shared: &'a Shared<C>,
    pub(crate) pool: &'a Rc<Pool<AnyTransport>>,
    pub(crate) alarm: &'a Alarm<'a>,
    pub(crate) deadline: &'a Deadline,
    /// Instants and bytes, as they come.
    pub(crate) exchange: &'a mut Exchange,
    /// Sees the last response.
    pub(crate) visitor: &'a mut V,
}

/// A place, and how it was come by.
struct Seat<'a> {
    place: Place<'a, AnyTransport>,
    /// When the request can be written.
    write: Nanos,
    /// Whether the connection was open before.
    is_reused: bool,
}

impl<'a, C: Clock + Clone + 'static, V: ExchangeVisitor> Call<'a, C, V> {
    /// Sends the request at `now`, and follows where it leads.
    pub(crate) async fn run(
        &mut self,
        request: &PreparedRequest,
        now: Nanos,
    ) -> Result<Answer, Fault> {
        let (answer, to) = self.hop(request, now).await?;
        match (to, &request.message) {
            (Some(to), Some(message)) => Box::pin(self.follow(message, (answer.status, to))).await,
            _ => Ok(answer),
        }
    }

    /// Goes where a redirect leads, until a response is no redirect.
    async fn follow(
        &mut self,
        message: &Message,
        (mut status, mut to): (u16, String),
    ) -> Result<Answer, Fault> {
        let Shared { network, clock, meter, .. } = self.shared;
        let mut message = message.follow(status, &to)?;
        for _ in 0..network.settings.max_redirects {
            let located = self.alarm.before(pin!(network.locate(&message.location))).await;
            let origin = located.unwrap_or(Err(Fault::Timeout(Phase::Connect)))?;
            let request = network.encode(origin, message).map_err(|_| BAD_LOCATION)?;
            bump(&meter.redirects);
            let (answer, further) = self.hop(&request, clock.now()).await?;
            let (Some(further), Some(from)) = (further, request.message) else {
                return Ok(answer);
            };
            (status, to) = (answer.status, further);
            message = from.follow(status, &to)?;
        }
        Err(Fault::RedirectLimit)
    }

    /// Sends one request and reads its response, on a connection that is open if there is one;
    /// with it comes where it redirects to.
    async fn hop(
        &mut self,
        request: &PreparedRequest,
        now: Nanos,
    ) -> Result<(Answer, Option<String>), Fault> {
        let Shared { clock, scratch, meter, .. } = self.shared;
        let (mut may_reuse, mut unhandled) = (true, 0);
        loop {
            let Seat { place, write, is_reused } =
                self.seat((request.origin, Some(request)), now, may_reuse).await?;
            if self.exchange.bytes_out == 0 {
                self.exchange.write = write;
            }
            let (alarm, deadline) = (self.alarm, self.deadline);
            let timing = Timing { clock, scratch, alarm, deadline, write };
            let follows_offers = self.may_follow_offer(&place);
            let follows = (request.message.is_some(), follows_offers);
            let mut visitor = RedirectVisitor::new(follows, &mut *self.visitor);
            if let Some(facts) = place.facts() {
                visitor.connected(facts);
            }
            match place.exchange(request, self.exchange, &timing, &mut visitor).await {
                Ok(answer) => {
                    if let Some(port) = visitor.offered {
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

    /// Opens a connection to an origin, unless one with room is open.
    pub(crate) async fn connect(&mut self, origin: u32, now: Nanos) -> Result<(), Fault> {
        self.seat((origin, None), now, true).await.map(drop)
    }

    /// Takes a place on a connection that is open, opens one, or waits for either. A connection that
    /// is opened for a request may send it with its handshake.
    async fn seat(
        &mut self,
        (origin, request): (u32, Option<&PreparedRequest>),
        mut now: Nanos,
        mut may_reuse: bool,
    ) -> Result<Seat<'a>, Fault> {
        let (pool, clock) = (self.pool, &self.shared.clock);
        let mut ticket = None;
        loop {
            // Who comes later waits behind those who wait.
            if ticket.is_some() || !pool.has_waiters(origin) {
                if may_reuse && let Some(place) = self.reuse(origin, now) {
                    return Ok(Seat { place, write: now, is_reused: true });
                }
                if let Some(permit) = pool.permit(origin) {
                    // Apart, so that who opens nothing carries nothing of it along.
                    let dialing = pool.dialing();
                    let connection = Box::pin(self.dial(origin, request)).await?;
                    drop(dialing);
                    let place = pool.admit(connection, origin, permit);
                    return Ok(Seat { place, write: clock.now(), is_reused: false });
                }
            }
            if ticket.is_none() && pool.is_full() {
                self.shared.meter.waits_for_place();
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

    /// Whether an answer on this connection may say that HTTP/3 is to be had. Neither a proxy nor
    /// a Unix socket carries it.
    #[inline]
    fn may_follow_offer(&self, place: &Place<'_, AnyTransport>) -> bool {
        self.shared.network.settings.protocol == Protocol::Advertised
            && !place.is_http3()
            && place.facts().is_some_and(|facts| facts.tls.is_some() && facts.peer.is_some())
            && !self.shared.network.has_proxy()
    }

    /// Whether the origin offers HTTP/3, and this connection speaks something else.
    #[inline]
    fn has_better(&self, place: &Place<'_, AnyTransport>, origin: u32) -> bool {
        self.shared.network.settings.protocol == Protocol::Advertised
            && self.shared.dialer.alternatives.port(origin).is_some()
            && !place.is_http3()
    }

    /// A place on an open connection that is still good, counting those that are not.
    #[inline]
    fn reuse(&self, origin: u32, now: Nanos) -> Option<Place<'a, AnyTransport>> {
        let Shared { scratch, meter, .. } = self.shared;
        while let Some(place) = self.pool.take(origin) {
            if self.has_better(&place, origin) {
                place.retire();
                continue;
            }
            match place.idle_state(now, scratch) {
                IdleState::Usable => return Some(place),
                IdleState::Ended => bump(&meter.stale_reconnects),
                IdleState::Unsolicited => bump(&meter.excess),
            }
        }
        None
    }
}
