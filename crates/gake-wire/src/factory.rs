//! Makes the works of one worker.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Clock;
use gake_core::record::Tally;
use gake_core::schedule::Slice;
use gake_core::work::{Factory, Gauges};

use crate::client::Client;
use crate::idle;
use crate::wire::Wire;
use crate::work::{HttpWork, Load};

/// One worker's share of a load.
#[derive(Debug)]
pub struct HttpFactory<C> {
    load: Rc<Load>,
    client: Client<C>,
    slice: Slice,
}

impl<C: Clock + Clone + 'static> HttpFactory<C> {
    /// The factory of the worker that has `slice` of the run.
    #[must_use]
    pub fn new(wire: Arc<Wire>, slice: Slice, clock: C) -> Self {
        let client = Client::new(Arc::clone(&wire.network), slice, clock);
        let keep = Cell::new(wire.network.settings.keep.map_or(0, |keep| keep.answers));
        Self { load: Rc::new(Load { wire, keep }), client, slice }
    }
}

impl<C: Clock + Clone + 'static> Factory for HttpFactory<C> {
    type Work = HttpWork<C>;

    fn work(&self, _lane: usize) -> HttpWork<C> {
        let is_pooled = self.load.wire.network.settings.pooled;
        let client = match is_pooled {
            true => self.client.clone(),
            false => self.client.with_own_connections(),
        };
        HttpWork::new(Rc::clone(&self.load), client)
    }

    fn begin(&self) {
        idle::hold(self.client.shared(), self.slice);
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        self.client.observe(&mut tally.counts)
    }

    fn finish(&self) {
        self.client.shared().meter.idle_over();
    }
}
