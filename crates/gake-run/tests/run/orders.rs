//! A work of a program's own: five exchanges, three checks and two samples an iteration.

use std::sync::Arc;

use gake_core::clock::Clock;
use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, SeriesId, Tags};
use gake_core::record::{Exchange, ExchangeEnd, ResponseSummary, Tally};
use gake_core::work::{Exhausted, Factory, Gauges, Iteration, IterationEnd, NoFastLane, Work};
use gake_engine::{RunClock, Timer, WorkerContext};
use gake_judge::Summary;
use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
use gake_run::{ResolvedRun, RunError, RunOptions};

/// Iterations of a run, each of 10 ms: a second for its four users.
pub const ITERATIONS: u64 = 400;

/// Exchanges of an iteration, one after the other.
pub const EXCHANGES: u64 = 5;

/// Duration of an exchange.
const EXCHANGE_NS: u64 = 2_000_000;

#[derive(Clone)]
struct OrderMetrics {
    checks: Arc<Definition>,
    items: Arc<Definition>,
}

/// An order: every fourth payment fails, and every other order is large.
struct OrderWork {
    clock: RunClock,
    timer: Timer,
    metrics: OrderMetrics,
}

impl OrderWork {
    /// Three checks, one of which fails every fourth time, and two samples.
    fn record(&self, iteration: &Iteration<'_>) {
        let (number, recorder) = (iteration.arrival.number, iteration.recorder());
        let series = |metric: &Arc<Definition>, key, value| -> SeriesId {
            recorder.intern(metric, &Tags::new([(key, value)]))
        };
        let OrderMetrics { checks, items } = &self.metrics;
        iteration.check(series(checks, "check", "paid"), !number.is_multiple_of(4));
        iteration.check(series(checks, "check", "sent"), true);
        iteration.check(series(checks, "check", "received"), true);
        let (kind, count) = if number.is_multiple_of(2) { ("small", 2.0) } else { ("large", 30.0) };
        iteration.sample(series(items, "kind", kind), count);
        iteration.sample(series(items, "kind", "returned"), 1.0);
    }
}

impl Work for OrderWork {
    type Fast = NoFastLane;

    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<IterationEnd, Exhausted> {
        let mut now = iteration.fired;
        for _ in 0..EXCHANGES {
            let start = now;
            self.timer.sleep_until(start + EXCHANGE_NS).await;
            now = self.clock.now();
            let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 0 });
            let exchange = Exchange {
                write: start,
                written: true,
                first_byte: Some(now),
                end,
                ..Exchange::unfinished(now)
            };
            iteration.exchange_from(start, exchange);
        }
        self.record(iteration);
        Ok(IterationEnd::finished(now))
    }

    fn abandon(&mut self, _: &Iteration<'_>) -> IterationEnd {
        IterationEnd::interrupted(self.clock.now())
    }
}

struct OrderFactory {
    clock: RunClock,
    timer: Timer,
    metrics: OrderMetrics,
}

impl Factory for OrderFactory {
    type Work = OrderWork;

    fn work(&self, _: usize) -> OrderWork {
        let (clock, timer) = (self.clock.clone(), self.timer.clone());
        OrderWork { clock, timer, metrics: self.metrics.clone() }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

/// The spec of a run of orders, with an objective.
pub fn spec(objective: &str) -> RunSpec {
    let load = Load::Shared { users: 4, iterations: ITERATIONS };
    let source = RequestSource::Given("orders".to_owned());
    let scenario = ScenarioSpec { name: "shop".into(), ..ScenarioSpec::new(source, load) };
    let mut spec = RunSpec::new(scenario);
    spec.threads = Some(2);
    spec.objectives = vec![objective.to_owned()];
    spec
}

/// Runs the orders and judges the run.
pub fn judged(spec: &RunSpec) -> Result<Summary, RunError> {
    let mut registry = Registry::default();
    let mut define = |name: &str, kind| {
        let unit = MetricUnit::Number;
        registry.define(Definition { name: name.to_owned(), kind, unit }).unwrap()
    };
    let checks = define("checks", MetricKind::Rate);
    let metrics = OrderMetrics { checks, items: define("items", MetricKind::Trend) };
    let prepared = ResolvedRun::of_works(spec, &["orders".to_owned()], &[], &registry)?;
    let make = move |context: WorkerContext| OrderFactory {
        timer: Timer::new(context.clock.clone()).unwrap(),
        clock: context.clock,
        metrics: metrics.clone(),
    };
    let run = prepared.run_works(make, RunOptions::default(), &mut |_| None)?.run;
    Ok(Summary::new(run, &prepared.objectives))
}
