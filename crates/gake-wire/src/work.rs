//! What one lane fires: one HTTP request, and those that its redirects lead to.

use std::rc::Rc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Answer, End, Exchange, Fault, Phase};
use gake_core::work::{Arrival, Work};

use crate::conn::{Conn, Rest};
use crate::connect::nanos;
use crate::deadline::Deadline;
use crate::factory::Shop;
use crate::http1::Response;
use crate::http1::request::Rendered;
use crate::meter::bump;
use crate::redirect::{Heed, Spec};
use crate::transact::{Failure, Terms, transact};
use crate::wire::{Feed, Prepared};

/// Connections that a user keeps to origins which redirects led to.
const OWN_FOUND_MAX: usize = 4;

/// Sends requests for one lane.
#[derive(Debug)]
pub struct HttpWork<C> {
    shop: Rc<Shop<C>>,
    deadline: Rc<Deadline>,
    /// The connections of a user of a closed loop, one an origin.
    #[allow(clippy::vec_box, reason = "what goes in and out for every request is a pointer")]
    own: Vec<Box<Conn>>,
    /// What is known of the arrival under way.
    exchange: Exchange,
    /// Whether an arrival is under way.
    fired: bool,
}

/// One request, and one answer, of an arrival.
struct Hop<'a> {
    request: &'a Rendered,
    origin: u32,
    /// When it is fired.
    now: Nanos,
    /// When the arrival must have ended.
    ends: Nanos,
}

impl<C: Clock> HttpWork<C> {
    pub(crate) fn new(shop: Rc<Shop<C>>, deadline: Rc<Deadline>) -> Self {
        let exchange = Exchange::unfinished(0);
        Self { shop, deadline, own: Vec::new(), exchange, fired: false }
    }

    /// An open connection to an origin, when there is one.
    #[inline]
    fn take(&mut self, origin: u32) -> Option<Box<Conn>> {
        if self.shop.dialer.wire.settings.pooled {
            return self.shop.pool.take(origin);
        }
        let at = self.own.iter().position(|conn| conn.origin == origin)?;
        Some(self.own.swap_remove(at))
    }

    #[inline]
    fn keep(&mut self, conn: Box<Conn>) {
        let wire = &self.shop.dialer.wire;
        if wire.settings.pooled {
            self.shop.pool.put(conn);
            return;
        }
        if self.own.len() >= wire.origins.len() + OWN_FOUND_MAX {
            self.own.remove(0);
        }
        self.own.push(conn);
    }

    /// An idle connection that is still good, counting those that are not.
    #[inline]
    fn reuse(&mut self, origin: u32, now: Nanos) -> Option<Box<Conn>> {
        while let Some(mut conn) = self.take(origin) {
            // The runtime can have heard nothing since an answer that has only just ended.
            if conn.done == now {
                return Some(conn);
            }
            let meter = &self.shop.dialer.meter;
            match conn.look(&self.shop.scratch) {
                Rest::Quiet => return Some(conn),
                Rest::Ended => bump(&meter.stale_reconnects),
                Rest::Unsolicited => bump(&meter.excess),
            }
        }
        None
    }

    async fn open(&mut self, hop: &Hop<'_>) -> Result<Box<Conn>, Fault> {
        let Self { shop, deadline, exchange, .. } = self;
        shop.pool.make_room();
        shop.dialer.dial(hop.origin, deadline, hop.ends, exchange).await
    }

    async fn run(
        &mut self,
        shop: &Shop<C>,
        request: &Prepared,
        now: Nanos,
    ) -> Result<Response, Fault> {
        let ends = now.saturating_add(nanos(shop.dialer.wire.settings.timeouts.total));
        self.deadline.set(ends);
        let keep = shop.keep();
        let mut heed = Heed::new(request.spec.is_some(), keep);
        let hop = Hop { request: &request.rendered, origin: request.origin, now, ends };
        let response = match self.hop(shop, &hop, &mut heed).await {
            Ok(response) => response,
            Err(fault) => {
                // What came before the fault is kept too.
                self.exchange.kept = heed.kept.map(|(kept, _)| kept);
                return Err(fault);
            }
        };
        match (heed.to, &request.spec) {
            (Some(to), Some(spec)) => {
                Box::pin(self.follow(shop, spec, (response.status, to), ends, keep)).await
            }
            (_, _) => {
                self.exchange.kept = heed.kept.map(|(kept, _)| kept);
                Ok(response)
            }
        }
    }

    /// Sends a request that is made now; `None` when there are no more.
    async fn run_fed(
        &mut self,
        shop: &Shop<C>,
        feed: &dyn Feed,
        number: u64,
    ) -> Result<Option<Response>, Fault> {
        let Some(request) = shop.dialer.wire.make(feed, number).await? else { return Ok(None) };
        self.exchange.label = request.label;
        self.run(shop, &request, shop.dialer.clock.now()).await.map(Some)
    }

