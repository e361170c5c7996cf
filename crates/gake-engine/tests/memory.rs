//! Memory of the loop for a user, counted at the allocator. One test: the count is of the process.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::sync::Arc;
use std::time::{Duration, Instant};

use gake_core::Load;
use gake_core::clock::Clock;
use gake_core::plan::Plan;
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, RunEnd, Tally};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, Stop, WorkerBody, WorkerContext, start};
use gake_testkit::{Counting, live_bytes};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Users of the run.
const USERS: usize = 100_000;

/// Maximum bytes of a user: its task, timer entry and waker.
const BYTES_EACH: usize = 1_024;

/// Responds immediately, without a socket.
struct Instantly(RunClock);

impl Work for Instantly {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let done = self.0.now();
        let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 });
        iteration.exchange(Exchange { end, written: true, ..Exchange::unfinished(done) });
        Ok(IterationEnd::finished(done))
    }

    fn abandon(&mut self, _: &Iteration<'_>) -> IterationEnd {
        IterationEnd::interrupted(self.0.now())
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

#[test]
fn a_hundred_thousand_users_who_think_take_a_kilobyte_each() {
    let load = Load::Closed { users: USERS, think: Duration::from_secs(600) };
    let plan = Arc::new(Plan { threads: 2, ..Plan::new("users", load) });
    let before = live_bytes();
    let make = |context: WorkerContext| Instants(context.clock);
    let running = start(&plan, 1, None, WorkerBody::new(make)).unwrap();
    let mut collector = Collector::new(&plan, 1, running.spares.len());
    let begun = Instant::now();
    let mut each = 0;
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |_, _| {});
        while collector.next_second().is_some() {}
        let all_think = collector.tally().counts.ok == USERS as u64;
        if all_think && running.stop.asked() == Stop::Go {
            each = live_bytes().saturating_sub(before) / USERS;
            running.stop.stop(Stop::Drain);
        }
        assert!(begun.elapsed() < Duration::from_secs(100), "not every user came");
    }
    running.join();
    let run = collector.finish(0, RunEnd::Interrupted, 1);
    assert_eq!(run.tally.counts.ok, USERS as u64);
    assert!(each > 0 && each <= BYTES_EACH, "{each} bytes a user");
    println!("{each} bytes a user");
}
