//! The memory of a run is its peak. One test: it is the memory of the process.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gake_core::Load;
use gake_core::clock::Clock;
use gake_core::plan::Plan;
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, Tally};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, Stop, WorkerBody, WorkerContext, start};

/// Bytes allocated by the first iteration: more than the allocator keeps when they are freed.
const TAKEN: usize = 128 << 20;

/// Whether to free the memory.
static IS_OVER: AtomicBool = AtomicBool::new(false);

struct Taking {
    clock: RunClock,
    taken: Option<Vec<u8>>,
}

impl Work for Taking {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        if IS_OVER.load(Relaxed) {
            self.taken = None;
        } else {
            // Not zeros, which take no pages.
            self.taken.get_or_insert_with(|| vec![1; TAKEN]);
        }
        let done = self.clock.now();
        let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 });
        iteration.exchange(Exchange { end, written: true, ..Exchange::unfinished(done) });
        Ok(IterationEnd::finished(done))
    }

    fn abandon(&mut self, _: &Iteration<'_>) -> IterationEnd {
        IterationEnd::interrupted(self.clock.now())
    }
}

struct Takers(RunClock);

impl Factory for Takers {
    type Work = Taking;

    fn work(&self, _: usize) -> Taking {
        Taking { clock: self.0.clone(), taken: None }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

/// Current resident memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn what_is_given_back_before_the_end_is_in_the_highest() {
    let before = resident();
    let load = Load::Closed { users: 1, think: Duration::from_millis(5) };
    let plan = Arc::new(Plan::new("memory", load));
    let running =
        start(&plan, 1, None, WorkerBody::new(|context: WorkerContext| Takers(context.clock)))
            .unwrap();
    let mut collector = Collector::new(&plan, 1, running.spares.len());
    let (begun, mut freed) = (Instant::now(), 0);
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |_, _| {});
        while let Some(second) = collector.next_second() {
            if second.tally.counts.ok == 0 {
                continue;
            }
            // Ends the run a full second after the memory was freed.
            freed += u64::from(IS_OVER.swap(true, Relaxed));
            if freed == 2 && running.stop.asked() == Stop::Go {
                running.stop.stop(Stop::Drain);
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(100), "the run does not end");
    }
    let (left, highest) = (resident(), running.memory.highest());
    running.join();
    let taken = TAKEN as u64;
    assert!(highest >= before + taken, "{highest} bytes, {before} before");
    assert!(left < before + taken / 2, "{left} bytes left, {before} before");
}
