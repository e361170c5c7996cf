//! Iterations of several requests: arrivals and exchanges are counted separately.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use gake_core::clock::{Clock, Nanos};
use gake_core::metric::{Definition, MetricKind, MetricUnit, SeriesId, SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::{
    Exchange, ExchangeEnd, Histogram, LatencyMetric, ResponseSummary, Run, RunEnd, Tally,
};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{Collector, RunClock, Timer, WorkerBody, WorkerContext, start};

use super::support::*;

/// Length of each of five requests of an iteration, of which the third is not ok. An iteration also
/// has three checks, of which one fails, and two samples.
const STEP: Nanos = 2 * MS;

struct MultiStepWork {
    timer: Timer,
    clock: RunClock,
    /// The request that never gets a response.
    stuck: Option<u64>,
    /// The request under way.
    step: Option<Nanos>,
    /// Its series, once the recorder has interned them.
    series: Option<[SeriesId; 5]>,
}

impl MultiStepWork {
    /// The series of checks and samples, interned in an order that differs by worker.
    fn series(&mut self, iteration: &Iteration<'_>) -> [SeriesId; 5] {
        *self.series.get_or_insert_with(|| {
            let metric =
                |name: &str, kind, unit| Arc::new(Definition { name: name.to_owned(), kind, unit });
            let checks = metric("checks", MetricKind::Rate, MetricUnit::Number);
            let items = metric("items", MetricKind::Trend, MetricUnit::Number);
            let steps = metric("steps", MetricKind::Counter, MetricUnit::Number);
            let check = |name| (Arc::clone(&checks), Tags::new([("check", name)]));
            let none = Tags::default;
            let all =
                [check("body"), check("head"), check("late"), (items, none()), (steps, none())];
            let mut order = [0, 1, 2, 3, 4];
            if !iteration.arrival.number.is_multiple_of(2) {
                order.reverse();
            }
            let interned = order.map(|n| iteration.recorder().intern(&all[n].0, &all[n].1));
            order.map(|n| interned[n])
        })
    }

    fn exchange(start: Nanos, done: Nanos, end: ExchangeEnd) -> Exchange {
        let is_response = matches!(end, ExchangeEnd::Response(_));
        Exchange {
            write: start,
            written: true,
            first_byte: is_response.then_some(done),
            end,
            ..Exchange::unfinished(done)
        }
    }
}

impl Work for MultiStepWork {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let mut now = iteration.fired;
        let [body, head, late, items, steps] = self.series(iteration);
        iteration.check(body, true);
        iteration.check(head, true);
        iteration.check(late, false);
        iteration.sample(items, iteration.arrival.number as f64 / 4.0);
        iteration.sample(steps, 5.0);
        for step in 0..5 {
            self.step = Some(now);
            if self.stuck == Some(step) {
                std::future::pending::<()>().await;
            }
            self.timer.sleep_until(now + STEP).await;
            let (start, status) = (now, if step == 2 { 503 } else { 200 });
            now = self.clock.now();
            let end = ExchangeEnd::Response(ResponseSummary { status, body_bytes: 0 });
            iteration.exchange_from(start, Self::exchange(start, now, end));
        }
        self.step = None;
        Ok(IterationEnd::finished(now))
    }

    fn abandon(&mut self, iteration: &Iteration<'_>) -> IterationEnd {
        let now = self.clock.now();
        if let Some(start) = self.step.take() {
            iteration.exchange_from(start, Self::exchange(start, now, ExchangeEnd::Unfinished));
        }
        IterationEnd::interrupted(now)
    }
}

struct MultiStepFactory {
    clock: RunClock,
    stuck: Option<u64>,
}

impl Factory for MultiStepFactory {
    type Work = MultiStepWork;

    fn work(&self, _: usize) -> MultiStepWork {
        let timer = Timer::new(self.clock.clone()).unwrap();
        MultiStepWork {
            timer,
            clock: self.clock.clone(),
            stuck: self.stuck,
            step: None,
            series: None,
        }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

fn multi_step(plan: Plan, stuck: Option<u64>) -> Run {
    run(plan, move |context: WorkerContext| MultiStepFactory { clock: context.clock, stuck })
}

fn run<F: Factory + 'static>(
    plan: Plan,
    make: impl Fn(WorkerContext) -> F + Send + Sync + 'static,
) -> Run {
    let plan = Arc::new(plan);
    let running = start(&plan, SEED, None, WorkerBody::new(make)).unwrap();
    let mut collector = Collector::new(&plan, SEED, running.spares.len());
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |_, _| {});
        while collector.next_second().is_some() {}
    }
    running.join();
    collector.finish(0, RunEnd::Done, 1)
}

