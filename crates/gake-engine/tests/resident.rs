//! Memory does not grow with the number of requests. One test: it is the memory of the process.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::Clock;
use gake_core::plan::Plan;
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, RunEnd, Tally};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, WorkerBody, WorkerContext, start};

/// Requests of the shorter run.
const REQUESTS: u64 = 1_000_000;

/// Tolerated growth of the longer run.
const MORE_BYTES: u64 = 1 << 20;

/// Users who take turns on one thread.
const USERS: usize = 50;

/// Responds immediately, without a socket.
struct Instantly(RunClock);

impl Work for Instantly {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        tokio::task::yield_now().await;
        let done = self.0.now();
        let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 12 });
        let first_byte = Some(done);
        iteration.exchange(Exchange {
            end,
            first_byte,
            written: true,
            ..Exchange::unfinished(done)
        });
        Ok(IterationEnd::finished(done))
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let now = self.0.now();
        iteration.exchange(Exchange::unfinished(now));
        IterationEnd::interrupted(now)
    }
}

struct Instants(RunClock);

impl Factory for Instants {
    type Work = Instantly;

    fn work(&self, _: usize) -> Instantly {
        Instantly(self.0.clone())
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

/// The resident memory at the end of a run of `requests`, before its result is dropped.
fn resident_after(requests: u64) -> u64 {
    let load = Load::Closed { users: USERS, think: Duration::ZERO };
    let plan = Arc::new(Plan { requests: Some(requests), threads: 1, ..Plan::new("", load) });
    let make = |context: WorkerContext| Instants(context.clock);
    let running = start(&plan, 1, None, WorkerBody::new(make)).unwrap();
    let mut collector = Collector::new(&plan, 1, running.spares.len());
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |worker, tally| {
            let _ = running.spares[worker].send(tally);
        });
        while collector.next_second().is_some() {}
    }
    running.join();
    let run = collector.finish(0, RunEnd::Done, 1);
    assert_eq!(run.tally.counts.ok, requests);
    let resident = resident();
    drop(run);
    resident
}

/// Current resident memory.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn ten_million_requests_take_the_memory_of_one_million() {
    let one = resident_after(REQUESTS);
    let ten = resident_after(10 * REQUESTS);
    println!("{one} bytes after one million, {ten} after ten");
    assert!(ten <= one + MORE_BYTES, "{ten} bytes after ten million, {one} after one");
}
