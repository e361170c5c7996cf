//! The factory of one worker's works.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Clock;
use gake_core::record::Tally;
use gake_core::schedule::Slice;
use gake_core::work::{Factory, Gauges};

use crate::client::Client;
use crate::load::idle;
use crate::load::prepared_requests::PreparedRequests;
use crate::load::trace::{Tracer, WorkerTracer};
use crate::load::work::{HttpWork, WorkerLoad};
use crate::tls::handshakes;

/// One worker's slice of a load.
#[derive(Debug)]
pub struct HttpFactory<C> {
    load: Rc<WorkerLoad>,
    client: Client<C>,
    /// Clients shared by several users of a closed loop.
    groups: Vec<Client<C>>,
    slice: Slice,
}

impl<C: Clock + Clone + 'static> HttpFactory<C> {
    /// The factory of the worker that has `slice` of the run.
    #[must_use]
    pub fn new(wire: Arc<PreparedRequests>, slice: Slice, clock: C) -> Self {
        let client = Client::new(Arc::clone(&wire.network), slice, clock);
        let keep = Cell::new(wire.network.settings.keep.map_or(0, |keep| keep.responses));
        let settings = &wire.network.settings;
        let are_shared =
            !settings.pooled && settings.protocol.may_be_multiplexed() && settings.streams > 1;
        let connections = if are_shared { slice.count(settings.connections).max(1) } else { 0 };
        let groups = (0..connections).map(|_| client.with_one_connection()).collect();
        let load = WorkerLoad { wire, keep, stream: Cell::new(None), tracer: None };
        Self { load: Rc::new(load), client, groups, slice }
    }

    /// Samples the requests of its works by `tracer`, except those made during the run.
    #[must_use]
    pub fn traced(mut self, tracer: Option<Arc<Tracer>>) -> Self {
        if let Some(load) = Rc::get_mut(&mut self.load) {
            load.tracer = tracer.map(|tracer| WorkerTracer::new(tracer, self.slice));
        }
        self
    }
}

impl<C: Clock + Clone + 'static> Factory for HttpFactory<C> {
    type Work = HttpWork<C>;

    fn work(&self, lane: usize) -> HttpWork<C> {
        let is_pooled = self.load.wire.network.settings.pooled;
        let client = match (is_pooled, self.groups.len()) {
            (true, _) => self.client.clone(),
            (false, 0) => self.client.with_own_connections(),
            (false, groups) => self.groups[lane % groups].clone(),
        };
        HttpWork::new(Rc::clone(&self.load), client)
    }

    fn begin(&self) {
        idle::hold(self.client.shared(), self.slice);
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        let handshakes = self.client.shared().meter.take_handshakes();
        for (handshake, count) in handshakes {
            handshakes::add(tally, &handshake, count);
        }
        self.client.shared().meter.addresses.borrow_mut().move_to(&mut tally.series);
        self.client.observe(&mut tally.counts)
    }

    fn finish(&self) {
        self.client.shared().meter.idle_over();
    }
}
