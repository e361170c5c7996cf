//! The state shared by the tasks of one thread: pools, buffers, clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use crate::mirror::{Mirror, gate};
use crate::proxy::client::date::DateCache;
use crate::proxy::deadline::Ticker;
use crate::proxy::state::{Counters, ProxyState};
use crate::proxy::upstream::link::Scratch;
use crate::proxy::upstream::pool::BackendPool;
use crate::proxy::upstream::target::BackendTarget;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProxyPhase {
    Running,
    /// No new clients; running requests may finish.
    Draining,
    Stopped,
}

pub(crate) struct ProxyWorker {
    pub(crate) shared: Arc<ProxyState>,
    pub(crate) index: usize,
    pub(crate) acceptor: Option<TlsAcceptor>,
    pub(crate) ticker: Rc<Ticker>,
    pub(crate) timeout_ticks: TimeoutTicks,
    pub(crate) master: Rc<BackendPool>,
    /// The shadows' pools for races; copies use other connections.
    pub(crate) contenders: Vec<Rc<BackendPool>>,
    pub(crate) mirror: Rc<Mirror>,
    pub(crate) draws: RefCell<Xoshiro256PlusPlus>,
    /// See [`ProxyState::passes_bytes`].
    pub(crate) passes_bytes: bool,
    pub(crate) scratch: Scratch,
    /// A reusable buffer for writes to clients.
    pub(crate) spare: Cell<Vec<u8>>,
    pub(crate) date: DateCache,
    phase: Cell<ProxyPhase>,
    open: Cell<usize>,
    /// Connections and requests so far.
    numbered: Cell<(u64, u64)>,
    /// Notified when a client connection closes.
    closed: Notify,
}

/// The timeouts in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeoutTicks {
    pub(crate) head: u64,
    pub(crate) client: u64,
    pub(crate) connect: u64,
    pub(crate) first_byte: u64,
    pub(crate) idle: u64,
}

impl ProxyWorker {
    pub(crate) fn new(
        shared: Arc<ProxyState>,
        index: usize,
        acceptor: Option<TlsAcceptor>,
        mirror: Mirror,
        contenders: &[Arc<BackendTarget>],
    ) -> Rc<Self> {
        let (timeouts, limits) = (shared.config.timeouts, shared.config.limits);
        let ticker = Ticker::new(timeouts.shortest());
        let timeout_ticks = TimeoutTicks {
            head: ticker.ticks(timeouts.head),
            client: ticker.ticks(timeouts.client),
            connect: ticker.ticks(timeouts.connect),
            first_byte: ticker.ticks(timeouts.first_byte),
            idle: ticker.ticks(timeouts.idle),
        };
        let pool = |target: &Arc<BackendTarget>| {
            Rc::new(BackendPool::new(Arc::clone(target), limits.idle, timeout_ticks.idle))
        };
        Rc::new(Self {
            index,
            acceptor,
            timeout_ticks,
            master: pool(&shared.master),
            contenders: contenders.iter().map(pool).collect(),
            mirror: Rc::new(mirror),
            draws: RefCell::new(gate::draws(shared.config.seed, index)),
            passes_bytes: shared.passes_bytes(),
            scratch: Scratch::new(),
            spare: Cell::default(),
            date: DateCache::new(),
            phase: Cell::new(ProxyPhase::Running),
            open: Cell::new(0),
            numbered: Cell::new((0, 0)),
            closed: Notify::new(),
            ticker,
            shared,
        })
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.shared.counters[self.index]
    }

    /// The number of a new connection.
    pub(crate) fn connection_id(&self) -> u64 {
        let (connections, requests) = self.numbered.get();
        self.numbered.set((connections + 1, requests));
        self.unique(connections)
    }

    /// The number of a new request.
    pub(crate) fn request_id(&self) -> u64 {
        let (connections, requests) = self.numbered.get();
        self.numbered.set((connections, requests + 1));
        self.unique(requests)
    }

    /// A number that no other worker has.
    fn unique(&self, number: u64) -> u64 {
        number * self.shared.workers() as u64 + self.index as u64
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.phase.get() >= ProxyPhase::Draining
    }

    pub(crate) fn is_over(&self) -> bool {
        self.phase.get() == ProxyPhase::Stopped
    }

    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }

    pub(crate) fn connection_opened(&self) {
        self.open.set(self.open.get() + 1);
    }

    pub(crate) async fn wait_for_close(&self) {
        self.closed.notified().await;
    }

    pub(crate) fn drain(&self) {
        self.phase.set(ProxyPhase::Draining);
        self.ticker.wake_all();
    }

    pub(crate) fn connection_closed(&self) {
        self.open.set(self.open.get() - 1);
        self.closed.notify_one();
    }
}
