//! Works of a program's own: their metrics decide a run by name and tags.

use std::sync::Arc;

use gake_core::clock::Clock;
use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, Tags};
use gake_core::record::{Answer, End, Exchange, Tally};
use gake_core::work::{Ended, Exhausted, Factory, Gauges, Iteration, Work};
use gake_engine::RunClock;
use gake_judge::{Conclusion, Summary};
use gake_run::spec::{LoadSpec, RequestSource, RunSpec, ScenarioSpec};
use gake_run::{Beside, Prepared, RunError};

/// An order: two requests, a check that fails every fourth time, and its items.
struct Order {
    clock: RunClock,
    checks: Arc<Definition>,
    items: Arc<Definition>,
}

impl Work for Order {
    async fn fire(&mut self, iteration: &Iteration<'_>) -> Result<Ended, Exhausted> {
        let number = iteration.arrival.number;
        let check = iteration.recorder().intern(&self.checks, &Tags::new([("check", "paid")]));
        iteration.check(check, !number.is_multiple_of(4));
        let kind = if number.is_multiple_of(2) { "small" } else { "large" };
        let items = iteration.recorder().intern(&self.items, &Tags::new([("kind", kind)]));
        iteration.sample(items, if kind == "small" { 2.0 } else { 30.0 });
        let mut now = iteration.fired;
        for _ in 0..2 {
            let start = now;
            now = self.clock.now();
            let end = End::Answered(Answer { status: 200, body_bytes: 0 });
            let exchange = Exchange {
                write: start,
                written: true,
                first_byte: Some(now),
                end,
                ..Exchange::unfinished(now)
            };
            iteration.exchange_from(start, exchange);
        }
        Ok(Ended::finished(now))
    }

    fn abandon(&mut self, _: &Iteration<'_>) -> Ended {
        Ended::interrupted(self.clock.now())
    }
}

struct Orders {
    clock: RunClock,
    checks: Arc<Definition>,
    items: Arc<Definition>,
}

impl Factory for Orders {
    type Work = Order;

    fn work(&self, _: usize) -> Order {
        let (checks, items) = (Arc::clone(&self.checks), Arc::clone(&self.items));
        Order { clock: self.clock.clone(), checks, items }
    }

    fn observe(&self, _: &mut Tally) -> Gauges {
        Gauges::default()
    }
}

fn conclude(objective: &str) -> Result<(Conclusion, Summary), RunError> {
    bounded(objective, None)
}

fn bounded(objective: &str, max_series: Option<usize>) -> Result<(Conclusion, Summary), RunError> {
    let load = LoadSpec::Shared { users: 4, iterations: 40 };
    let source = RequestSource::Given("orders".to_owned());
    let mut spec =
        RunSpec::new(ScenarioSpec { name: "shop".into(), ..ScenarioSpec::new(source, load) });
    spec.threads = Some(2);
    spec.objectives = vec![objective.to_owned()];
    spec.max_series = max_series.unwrap_or(spec.max_series);
    let mut metrics = Registry::default();
    let mut define = |name: &str, kind| {
        metrics
            .define(Definition { name: name.to_owned(), kind, unit: MetricUnit::Number })
            .unwrap()
    };
    let (checks, items) = (define("checks", MetricKind::Rate), define("items", MetricKind::Trend));
    let prepared = Prepared::of_works(&spec, &["orders".to_owned()], &[], &metrics)?;
    let make = move |context: gake_engine::WorkerContext| {
        let (checks, items) = (Arc::clone(&checks), Arc::clone(&items));
        Orders { clock: context.clock, checks, items }
    };
    let run = prepared.run_works(make, Beside::default(), |_| None)?.run;
    let summary = Summary::new(run, &prepared.objectives);
    Ok((summary.verdict.conclusion(), summary))
}

#[test]
fn objectives_by_tag_decide() {
    for (objective, expected) in [
        ("checks>=75%", Conclusion::Done),
        ("checks{check:paid}>80%", Conclusion::ObjectiveFailed),
        ("items:max<=30", Conclusion::Done),
        ("items{kind:small}:max<=2", Conclusion::Done),
        ("items{kind:large}:min<=2", Conclusion::ObjectiveFailed),
        ("items{kind:small,scenario:shop}:count>=20", Conclusion::Done),
        ("sent>=80", Conclusion::Done),
    ] {
        let (conclusion, summary) = conclude(objective).unwrap();
        let counts = summary.run.tally.counts;
        assert_eq!((counts.started, counts.sent, counts.ok), (40, 80, 80), "{objective}");
        // What cannot be measured of so short a run is no matter here.
        let seen = &summary.verdict.objectives[0];
        assert_eq!(seen.met, expected == Conclusion::Done, "{objective}: {}", seen.shown());
        assert!(conclusion == expected || conclusion == Conclusion::Invalid, "{objective}");
    }
}

#[test]
fn an_objective_on_what_the_works_do_not_have_is_refused() {
    let error = conclude("item:max<3").unwrap_err().to_string();
    assert!(error.contains("there is no metric \"item\""), "{error}");
    assert!(error.contains("checks, items"), "{error}");
}

#[test]
fn series_over_their_bound_count_together() {
    // Two of items and one of checks, of which each worker sees all.
    let (_, summary) = bounded("items:count>=40", Some(2)).unwrap();
    let series = &summary.run.tally.series;
    let told_apart = series.series().filter(|(key, _)| !key.is_other()).count();
    assert_eq!(told_apart, 2, "{series:?}");
    assert!(series.over() > 0, "{series:?}");
    let samples: u64 = series.series().map(|(_, value)| value.samples()).sum();
    assert_eq!(samples, 80);
    assert!(summary.verdict.objectives[0].met, "{:?}", summary.verdict.objectives);
}
