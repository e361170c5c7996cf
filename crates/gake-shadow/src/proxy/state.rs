//! The state shared by all threads of a proxy: settings, and counters per thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::collect::ExchangeFeed;
use crate::config::Config;
use crate::hooks::{ChangeScope, HookRunner};
use crate::mirror::backend::ShadowBackend;
use crate::proxy::client::request::RequestRules;
use crate::proxy::policy::inbound::InboundFilter;
use crate::proxy::policy::loop_detector::LoopDetector;
use crate::proxy::upstream::target::BackendTarget;

#[derive(Debug)]
pub(crate) struct ProxyState {
    pub(crate) config: Config,
    pub(crate) master: Arc<BackendTarget>,
    pub(crate) shadows: Vec<ShadowBackend>,
    pub(crate) feed: Arc<ExchangeFeed>,
    pub(crate) inbound: InboundFilter,
    pub(crate) loops: LoopDetector,
    pub(crate) hooks: Option<Arc<HookRunner>>,
    pub(crate) counters: Vec<Counters>,
    pub(crate) started: Instant,
    /// The kill switch for all shadows.
    pub(crate) killed: AtomicBool,
    drain_ends: Mutex<Option<Instant>>,
}

/// One worker's counters, on their own cache lines; see [`ProxyStats`].
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) open: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) responses: [AtomicU64; 6],
    pub(crate) refused: AtomicU64,
    pub(crate) malformed: AtomicU64,
    pub(crate) client_timeouts: AtomicU64,
    pub(crate) master_faults: AtomicU64,
    pub(crate) broken_responses: AtomicU64,
    pub(crate) stale_reconnects: AtomicU64,
    pub(crate) upgrades: AtomicU64,
    pub(crate) accept_errors: AtomicU64,
    pub(crate) odd_names: AtomicU64,
}

/// The counts of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProxyStats {
    /// Accepted client connections.
    pub connections: u64,
    /// Client connections now open.
    pub open: u64,
    /// Requests with a complete head.
    pub requests: u64,
    /// Responses of the master by the first digit of the status.
    pub responses: [u64; 6],
    /// Requests refused by the proxy itself, with 4xx or 501.
    pub refused: u64,
    /// Connections closed because of input that is not HTTP.
    pub malformed: u64,
    /// Clients that were too slow to send a body or read a response.
    pub client_timeouts: u64,
    /// Requests without a response from the master: 502 and 504.
    pub master_faults: u64,
    /// Responses of the master that ended early.
    pub broken_responses: u64,
    /// Requests repeated because an idle connection to the master was closed.
    pub stale_reconnects: u64,
    /// Requests that switched protocols.
    pub upgrades: u64,
    /// Failed accepts.
    pub accept_errors: u64,
    /// Header names dropped because servers could confuse their characters with `-`.
    pub odd_names: u64,
}

impl ProxyState {
    pub(crate) fn new(
        config: Config,
        master: Arc<BackendTarget>,
        shadows: Vec<ShadowBackend>,
        feed: Arc<ExchangeFeed>,
        hooks: Option<Arc<HookRunner>>,
        workers: usize,
    ) -> Self {
        Self {
            inbound: InboundFilter::new(&config),
            loops: LoopDetector::new(),
            config,
            master,
            shadows,
            feed,
            hooks,
            counters: (0..workers).map(|_| Counters::default()).collect(),
            started: Instant::now(),
            killed: AtomicBool::new(false),
            drain_ends: Mutex::new(None),
        }
    }

    pub(crate) fn rules(&self) -> RequestRules<'_> {
        let Self { inbound, loops, config, .. } = self;
        let head_bytes = config.limits.head_bytes;
        RequestRules { inbound, loops, forwarded: config.forwarded, head_bytes }
    }

    /// Whether HTTP/1.1 requests pass as bytes: the master speaks HTTP/1.1, and no hook selects
    /// backends or changes the master's requests.
    pub(crate) fn passes_bytes(&self) -> bool {
        let changes = |hooks: &Arc<HookRunner>| {
            hooks.selects() || hooks.munges(&self.master.backend.name) != ChangeScope::No
        };
        !self.master.backend.http2 && !self.hooks.as_ref().is_some_and(changes)
    }

    pub(crate) fn workers(&self) -> usize {
        self.counters.len()
    }

    /// The end of the drain; `None` before it.
    pub(crate) fn drain_ends(&self) -> Option<Instant> {
        *self.drain_ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_drain_ends(&self, end: Instant) {
        *self.drain_ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }

    pub(crate) fn stats(&self) -> ProxyStats {
        let mut stats = ProxyStats::default();
        for worker in &self.counters {
            for (sum, count) in [
                (&mut stats.connections, &worker.connections),
                (&mut stats.open, &worker.open),
                (&mut stats.requests, &worker.requests),
                (&mut stats.refused, &worker.refused),
                (&mut stats.malformed, &worker.malformed),
                (&mut stats.client_timeouts, &worker.client_timeouts),
                (&mut stats.master_faults, &worker.master_faults),
                (&mut stats.broken_responses, &worker.broken_responses),
                (&mut stats.stale_reconnects, &worker.stale_reconnects),
                (&mut stats.upgrades, &worker.upgrades),
                (&mut stats.accept_errors, &worker.accept_errors),
                (&mut stats.odd_names, &worker.odd_names),
            ] {
                *sum += count.load(Relaxed);
            }
            for (sum, count) in stats.responses.iter_mut().zip(&worker.responses) {
                *sum += count.load(Relaxed);
            }
        }
        stats
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
