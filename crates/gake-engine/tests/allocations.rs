//! Requests do not allocate. One test: allocations are counted for the whole process.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::sync::Arc;
use std::time::Duration;

use gake_core::Load;
use gake_core::clock::Clock;
use gake_core::metric::{Definition, MetricKind, MetricUnit, SeriesId, Tags};
use gake_core::plan::{Plan, Stage};
use gake_core::record::{Exchange, ExchangeEnd, Recorder, ResponseSummary, RunEnd, Tally};
use gake_core::schedule::{Process, TraceBuilder};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, Timer, WorkerBody, start};
use gake_testkit::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A request, a check and a sample an arrival.
struct Brief {
    timer: Timer,
    clock: RunClock,
    series: Option<[SeriesId; 2]>,
}

fn intern(recorder: &Recorder) -> [SeriesId; 2] {
    let unit = MetricUnit::Time;
    [("checks", MetricKind::Rate), ("waits", MetricKind::Trend)].map(|(name, kind)| {
        let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
        recorder.intern(&metric, &Tags::new([("name", "brief")]))
    })
}

impl Work for Brief {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let now = iteration.fired;
        self.timer.sleep_until(now + 50_000).await;
        let done = self.clock.now();
        let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 });
        let first_byte = Some(done);
        iteration.exchange(Exchange { write: now, first_byte, end, ..Exchange::unfinished(done) });
        let [checks, waits] = *self.series.get_or_insert_with(|| intern(iteration.recorder()));
        iteration.check(checks, true);
        iteration.sample(waits, (done - now) as f64);
        Ok(IterationEnd::finished(done))
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let now = self.clock.now();
        iteration.exchange(Exchange::unfinished(now));
        IterationEnd::interrupted(now)
    }
}

impl Factory for Brief {
    type Work = Brief;

    fn work(&self, _: usize) -> Brief {
        Brief { timer: self.timer.clone(), clock: self.clock.clone(), series: None }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

fn plan(load: Load, requests: u64) -> Arc<Plan> {
    let drain = Duration::from_secs(20);
    let plan = Plan { requests: Some(requests), max_in_flight: 8, drain, ..Plan::new("", load) };
    Arc::new(Plan { max_in_flight: 8, ..plan })
}

/// The number of allocations in a run of `requests`.
fn allocations(load: &Load, requests: u64) -> u64 {
    let before = gake_testkit::allocations();
    let plan = plan(load.clone(), requests);
    let make = |context: gake_engine::WorkerContext| Brief {
        timer: Timer::new(context.clock.clone()).unwrap(),
        clock: context.clock,
        series: None,
    };
    let running = start(&plan, 1, None, WorkerBody::new(make)).unwrap();
    let mut collector = Collector::new(&plan, 1, 1);
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |worker, tally| {
            let _ = running.spares[worker].send(tally);
        });
        while collector.next_second().is_some() {}
    }
    running.join();
    let run = collector.finish(0, RunEnd::Done, 1);
    assert_eq!(run.tally.counts.ok, requests);
    assert!(run.tally.series.series().all(|(_, value)| value.samples() == requests));
    gake_testkit::allocations() - before
}

#[test]
fn twice_the_requests_need_no_more_allocations() {
    let stages = vec![Stage::step(20_000.0, Duration::MAX)];
    let open = Load::Open { stages, process: Process::Poisson };
    let mut recorded = TraceBuilder::new(1.0);
    (0..30_000).for_each(|n| recorded.push(n * 50_000).unwrap());
    let replay = Load::Replay { speed: 1.0, trace: Some(recorded.finish(None)) };
    for load in [open, replay, Load::Closed { users: 8, think: Duration::ZERO }] {
        const REQUESTS: u64 = 10_000;
        // Allocations of requests would occur in all three runs; pauses of the machine, which cause
        // wider histograms and more intervals, do not.
        let more = (0..3).map(|_| {
            let once = allocations(&load, REQUESTS);
            allocations(&load, 2 * REQUESTS).saturating_sub(once)
        });
        let more = more.min().unwrap();
        assert!(more < REQUESTS / 50, "{more} more allocations: {load:?}");
    }
}