#[test]
fn arrivals_and_requests_are_counted_separately() {
    for threads in [1, 2] {
        let run = multi_step(Plan { threads, ..open(100.0, 300) }, None);
        let counts = run.tally.counts;
        assert_eq!((counts.started, counts.finished(), counts.dropped), (30, 30, 0), "{counts:?}");
        assert_eq!((counts.sent, counts.ok, counts.failed), (150, 120, 30), "{counts:?}");
        let latency = &run.tally.latency;
        // Lateness by arrival; response time by request.
        assert_eq!(latency.of(LatencyMetric::Lateness).count(), 30);
        assert_eq!(latency.response().count(), 150);
        assert!(latency.response().min() >= STEP);
    }
}

#[test]
fn checks_and_samples_are_joined_by_name_and_tags() {
    for threads in [1, 2] {
        let run = multi_step(Plan { threads, ..open(100.0, 300) }, None);
        let series = &run.tally.series;
        assert_eq!(series.series().count(), 5);
        let value = |metric, tags: &[(&str, &str)]| {
            let tags = Tags::new(tags.iter().copied());
            series.select(metric, &tags).map(|series| series.1.clone()).collect::<Vec<_>>()
        };
        for (check, passed) in [("body", 30), ("head", 30), ("late", 0)] {
            let rate = SeriesValue::Rate { passed, samples: 30 };
            assert_eq!(value("checks", &[("check", check)]), [rate]);
        }
        assert_eq!(value("checks", &[]).len(), 3);
        let mut trend = Histogram::new();
        (0..30).for_each(|number| trend.record_number(f64::from(number) / 4.0));
        assert_eq!(value("items", &[]), [SeriesValue::Trend(Box::new(trend))]);
        let counter = &value("steps", &[])[0];
        assert!(
            matches!(counter, SeriesValue::Counter { sum, samples: 30 } if sum.value() == 150.0)
        );
    }
}

#[test]
fn a_warm_up_has_no_samples() {
    let warmup = Duration::from_millis(100);
    let run = multi_step(Plan { warmup, ..open(100.0, 200) }, None);
    let samples: u64 =
        run.tally.series.select("steps", &Tags::default()).map(|s| s.1.samples()).sum();
    assert_eq!((run.warmup.started, samples), (10, run.tally.counts.started));
}

#[test]
fn a_cut_iteration_is_interrupted_and_its_request_unfinished() {
    let (drain, duration) = (Duration::from_millis(500), Some(Duration::from_millis(500)));
    let counts = multi_step(Plan { drain, duration, ..closed(3) }, Some(2)).tally.counts;
    assert_eq!((counts.started, counts.interrupted, counts.finished()), (3, 3, 0), "{counts:?}");
    assert_eq!((counts.sent, counts.ok, counts.unfinished), (9, 6, 3), "{counts:?}");
}

/// Counts calls of `work` before and after the epoch.
struct CountingFactory {
    multi_step: MultiStepFactory,
    begun: Cell<bool>,
    made: Arc<[AtomicUsize; 2]>,
}

impl Factory for CountingFactory {
    type Work = MultiStepWork;

    fn work(&self, lane: usize) -> MultiStepWork {
        self.made[usize::from(self.begun.get())].fetch_add(1, Relaxed);
        self.multi_step.work(lane)
    }

    fn begin(&self) {
        self.begun.set(true);
    }

    fn observe(&self, tally: &mut Tally) -> Gauges {
        self.multi_step.observe(tally)
    }
}

#[test]
fn all_work_is_made_before_the_epoch() {
    // Endless work, so that the open loop uses all lanes.
    let lanes = 40;
    let open = Plan { max_in_flight: lanes, drain: Duration::from_millis(50), ..open(500.0, 200) };
    let closed = Plan { duration: Some(Duration::from_millis(200)), ..closed(lanes) };
    for (plan, stuck) in [(open, Some(2)), (closed, None)] {
        let made = Arc::<[AtomicUsize; 2]>::default();
        let counts = Arc::clone(&made);
        let run = run(Plan { threads: 2, ..plan }, move |context| CountingFactory {
            multi_step: MultiStepFactory { clock: context.clock, stuck },
            begun: Cell::new(false),
            made: Arc::clone(&counts),
        });
        assert!(run.tally.counts.started >= lanes as u64, "{:?}", run.tally.counts);
        let made = made.each_ref().map(|made| made.load(Relaxed));
        assert_eq!(made, [lanes, 0], "before the epoch, and after it");
    }
}

#[test]
fn a_factory_that_fails_ends_the_run_before_it_starts() {
    struct FailingFactory;
    impl Factory for FailingFactory {
        type Work = MultiStepWork;
        async fn prepare(&self, lanes: usize) -> Result<(), String> {
            Err(format!("no room for {lanes} lanes"))
        }
        fn work(&self, _: usize) -> MultiStepWork {
            unreachable!("nothing is made after a failure")
        }
        fn observe(&self, _: &mut Tally) -> Gauges {
            Gauges::default()
        }
    }
    let plan = Arc::new(Plan { threads: 2, ..closed(8) });
    let error = start(&plan, SEED, None, WorkerBody::new(|_| FailingFactory)).err().unwrap();
    assert_eq!(error.to_string(), "no room for 4 lanes");
}