    /// Sends one request and reads its answer, on a connection that is open if there is one.
    async fn hop(
        &mut self,
        shop: &Shop<C>,
        hop: &Hop<'_>,
        heed: &mut Heed,
    ) -> Result<Response, Fault> {
        let dialer = &shop.dialer;
        let mut reused = self.reuse(hop.origin, hop.now);
        loop {
            let is_reused = reused.is_some();
            let (mut conn, write) = match reused.take() {
                Some(conn) => (conn, hop.now),
                None => (self.open(hop).await?, dialer.clock.now()),
            };
            if self.exchange.bytes_out == 0 {
                self.exchange.write = write;
            }
            let terms = Terms {
                clock: &dialer.clock,
                scratch: &shop.scratch,
                deadline: &self.deadline,
                write,
                ends: hop.ends,
                first_byte: dialer.wire.settings.timeouts.first_byte.map(nanos),
            };
            match transact(&mut conn, hop.request, &mut self.exchange, &terms, heed).await {
                Ok(response) => {
                    self.finish(conn, hop.request, &response);
                    return Ok(response);
                }
                Err(Failure::BeforeRequest(_)) if is_reused => {}
                Err(Failure::BeforeAnswer(_)) if is_reused && hop.request.idempotent => {}
                Err(failure) => return Err(failure.fault()),
            }
            bump(&dialer.meter.stale_reconnects);
            self.exchange.written = false;
        }
    }

    /// Goes where a redirect leads, until there is an answer that is none.
    async fn follow(
        &mut self,
        shop: &Shop<C>,
        spec: &Spec,
        (mut status, mut to): (u16, String),
        ends: Nanos,
        keep: Option<usize>,
    ) -> Result<Response, Fault> {
        let dialer = &shop.dialer;
        let settings = &dialer.wire.settings;
        let mut next = spec.follow(status, &to)?;
        for _ in 0..settings.max_redirects {
            let locating = dialer.wire.locate(&next.location);
            let located = self.deadline.before(std::pin::pin!(locating)).await;
            let origin = located.unwrap_or(Err(Fault::Timeout(Phase::Connect)))?;
            let request =
                next.render(settings.keepalive).map_err(|_| Fault::Malformed("location"))?;
            bump(&dialer.meter.redirects);
            let mut heed = Heed::new(true, keep);
            let hop = Hop { request: &request, origin, now: dialer.clock.now(), ends };
            let response = self.hop(shop, &hop, &mut heed).await?;
            let Some(further) = heed.to else {
                self.exchange.kept = heed.kept.map(|(kept, _)| kept);
                return Ok(response);
            };
            (status, to) = (response.status, further);
            next = next.follow(status, &to)?;
        }
        Err(Fault::RedirectLimit)
    }

    #[inline]
    fn finish(&mut self, mut conn: Box<Conn>, request: &Rendered, response: &Response) {
        let sample = conn.sample(self.exchange.done);
        self.exchange.tcp = sample.or(self.exchange.tcp);
        if response.excess {
            bump(&self.shop.dialer.meter.excess);
        }
        // An answer that came before the whole request was written leaves the rest in the way.
        let whole = self.exchange.written;
        if response.reusable() && whole && !request.closes {
            conn.done = self.exchange.done;
            self.keep(conn);
        }
    }

    #[inline]
    fn take_exchange(&mut self) -> Exchange {
        std::mem::replace(&mut self.exchange, Exchange::unfinished(0))
    }

    /// Notes that the arrival under way has ended without an answer.
    fn give_up(&mut self, end: End) {
        self.exchange.done = self.shop.dialer.clock.now();
        if self.exchange.bytes_out == 0 {
            self.exchange.write = self.exchange.done;
        }
        self.exchange.end = end;
    }
}

impl<C: Clock> Work for HttpWork<C> {
    async fn fire(&mut self, arrival: Arrival, now: Nanos) -> Exchange {
        let shop = Rc::clone(&self.shop);
        let _busy = shop.pool.enter();
        let wire = &shop.dialer.wire;
        self.fired = true;
        let ended = match &wire.settings.feed {
            None => {
                let request = wire.request(arrival.number);
                self.exchange = Exchange { label: request.label, ..Exchange::unfinished(now) };
                self.run(&shop, request, now).await.map(Some)
            }
            Some(feed) => {
                self.exchange = Exchange::unfinished(now);
                Box::pin(self.run_fed(&shop, feed.as_ref(), arrival.number)).await
            }
        };
        match ended {
            Ok(Some(response)) => {
                let Response { status, body_bytes, .. } = response;
                self.exchange.end = End::Answered(Answer { status, body_bytes });
            }
            Ok(None) => self.give_up(End::NothingToSend),
            Err(fault) => self.give_up(End::Fault(fault)),
        }
        self.fired = false;
        self.take_exchange()
    }

    fn abandon(&mut self) -> Exchange {
        // A future that was never polled has not even begun.
        if !std::mem::take(&mut self.fired) {
            return Exchange::unfinished(self.shop.dialer.clock.now());
        }
        self.give_up(End::Unfinished);
        self.take_exchange()
    }
}
