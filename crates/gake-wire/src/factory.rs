//! One worker's share of the wire.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use gake_core::clock::Clock;
use gake_core::record::Tally;
use gake_core::work::{Factory, Gauges};

use crate::conn::Scratch;
use crate::connect::Dialer;
use crate::deadline::Deadlines;
use crate::idle;
use crate::meter::Meter;
use crate::pool::Pool;
use crate::wire::Wire;
use crate::work::HttpWork;

/// What the lanes of one worker share.
#[derive(Debug)]
pub(crate) struct Shop<C> {
    pub(crate) dialer: Rc<Dialer<C>>,
    pub(crate) scratch: Scratch,
    pub(crate) pool: Pool,
    /// Answers still to be kept.
    keep: Cell<u64>,
}

impl<C> Shop<C> {
    /// How many bytes of the next answer's body to keep, when it is to be kept.
    #[inline]
    pub(crate) fn keep(&self) -> Option<usize> {
        let left = self.keep.get().checked_sub(1)?;
        self.keep.set(left);
        self.dialer.wire.settings.keep.map(|keep| keep.body_bytes)
    }
}

/// Makes the works of one worker.
#[derive(Debug)]
pub struct HttpFactory<C> {
    shop: Rc<Shop<C>>,
    deadlines: Rc<Deadlines>,
    meter: Rc<Meter>,
    worker: usize,
    workers: usize,
}

impl<C: Clock + Clone + 'static> HttpFactory<C> {
    /// The factory of worker `worker` of `workers`.
    #[must_use]
    pub fn new(wire: Arc<Wire>, worker: usize, workers: usize, clock: C) -> Self {
        let meter = Rc::new(Meter::default());
        // The exact share, as the engine has it: the first workers take what is left over.
        let connections = wire.settings.connections;
        let bound = connections / workers + usize::from(worker < connections % workers);
        let max_idle = wire.settings.max_idle.map_or(usize::MAX, |max| max.div_ceil(workers));
        let pool = Pool::new(bound.max(1), max_idle);
        let keep = Cell::new(wire.settings.keep.map_or(0, |keep| keep.answers));
        let dialer = Rc::new(Dialer::new(wire, clock, Rc::clone(&meter), worker));
        Self {
            shop: Rc::new(Shop { dialer, scratch: Scratch::new(), pool, keep }),
            deadlines: Rc::default(),
            meter,
            worker,
            workers,
        }
    }
}

impl<C: Clock + Clone + 'static> Factory for HttpFactory<C> {
    type Work = HttpWork<C>;

    fn begin(&self) {
        let dialer = &self.shop.dialer;
        let timeouts = dialer.wire.settings.timeouts;
        let shortest =
            timeouts.connect.min(timeouts.total).min(timeouts.first_byte.unwrap_or(timeouts.total));
        self.deadlines.watch(dialer.clock.clone(), shortest);
        idle::hold(&self.shop, &self.deadlines, self.worker, self.workers);
    }

    fn work(&self, _lane: usize) -> HttpWork<C> {
        HttpWork::new(Rc::clone(&self.shop), self.deadlines.add())
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        self.meter.take(&mut tally.counts)
    }

    fn finish(&self) {
        self.meter.idle_over();
    }
}
