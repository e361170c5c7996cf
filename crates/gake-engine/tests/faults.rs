//! Memory for the first seconds is mapped before the epoch: page faults would delay arrivals.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Clock, Nanos, SECOND};
use gake_core::plan::{Plan, Stage};
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, RunEnd, Tally};
use gake_core::schedule::Process;
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, Timer, WorkerBody, WorkerContext, start};

const LABELS: u64 = 4;

/// Page faults are counted for this time from the epoch on.
const LOOKED: Nanos = 3 * SECOND;

/// Parts of this time, to show when the faults were.
const PARTS: usize = 12;

/// Tolerated faults: a few pages of the stack and the allocator.
const FAULTS_MAX: u64 = 8;

/// The thread's minor page faults, read without allocating.
struct Faults {
    stat: File,
    before: Cell<u64>,
    /// By interval.
    seen: RefCell<[u64; PARTS]>,
    reported: Arc<Mutex<Vec<u64>>>,
}

impl Faults {
    fn new(reported: Arc<Mutex<Vec<u64>>>) -> Self {
        let stat = File::open("/proc/thread-self/stat").unwrap();
        let (before, seen) = (Cell::new(0), RefCell::new([0; PARTS]));
        Self { stat, before, seen, reported }
    }

    fn now(&self) -> u64 {
        let mut text = [0; 512];
        let length = self.stat.read_at(&mut text, 0).unwrap();
        let text = std::str::from_utf8(&text[..length]).unwrap();
        // The eighth field after the thread's name, which is in parentheses and may have blanks.
        text.rsplit(')').next().unwrap().split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    fn begin(&self) {
        // The first reading maps memory for the next ones.
        self.now();
        self.before.set(self.now());
    }

    fn look(&self, now: Nanos) {
        let part = (now * PARTS as u64 / LOOKED) as usize;
        if let Some(seen) = self.seen.borrow_mut().get_mut(part) {
            *seen = self.now() - self.before.get();
        }
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        self.reported.lock().unwrap().extend(*self.seen.borrow());
    }
}

/// Responses after varying times, one in ten not ok, with four labels.
struct Varied {
    timer: Timer,
    clock: RunClock,
    faults: Rc<Faults>,
    is_open: bool,
}

impl Work for Varied {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let (number, now) = (iteration.arrival.number, iteration.fired);
        self.faults.look(now);
        // From 20 us to 20 ms.
        self.timer.sleep_until(now + 20_000 * (1 << (number % 11))).await;
        let done = self.clock.now();
        let status = if number.is_multiple_of(10) { 500 } else { 200 };
        let end = ExchangeEnd::Response(ResponseSummary { status, body_bytes: 0 });
        let connect = (!std::mem::replace(&mut self.is_open, true)).then_some(40_000);
        let blocked = if number.is_multiple_of(7) { 1_000 << (number % 13) } else { 0 };
        let label = (number % LABELS) as u16;
        let first_byte = Some(done.saturating_sub(1_000 + number));
        let exchange =
            Exchange { write: now, written: true, first_byte, end, ..Exchange::unfinished(done) };
        iteration.exchange(Exchange { label, blocked, connect, ..exchange });
        Ok(IterationEnd::finished(done))
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let now = self.clock.now();
        iteration.exchange(Exchange::unfinished(now));
        IterationEnd::interrupted(now)
    }
}

struct Factories {
    timer: Timer,
    clock: RunClock,
    faults: Rc<Faults>,
}

impl Factory for Factories {
    type Work = Varied;

    fn work(&self, _: usize) -> Varied {
        let (timer, clock) = (self.timer.clone(), self.clock.clone());
        Varied { timer, clock, faults: Rc::clone(&self.faults), is_open: false }
    }

    fn begin(&self) {
        self.faults.begin();
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

#[test]
fn the_first_seconds_touch_no_fresh_memory() {
    let stages = vec![Stage::step(1_000.0, Duration::from_millis(3_200))];
    let load = Load::Open { stages, process: Process::Uniform };
    let labels = (0..LABELS).map(|label| format!("endpoint {label}")).collect();
    let plan = Arc::new(Plan { max_in_flight: 64, labels, ..Plan::new("", load) });
    let reported = Arc::new(Mutex::new(Vec::new()));
    let reporter = Arc::clone(&reported);
    let make = move |context: WorkerContext| Factories {
        timer: Timer::new(context.clock.clone()).unwrap(),
        clock: context.clock,
        faults: Rc::new(Faults::new(Arc::clone(&reporter))),
    };
    let running = start(&plan, 1, None, WorkerBody::new(make)).unwrap();
    let mut collector = Collector::new(&plan, 1, 1);
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |worker, tally| {
            let _ = running.spares[worker].send(tally);
        });
        while let Some(second) = collector.next_second() {
            collector.retire(second);
        }
    }
    running.join();
    let run = collector.finish(0, RunEnd::Done, 1);
    assert_eq!(run.tally.counts.started, 3_200);
    let seen = reported.lock().unwrap().clone();
    let last = seen.last().copied().unwrap();
    assert!(last <= FAULTS_MAX, "{last} page faults, up to each quarter of a second: {seen:?}");
}
