//! The thread for shadows beside a worker: its copies wait here for a free lane.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Job, lane};
use crate::proxy::link::Scratch;
use crate::proxy::shared::Shared;
use crate::proxy::shared_streams::SharedStreams;
use crate::proxy::watch::Ticker;

/// How often the end is looked for while the last copies are under way.
const LOOK: Duration = Duration::from_millis(10);

/// One shadow on one thread.
pub(super) struct Station {
    pub(super) shared: Arc<Shared>,
    pub(super) shadow: usize,
    pub(super) ticker: Rc<Ticker>,
    pub(super) scratch: Rc<Scratch>,
    /// Connections to a shadow that speaks HTTP/2.
    pub(super) streams: SharedStreams,
    waiting: RefCell<VecDeque<Job>>,
    work: Notify,
    lanes: Cell<usize>,
    idle: Cell<usize>,
    lanes_max: usize,
}

impl Station {
    /// The next copy, as soon as there is one.
    pub(super) async fn next(&self) -> Job {
        loop {
            if let Some(job) = self.waiting.borrow_mut().pop_front() {
                return job;
            }
            self.idle.set(self.idle.get() + 1);
            self.work.notified().await;
            self.idle.set(self.idle.get() - 1);
        }
    }

    fn push(self: &Rc<Self>, job: Job) {
        self.waiting.borrow_mut().push_back(job);
        let waiting = self.waiting.borrow().len();
        if waiting > self.idle.get() && self.lanes.get() < self.lanes_max {
            self.lanes.set(self.lanes.get() + 1);
            tokio::task::spawn_local(lane::run(Rc::clone(self)));
        } else {
            // The one that was used last: the others' connections may grow cold and close.
            self.work.notify_last();
        }
    }

    fn is_done(&self) -> bool {
        self.waiting.borrow().is_empty() && self.idle.get() == self.lanes.get()
    }
}

/// Sends what comes until no more can come, and then until it is sent or `shared` says to stop.
pub(crate) async fn run(shared: Arc<Shared>, mut jobs: UnboundedReceiver<Vec<Job>>) {
    stand_back(shared.config.shadow_nice);
    let shortest = shared.shadows.iter().map(|backend| backend.config.timeout).min();
    let ticker = Ticker::new(shortest.unwrap_or(Duration::from_secs(1)));
    tokio::task::spawn_local(Rc::clone(&ticker).run());
    let scratch = Rc::new(Scratch::new());
    let station = |shadow: usize| {
        let connections = shared.shadows[shadow].config.connections;
        Rc::new(Station {
            shared: Arc::clone(&shared),
            shadow,
            ticker: Rc::clone(&ticker),
            scratch: Rc::clone(&scratch),
            streams: SharedStreams::new(ticker.ticks(shared.config.timeouts.idle)),
            waiting: RefCell::default(),
            work: Notify::new(),
            lanes: Cell::new(0),
            idle: Cell::new(0),
            lanes_max: connections.div_ceil(shared.workers()),
        })
    };
    let stations: Vec<_> = (0..shared.shadows.len()).map(station).collect();
    while let Some(batch) = jobs.recv().await {
        for job in batch {
            stations[job.ticket.shadow].push(job);
        }
    }
    while !stations.iter().all(|station| station.is_done())
        && shared.drain_ends().is_some_and(|end| Instant::now() < end)
    {
        tokio::time::sleep(LOOK).await;
    }
}

/// Lets the clients' path go first on a busy machine. Standing lower is always allowed, and Linux
/// counts both for this thread alone.
#[allow(unsafe_code, reason = "no safe wrapper has this call")]
fn stand_back(nice: u8) {
    if nice > 0 {
        let _ = rustix::process::nice(i32::from(nice));
    }
    // The kernel's `struct sched_param`. By the system call itself: musl's function refuses.
    let priority: libc::c_int = 0;
    let (call, class) = (libc::SYS_sched_setscheduler, libc::SCHED_BATCH);
    // A batch thread interrupts nobody when it is woken.
    // SAFETY: the call reads `priority` and keeps nothing; 0 is the calling thread.
    let _ = unsafe { libc::syscall(call, 0, class, &raw const priority) };
}
