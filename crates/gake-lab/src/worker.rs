//! What the tasks of one worker thread share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::routes::Route;
use crate::shared::Shared;
use crate::stats::WorkerCounters;
use crate::timer::Timer;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) timer: Arc<Timer>,
    /// The HTTP settings of every connection.
    pub(crate) http: hyper::server::conn::http1::Builder,
    pub(crate) index: usize,
}

impl Worker {
    /// This thread's counters; only its own tasks may write them.
    pub(crate) fn counters(&self) -> &WorkerCounters {
        &self.shared.counters[self.index]
    }

    /// Records an ordinary request whose head has just been read.
    pub(crate) fn begin(&self, route: Route) {
        self.shared.arrivals.record(self.index);
        self.counters().request(route);
        if self.shared.stall_armed.load(Relaxed) && self.shared.stall_armed.swap(false, Relaxed) {
            self.plan_stall();
        }
    }

    fn plan_stall(&self) {
        let Some(stall) = self.shared.config.stall else { return };
        let (timer, shared) = (Arc::clone(&self.timer), Arc::clone(&self.shared));
        let mut due = Instant::now() + stall.after;
        tokio::spawn(async move {
            loop {
                timer.sleep_until(due).await;
                shared.pause(Instant::now() + stall.length);
                let Some(every) = shared.config.stall_every else { return };
                // On a fixed grid, so that stalls do not drift.
                due += every;
            }
        });
    }
}
