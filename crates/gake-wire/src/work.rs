//! What one lane fires: one HTTP request.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{Answer, End, Exchange, Fault};
use gake_core::work::{Arrival, Work};

use crate::conn::{Conn, FRESH};
use crate::connect::nanos;
use crate::deadline::Deadline;
use crate::factory::Shop;
use crate::http1::Response;
use crate::meter::bump;
use crate::transact::{Failure, Terms, transact};
use crate::wire::Prepared;

/// Sends requests for one lane.
#[derive(Debug)]
pub struct HttpWork<C> {
    shop: Rc<Shop<C>>,
    deadline: Rc<Deadline>,
    /// The connections of a user of a closed loop, one an origin.
    own: Vec<Box<Conn>>,
    /// What is known of the arrival under way.
    exchange: Exchange,
}

impl<C: Clock> HttpWork<C> {
    pub(crate) fn new(shop: Rc<Shop<C>>, deadline: Rc<Deadline>) -> Self {
        Self { shop, deadline, own: Vec::new(), exchange: Exchange::unfinished(0) }
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
    fn keep(&mut self, mut conn: Box<Conn>) {
        conn.idle_since = self.exchange.done;
        if self.shop.dialer.wire.settings.pooled {
            self.shop.pool.put(conn);
        } else {
            self.own.push(conn);
        }
    }

    /// An idle connection that is still good, counting those that are not.
    async fn reuse(&mut self, origin: u32, now: Nanos) -> Option<Box<Conn>> {
        while let Some(mut conn) = self.take(origin) {
            let idle = now.saturating_sub(conn.idle_since);
            let stale = idle > FRESH
                && poll_fn(|cx| Poll::Ready(conn.is_stale(cx, &self.shop.scratch))).await;
            if !stale {
                return Some(conn);
            }
            bump(&self.shop.dialer.meter.stale_reconnects);
        }
        None
    }

    async fn open(&mut self, origin: u32, ends: Nanos) -> Result<Box<Conn>, Fault> {
        let Shop { dialer, pool, bound, .. } = &*self.shop;
        // This lane has no connection, so at most `bound` − 1 are in use.
        if pool.idle() > 0 && dialer.meter.open() as usize >= *bound {
            pool.evict();
        }
        let dialed = dialer.dial(origin, &self.deadline, ends).await;
        self.exchange.connect = dialed.conn.is_ok().then_some(dialed.connect);
        self.exchange.tls = dialed.tls;
        dialed.conn
    }

    async fn run(
        &mut self,
        shop: &Shop<C>,
        request: &Prepared,
        now: Nanos,
    ) -> Result<Response, Fault> {
        let timeouts = shop.dialer.wire.settings.timeouts;
        let ends = now.saturating_add(nanos(timeouts.total));
        self.deadline.set(ends);
        let mut reused = self.reuse(request.origin, now).await;
        loop {
            let is_reused = reused.is_some();
            let mut conn = match reused.take() {
                Some(conn) => conn,
                None => {
                    let conn = self.open(request.origin, ends).await?;
                    self.exchange.write = shop.dialer.clock.now();
                    conn
                }
            };
            let terms = Terms {
                clock: &shop.dialer.clock,
                scratch: &shop.scratch,
                deadline: &self.deadline,
                ends,
                first_byte: timeouts.first_byte.map(nanos),
            };
            let exchange = &mut self.exchange;
            match transact(&mut conn, &request.rendered, exchange, &terms, &mut ()).await {
                Ok(response) => {
                    self.finish(conn, request, &response);
                    return Ok(response);
                }
                Err(Failure::BeforeAnswer(_)) if is_reused && request.rendered.idempotent => {
                    bump(&shop.dialer.meter.stale_reconnects);
                    self.exchange.written = false;
                }
                Err(Failure::BeforeAnswer(fault) | Failure::Fault(fault)) => return Err(fault),
            }
        }
    }

    #[inline]
    fn finish(&mut self, mut conn: Box<Conn>, request: &Prepared, response: &Response) {
        self.exchange.tcp = conn.sample(self.exchange.done);
        if response.excess {
            bump(&self.shop.dialer.meter.excess);
        }
        // An answer that came before the whole request was written leaves the rest in the way.
        let whole = self.exchange.written;
        if response.reusable() && whole && !request.rendered.closes {
            self.keep(conn);
        }
    }
}

impl<C: Clock> Work for HttpWork<C> {
    async fn fire(&mut self, arrival: Arrival, now: Nanos) -> Exchange {
        let shop = Rc::clone(&self.shop);
        let request = shop.dialer.wire.request(arrival.number);
        self.exchange = Exchange { label: request.label, ..Exchange::unfinished(now) };
        let end = match self.run(&shop, request, now).await {
            Ok(response) => End::Answered(Answer { status: response.status }),
            Err(fault) => {
                self.exchange.done = self.shop.dialer.clock.now();
                if fault.is_before_connection() {
                    self.exchange.write = self.exchange.done;
                }
                End::Fault(fault)
            }
        };
        self.exchange.end = end;
        self.exchange
    }

    fn abandon(&mut self) -> Exchange {
        self.exchange.done = self.shop.dialer.clock.now();
        self.exchange.end = End::Unfinished;
        self.exchange
    }
}
