//! The client: concurrent requests over pooled connections.

pub(crate) mod address_load;
pub(crate) mod byte_stream;
pub(crate) mod call;
pub(crate) mod dial;
#[cfg(feature = "http3")]
pub(crate) mod dial_quic;
#[cfg(not(feature = "http3"))]
pub(crate) mod dial_without_quic;
pub(crate) mod early;
pub(crate) mod encode;
pub(crate) mod error;
pub(crate) mod grpc;
pub(crate) mod keep_visitor;
pub(crate) mod lookups;
pub(crate) mod meter;
pub(crate) mod network;
pub(crate) mod origin;
pub(crate) mod pool;
pub(crate) mod redirect;
pub(crate) mod request;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod shared;
pub(crate) mod transport;
pub(crate) mod visitor;

use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::{Clock, Nanos};
use gake_core::record::{CapturedResponse, Counts, Exchange, ExchangeEnd, Fault};
use gake_core::schedule::Slice;
use gake_core::work::Gauges;

use self::call::Call;
use self::keep_visitor::KeepVisitor;
use self::network::Network;
use self::pool::{ConnectionPool, PoolBounds, PooledConnection};
use self::request::{HttpRequest, PreparedRequest};
use self::shared::Shared;
use self::transport::AnyTransport;
use crate::client::visitor::ExchangeVisitor;
use crate::net::deadline::Deadline;

/// Idle connections that a user keeps in addition to one per origin known before the run.
const OWN_IDLE_EXTRA: usize = 4;

/// A client of one thread. Clones share its connections.
///
/// Its futures run on a local runtime of that thread.
#[derive(Debug)]
pub struct Client<C> {
    shared: Rc<Shared<C>>,
    pool: Rc<ConnectionPool<AnyTransport>>,
}

impl<C> Clone for Client<C> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared), pool: Rc::clone(&self.pool) }
    }
}

impl<C: Clock + Clone + 'static> Client<C> {
    /// The client of a thread that has `slice` of the network's connections.
    #[must_use]
    pub fn new(network: Arc<Network>, slice: Slice, clock: C) -> Self {
        let settings = &network.settings;
        let bounds = PoolBounds {
            open: slice.count(settings.connections).max(1),
            idle: usize::MAX,
            idle_per_origin: settings.max_idle.map_or(usize::MAX, |max| slice.count_up(max)),
        };
        let streams = if network.expects_multiplexing() { settings.streams } else { 1 };
        let shared = Rc::new(Shared::new(network, clock, slice.number(0)));
        Self { shared, pool: Rc::new(ConnectionPool::new(bounds, streams)) }
    }

    /// A client of one user with connections of its own: as many as its requests need, of which it
    /// keeps about one per origin. It shares the counters of this client.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let idle = self.shared.network.origins.len() + OWN_IDLE_EXTRA;
        let bounds = PoolBounds { open: usize::MAX, idle, idle_per_origin: usize::MAX };
        Self { shared: Rc::clone(&self.shared), pool: Rc::new(self.pool.with_same_queue(bounds)) }
    }

    /// A client with one connection per origin, for users who share it. It shares the counters of
    /// this client.
    #[must_use]
    pub fn with_one_connection(&self) -> Self {
        let origins = self.shared.network.origins.len().max(1);
        let bounds = PoolBounds { open: origins, idle: usize::MAX, idle_per_origin: usize::MAX };
        let streams = self.shared.network.settings.streams;
        Self {
            shared: Rc::clone(&self.shared),
            pool: Rc::new(ConnectionPool::new(bounds, streams)),
        }
    }

    /// The network of the client.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.shared.network
    }

    /// The client's clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.shared.clock
    }

    /// Prepares a request during the run; its origin may be new. The query is sent as the URL has it.
    ///
    /// # Errors
    /// See [`Network::make`].
    pub async fn prepare(&self, request: &HttpRequest) -> Result<PreparedRequest, Fault> {
        self.shared.network.make_as_written(request).await
    }

    /// Sends a request, follows its redirects, and returns the head and the first `keep` bytes of the
    /// body of its response.
    pub async fn send(
        &self,
        request: &PreparedRequest,
        deadline: Deadline,
        keep: usize,
    ) -> (Exchange, CapturedResponse) {
        let mut visitor = KeepVisitor::new(Some(keep));
        let exchange = self.send_to(request, deadline, &mut visitor).await;
        (exchange, visitor.take().map_or_else(CapturedResponse::default, |kept| *kept))
    }

    /// Sends a request, follows its redirects, and shows the last response to `visitor` as it
    /// comes; the visitor `()` discards it.
    pub async fn send_to<V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        deadline: Deadline,
        visitor: &mut V,
    ) -> Exchange {
        let now = self.shared.clock.now();
        let mut exchange = Exchange::unfinished(now);
        self.exchange(request, now, deadline, visitor, &mut exchange).await;
        exchange
    }

    /// As [`send_to`](Self::send_to) at `now`, an instant just read. Updates `exchange` (a new
    /// [`Exchange::unfinished`]) as events happen, so that they survive a drop of the future.
    pub async fn exchange<V: ExchangeVisitor>(
        &self,
        request: &PreparedRequest,
        now: Nanos,
        deadline: Deadline,
        visitor: &mut V,
        exchange: &mut Exchange,
    ) {
        let Self { shared, pool } = self;
        shared.alarms.watch(&shared.clock);
        let alarm = shared.alarms.set(deadline.end, deadline.shortest(now));
        let (alarm, deadline) = (&alarm, &deadline);
        let mut call = Call { shared, pool, alarm, deadline, exchange, visitor };
        let answer = match call.hop(request, now).await {
            Ok((answer, None)) => Ok(answer),
            Ok((answer, Some(to))) => Box::pin(call.follow(request, answer, to)).await,
            Err(fault) => Err(fault),
        };
        match answer {
            Ok(answer) => exchange.end = ExchangeEnd::Response(answer),
            Err(fault) => self.end(exchange, ExchangeEnd::Fault(fault)),
        }
    }

    /// Opens a connection for `request`, unless one with a free slot is open.
    ///
    /// # Errors
    /// The fault in connecting.
    pub async fn connect(
        &self,
        request: &PreparedRequest,
        deadline: Deadline,
    ) -> Result<(), Fault> {
        let Self { shared, pool } = self;
        shared.alarms.watch(&shared.clock);
        let now = shared.clock.now();
        let alarm = shared.alarms.set(deadline.end, deadline.shortest(now));
        let (alarm, deadline) = (&alarm, &deadline);
        let (mut exchange, visitor) = (Exchange::unfinished(now), &mut ());
        let exchange = &mut exchange;
        let mut call = Call { shared, pool, alarm, deadline, exchange, visitor };
        call.connect(request.origin, now).await
    }

    /// Records that a request has ended now without a response.
    pub fn end(&self, exchange: &mut Exchange, end: ExchangeEnd) {
        exchange.done = self.shared.clock.now();
        if exchange.bytes_out == 0 {
            exchange.write = exchange.done;
        }
        exchange.end = end;
    }

    /// Moves the counts outside single exchanges since the last call to `counts`, and returns the
    /// gauges.
    pub fn observe(&self, counts: &mut Counts) -> Gauges {
        self.shared.meter.take(counts)
    }

    /// The idle connection to an origin that a request would take.
    pub(crate) fn idle(&self, origin: u32) -> Option<Rc<PooledConnection<AnyTransport>>> {
        self.pool.idle(origin)
    }

    pub(crate) fn shared(&self) -> &Rc<Shared<C>> {
        &self.shared
    }
}
