//! Objectives: parsed, formatted, evaluated.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::record::{Fault, GaugeReading, LatencyMetric, Run, ScenarioRun};
use proptest::prelude::*;

use super::quantity::{Measure, RateKind, Statistic};
use super::series::{SeriesBound, SeriesStatistic};
use super::*;
use crate::testing::{MS, RunBuilder};

fn check(run: &Run, text: &str) -> Evaluation {
    text.parse::<Objective>().unwrap().evaluate(&RunView::of(run))
}

#[test]
fn compares_with_the_measured_value() {
    // 1,000/s for 10 s: 9,900 responses in 10 ms, 80 in 100 ms, 20 resets.
    let run = RunBuilder::of(9_900, 10 * MS)
        .more(80, 100 * MS)
        .fault(Fault::Reset, 20)
        .asked(10_000.0)
        .run();
    for (text, met) in [
        ("p50<11ms", true),
        ("p50<=9ms", false),
        ("p99.9<=101ms", true),
        ("p99.9<50ms", false),
        ("max<101ms", true),
        ("max<99ms", false),
        ("min>9ms", true),
        ("min > 10.1ms", false),
        ("mean<11ms", true),
        ("mean<10ms", false),
        ("service.p50<11ms", true),
        ("ok.p99<1ms", false),
        ("fault.max<1s", true),
        ("errors<0.21%", true),
        ("errors<0.2%", false),
        ("errors<=0.2%", true),
        ("errors<21", true),
        ("errors<20", false),
        ("rate>=1000/s", true),
        ("rate>1000/s", false),
        ("rate>=60k/m", true),
        ("goodput>=998/s", true),
        ("goodput>=999/s", false),
        ("sent>=10000", true),
        ("sent>10000", false),
        ("sent>=1000/s", true),
    ] {
        let evaluation = check(&run, text);
        assert_eq!(evaluation.met, met, "{text}: {}", evaluation.shown());
        assert!(evaluation.value.is_some() && evaluation.problem.is_none());
    }
    assert_eq!(check(&run, "errors<1%").shown(), "0.20 %");
    assert_eq!(check(&run, "rate>=1/s").shown(), "1,000/s");
}

#[test]
fn failures_make_no_response_time_better() {
    let mut run = RunBuilder::of(300, 30 * MS).run();
    let others = |run: &mut Run, time| {
        run.tally.latency.of_mut(LatencyMetric::OtherResponse).record_n(time, 600);
    };
    // Two in three are refused in 0.1 ms.
    others(&mut run, MS / 10);
    assert_eq!(check(&run, "p50<10ms").shown(), "30.0 ms");
    assert!(!check(&run, "mean<20ms").met && check(&run, "p50<31ms").met);
    // And as many after a second.
    others(&mut run, 1_000 * MS);
    assert!(!check(&run, "p90<31ms").met && check(&run, "ok.p90<31ms").met);
}

#[test]
fn the_target_can_be_bounded() {
    let mut run = RunBuilder::of(90, MS).run();
    let reading = |name: &str, unit, value| GaugeReading {
        source: "port:1".to_owned(),
        name: name.to_owned(),
        unit,
        value,
    };
    for (second, cpu) in [(0, 0.5), (1, 1.0)] {
        let levels = [
            reading("cpu", gake_core::record::LevelUnit::Share, cpu),
            reading("rss", gake_core::record::LevelUnit::Bytes, 9e8 * cpu),
            reading("accept_queue", gake_core::record::LevelUnit::Count, 128.0),
        ];
        run.watched.add(second * 1_000 * MS, &levels);
    }
    for (text, met) in [
        ("cpu<80%", true),
        ("cpu.max<80%", false),
        ("cpu<=75%", true),
        ("rss<1GB", true),
        ("rss<0.8G", false),
        ("rss.mean<700MB", true),
        ("accept_queue<=128", true),
    ] {
        let evaluation = check(&run, text);
        assert_eq!(evaluation.met, met, "{text}: {}", evaluation.shown());
        let again: Objective = evaluation.text.parse().unwrap();
        assert_eq!(again, text.parse().unwrap(), "{text} is shown as {}", evaluation.text);
    }
    let unwatched = check(&run, "pool<90%");
    assert!(!unwatched.met && unwatched.value.is_none(), "{unwatched:?}");
    for text in ["cpu<80", "rss<1h", "pool<-1%", "label:cpu<80%", "accept_queue<5/s", "cpu.p99<1%"]
    {
        assert!(text.parse::<Objective>().is_err(), "{text}");
    }
    let clause = "cpu<80%".parse::<Objective>().unwrap().clause().unwrap();
    assert_eq!((clause.target_level(), clause.bound), (Some("cpu"), ClauseBound::Level(0.8)));
}

#[test]
fn dropped_and_unfinished_are_errors() {
    let mut run = RunBuilder::of(90, MS).run();
    run.tally.record_dropped(MS);
    run.tally.counts.sent += 9;
    run.tally.counts.unfinished += 9;
    assert_eq!(check(&run, "errors<50%").value, Some(10.0));
    assert_eq!(check(&run, "errors<=10").value, Some(10.0));
}

#[test]
fn without_samples_it_is_not_met() {
    let run = RunBuilder::of(10, MS).run();
    let evaluation = check(&run, "tls.p99<1s");
    assert!(!evaluation.met && evaluation.value.is_none());
    assert_eq!(evaluation.shown(), "no sample");
    assert_eq!(check(&run, "nope:p99<1s").shown(), "there is no label \"nope\"");
}

#[test]
fn a_label_has_its_own_figures() {
    let run = RunBuilder::of(10, MS).label("fast", 50, MS).label("slow: a", 50, 80 * MS).run();
    assert!(check(&run, "fast:p99<2ms").met);
    assert!(!check(&run, "slow: a:p99<2ms").met);
    assert!(check(&run, "slow: a:service.p99<81ms").met);
    assert_eq!(check(&run, "fast:errors<1%").value, Some(0.0));
    assert_eq!(check(&run, "fast:sent>1").value, Some(50.0));
}

/// A run with checks, a trend of times and one of numbers, a counter and a gauge.
fn with_metrics() -> Run {
    let mut run = RunBuilder::of(10, MS).label("login", 50, MS).run();
    let table = &mut run.tally.series;
    let mut add = |name: &str, kind, unit, tag: (&str, &str), values: &[f64]| {
        let metric = Arc::new(Definition { name: name.to_owned(), kind, unit });
        let series = table.intern(&metric, &Tags::new([tag]));
        values.iter().zip(0..).for_each(|(value, at)| table.add(series, *value, at));
    };
    use MetricKind::{Counter, Gauge, Rate, Trend};
    use MetricUnit::{Bytes, Number, Time};
    add("checks", Rate, Number, ("check", "status is 200"), &[1.0; 99]);
    add("checks", Rate, Number, ("check", "body, whole"), &[0.0]);
    add("waits", Trend, Time, ("name", "login"), &[1e6, 2e6, 3e6]);
    add("waits", Trend, Time, ("name", "home"), &[9e6]);
    add("items", Trend, Number, ("name", "home"), &[1.5, 2.0, -1.0]);
    add("hits", Counter, Number, ("name", "home"), &[7.0, 4.0]);
    add("sizes", Gauge, Bytes, ("name", "home"), &[7e6, 4e6]);
    run
}

#[test]
fn metrics_are_selected_by_name_and_tags() {
    let run = with_metrics();
    for (text, met) in [
        ("checks>=99%", true),
        ("checks>0.99", false),
        ("checks{check:status is 200}>99%", true),
        ("checks{check:\"body, whole\"}:rate>0%", false),
        ("checks:count>=100", true),
        ("checks:rate==0.99", true),
        ("checks:rate===1", false),
        ("checks:count != 99", true),
        ("waits:p95<9.1ms", true),
        ("waits{name:login}:p(95)<=3ms", true),
        ("waits{name:login}:max<3ms", false),
        ("waits:avg<4ms", true),
        ("waits:count>4", false),
        ("items:avg<0.9", true),
        ("items:min>=-1", true),
        ("items{name:home}.med<2", true),
        ("hits:count>10", true),
        ("hits:rate>1/s", true),
        ("sizes{name:home}<5MB", true),
        ("sizes{name:home}:max<5MB", false),
        ("response{name:login}:p95<2ms", true),
        ("http_req_duration{name:login}:p95<2ms", true),
        ("http_req_duration:p(95)<1us", false),
        ("errors{name:login}<1%", true),
        ("sent{name:login}>50", false),
    ] {
        let evaluation = check(&run, text);
        assert_eq!(evaluation.met, met, "{text}: {}", evaluation.shown());
        assert!(evaluation.value.is_some(), "{text}: {}", evaluation.shown());
        let again: Objective = evaluation.text.parse().unwrap();
        assert_eq!(again, text.parse().unwrap(), "{text} is shown as {}", evaluation.text);
    }
    assert_eq!(check(&run, "items:min<0").shown(), "-1");
    assert_eq!(check(&run, "checks>1%").shown(), "99 %");
    assert_eq!(check(&run, "waits:max<1s").shown(), "9.00 ms");
}

#[test]
fn an_unknown_metric_tag_or_statistic_fails_with_the_known_ones() {
    let run = with_metrics();
    let texts = [
        "nope:avg<3",
        "nope:p95<3ms",
        "waits{name:nope}:p95<3ms",
        "checks{check:nope}>1%",
        "waits:p95<3",
        "items:p95<3ms",
        "items:rate>3",
        "items{name:home}>3",
        "hits:value>3",
        "sizes:avg<3MB",
        "checks>3",
        "response{name:nope}:p95<1s",
    ];
    let problem = |text: &str| {
        let evaluation = check(&run, text);
        assert!(!evaluation.met && evaluation.value.is_none(), "{text}");
        evaluation.shown()
    };
    expect![[r#"
        nope:avg<3 → there is no metric "nope"; there are checks, hits, items, sizes, waits
        nope:p95<3ms → there is no label or metric "nope"; there are the labels first, login, the metrics checks, hits, items, sizes, waits
        waits{name:nope}:p95<3ms → no sample of "waits" has the tags {name:nope}; there are {name:home}, {name:login}
        checks{check:nope}>1% → no sample of "checks" has the tags {check:nope}; there are {check:"body, whole"}, {check:status is 200}
        waits:p95<3 → 3 is not a valid bound for the p95 of "waits": write a time with its unit, as 50ms
        items:p95<3ms → 3ms is not a valid bound for the p95 of "items": write a plain number, as 10
        items:rate>3 → "items" is a trend: it has p50, p95 ..., avg, min, max and count, and no rate
        items{name:home}>3 → "items" is a trend and needs a statistic; it has p50, p95 ..., avg, min, max and count
        hits:value>3 → "hits" is a counter: it has count and rate, and no value
        sizes:avg<3MB → "sizes" is a gauge: it has value, min and max, and no mean
        checks>3 → 3 is not a valid bound for the rate of "checks": write a share, as 99%
        response{name:nope}:p95<1s → there is no label "nope"; there are first, login
    "#]].assert_eq(&by_line(&texts, problem));
    let plain = RunBuilder::of(10, MS).run();
    assert_eq!(
        check(&plain, "checks>99%").shown(),
        "there is no metric \"checks\": the run has none of its own"
    );
    assert!("waits:p99<1ms".parse::<Objective>().unwrap().clause().is_ok());
    assert!("items:avg<1".parse::<Objective>().unwrap().clause().is_err());
}

#[test]
fn a_scenario_can_be_bounded() {
    let slow = RunBuilder::of(10, 20 * MS).run();
    let mut run = RunBuilder::of(90, 10 * MS).more(10, 20 * MS).run();
    let names = [("steady", "shop", 0), ("ramp", "pay", 2), ("burst", "pay", 5)];
    let plans = names.map(|(name, team, start)| Plan {
        name: name.to_owned(),
        tags: vec![("team".to_owned(), team.to_owned())],
        start: Duration::from_secs(start),
        ..run.plan.clone()
    });
    run.plan.load = plans.to_vec().into();
    let metric = Definition {
        name: "waits".to_owned(),
        kind: MetricKind::Counter,
        unit: MetricUnit::Number,
    };
    let waits = Registry::default().define(metric).unwrap();
    let parts = [RunBuilder::of(90, 10 * MS).run(), slow, RunBuilder::of(5, 40 * MS).run()];
    run.scenarios = parts
        .into_iter()
        .zip(plans)
        .zip([1.0, 5.0, 7.0])
        .map(|((mut part, plan), value)| {
            let series = part.tally.series.intern(&waits, &Tags::default());
            part.tally.series.add(series, value, 0);
            let series = run.tally.series.intern(&waits, &Tags::default());
            run.tally.series.add(series, value, 0);
            ScenarioRun {
                plan,
                measured: part.measured,
                sending: part.sending,
                completing: part.completing,
                asked_rate: None,
                tally: part.tally,
                warmup: part.warmup,
            }
        })
        .collect();
    for (text, met) in [
        ("max<15ms", false),
        ("response{scenario:steady}:max<15ms", true),
        ("response{scenario:ramp}:p50>=19ms", true),
        ("service{scenario:ramp}:max<1s", true),
        ("sent{scenario:ramp}<=10", true),
        ("errors{scenario:steady}<1%", true),
        ("waits:count>=13", true),
        ("waits{scenario:steady}:count<=1", true),
        ("waits{scenario:ramp}:count>=5", true),
        ("response{team:shop}:max<15ms", true),
        ("response{team:pay}:p50<25ms", true),
        ("response{team:pay}:max>=39ms", true),
        ("sent{team:pay}<=15", true),
        ("sent{team:pay}<15", false),
        ("sent{scenario:ramp,team:pay}<=10", true),
    ] {
        let seen = check(&run, text);
        assert_eq!(seen.met, met, "{text}: {}", seen.shown());
        assert_eq!(seen.text, text);
    }
    // Ten seconds each, from the second and the fifth on: thirteen together.
    let pay = check(&run, "goodput{team:pay}>1/s").value.unwrap();
    assert!((pay - 15.0 / 13.0).abs() < 1e-9, "{pay}");
    for (text, why) in [
        (
            "errors{scenario:spike}<1%",
            "there is no scenario \"spike\"; there are steady, ramp, burst",
        ),
        (
            "errors{scenario:ramp,team:shop}<1%",
            "no scenario has the tags {scenario:ramp,team:shop}; there are \
             {scenario:steady,team:shop}, {scenario:ramp,team:pay}, {scenario:burst,team:pay}",
        ),
    ] {
        assert_eq!(check(&run, text).shown(), why);
        let objective: Objective = text.parse().unwrap();
        assert_eq!(objective.check(&run.plan, &Registry::default()), Err(why.to_owned()));
    }
    assert!("errors{team:pay}<1%".parse::<Objective>().unwrap().clause().is_err());
}

#[test]
fn impossible_objectives_are_refused_before_the_run() {
    let mut registry = Registry::default();
    let (name, kind, unit) = ("waits".to_owned(), MetricKind::Trend, MetricUnit::Time);
    registry.define(Definition { name, kind, unit }).unwrap();
    let mut plan = RunBuilder::of(1, MS).run().plan;
    plan.labels = vec!["login".to_owned()];
    let check = |text: &str| text.parse::<Objective>().unwrap().check(&plan, &registry);
    for text in [
        "p99<1s",
        "login:p99<1s",
        "waits:p99<1s",
        "waits:avg<1s",
        "cpu<80%",
        "errors{scenario:default}<1%",
    ] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    let texts = [
        "logn:p99<1s",
        "login:p99<50",
        "waits:p99<50",
        "wait:count>1",
        "wait:avg<1s",
        "checks>99%",
        "response{scenario:ramp}:p99<1s",
    ];
    expect![[r#"
        logn:p99<1s → there is no label or metric "logn"; there are the labels login, the metrics waits
        login:p99<50 → "login" is a label, whose times need a unit, as in login:p99<50ms
        waits:p99<50 → 50 is not a valid bound for the p99 of "waits": write a time with its unit, as 50ms
        wait:count>1 → there is no metric "wait"; there are waits
        wait:avg<1s → there is no label or metric "wait"; there are the labels login, the metrics waits
        checks>99% → there is no metric "checks"; there are waits
        response{scenario:ramp}:p99<1s → there is no scenario "ramp"; there are default
    "#]].assert_eq(&by_line(&texts, |text| check(text).unwrap_err()));
}

fn by_line(texts: &[&str], problem: impl Fn(&str) -> String) -> String {
    texts.iter().map(|text| format!("{text} → {}\n", problem(text))).collect()
}

#[test]
fn refuses_the_rest() {
    let texts = [
        "",
        "p99",
        "p99<",
        "p99<50",
        "p99<-5ms",
        "p0<5ms",
        "p101<5ms",
        "p1e1<5ms",
        "px<5ms",
        "median<5ms",
        "foo.p99<5ms",
        "service.foo<5ms",
        "errors<0.1",
        "errors<101%",
        "errors<NaN%",
        "rate>=0",
        "rate>=max",
        "sent>=x",
        ":p99<5ms",
        "response{name:a}<1s",
        "errors{name:a}:p95<1%",
        "connect{name:a}:p95<1s",
        "response{name:a}p95<1s",
        "hits:count>x",
        "hits>10",
        "a:connect.p99<5ms",
        "p99==5ms",
        "p99=<5ms",
        "p99<1s,errors<1%",
    ];
    let error = |text: &&str| format!("{}\n", text.parse::<Objective>().unwrap_err());
    expect![[r#"
        "" is not an objective: it has no < <= > or >=; write for example p99<50ms, errors<0.1% or rate>=990/s
        "p99" is not an objective: it has no < <= > or >=; write for example p99<50ms, errors<0.1% or rate>=990/s
        "p99<" is not an objective: there is nothing after the comparison
        "p99<50" is not an objective: "50" has no unit; write for example 50ms
        "p99<-5ms" is not an objective: "-5ms" is not a duration; write for example 30s, 1m30s, 250ms, or bare seconds
        "p0<5ms" is not an objective: "p0" is not a percentile, above p0 and up to p100
        "p101<5ms" is not an objective: "p101" is not a percentile, above p0 and up to p100
        "p1e1<5ms" is not an objective: "p1e1" is not a percentile, above p0 and up to p100
        "px<5ms" is not an objective: "px" is not a percentile, above p0 and up to p100
        "median<5ms" is not an objective: "median" is not a known quantity; there are p50 p99 p99.9 ..., mean, min, max, errors, rate, goodput and sent; for a watched target cpu, cores, rss, jvm_memory, threads, goroutines, descriptors, descriptors_open, context_switches, established, time_wait, accept_queue, listen_overflows, connections, pool, pool_busy, pool_queue, db_pool, db_pool_pending, db_connections, db_open, db_running, db_lock_waits
        "foo.p99<5ms" is not an objective: there is no metric "foo"; there are response, ok, ok_response, fault, service, lateness, blocked, connect, tls, first_byte, download, rtt
        "service.foo<5ms" is not an objective: "foo" is not a known quantity; there are p50 p99 p99.9 ..., mean, min, max, errors, rate, goodput and sent; for a watched target cpu, cores, rss, jvm_memory, threads, goroutines, descriptors, descriptors_open, context_switches, established, time_wait, accept_queue, listen_overflows, connections, pool, pool_busy, pool_queue, db_pool, db_pool_pending, db_connections, db_open, db_running, db_lock_waits
        "errors<0.1" is not an objective: "0.1" is neither a share like 0.1% nor a whole number of errors
        "errors<101%" is not an objective: "101" is not a percentage from 0 to 100
        "errors<NaN%" is not an objective: "NaN" is not a percentage from 0 to 100
        "rate>=0" is not an objective: "0" is not a rate like 990/s
        "rate>=max" is not an objective: "max" is not a rate like 990/s
        "sent>=x" is not an objective: "x" is not a rate like 990/s
        ":p99<5ms" is not an objective: the label before the colon is empty
        "response{name:a}<1s" is not an objective: response needs a statistic: p95, mean, min or max
        "errors{name:a}:p95<1%" is not an objective: errors takes no statistic after its tags
        "connect{name:a}:p95<1s" is not an objective: a label has only response and service times
        "response{name:a}p95<1s" is not an objective: only a statistic may follow the tags, as in response{name:a}:p95<1s
        "hits:count>x" is not an objective: "x" is not a valid bound: write a number, 50ms, 5MB, 99% or 10/s
        "hits>10" is not an objective: "hits" is not a known quantity; there are p50 p99 p99.9 ..., mean, min, max, errors, rate, goodput and sent; for a watched target cpu, cores, rss, jvm_memory, threads, goroutines, descriptors, descriptors_open, context_switches, established, time_wait, accept_queue, listen_overflows, connections, pool, pool_busy, pool_queue, db_pool, db_pool_pending, db_connections, db_open, db_running, db_lock_waits
        "a:connect.p99<5ms" is not an objective: a label has only response and service times
        "p99==5ms" is not an objective: it has no < <= > or >=; write for example p99<50ms, errors<0.1% or rate>=990/s
        "p99=<5ms" is not an objective: "p99=" is not a percentile, above p0 and up to p100
        "p99<1s,errors<1%" is not an objective: it is more than one: give each its own --slo
    "#]].assert_eq(&texts.iter().map(error).collect::<String>());
}

fn objective() -> impl Strategy<Value = Objective> {
    let measure = prop_oneof![
        Just(Measure::Response),
        Just(Measure::Of(LatencyMetric::Service)),
        Just(Measure::Of(LatencyMetric::OkResponse)),
        Just(Measure::Of(LatencyMetric::FirstByte)),
    ];
    let statistic = prop_oneof![
        (1u32..=100_000).prop_map(|p| Statistic::Percentile(f64::from(p) / 1000.0)),
        Just(Statistic::Mean),
        Just(Statistic::Min),
        Just(Statistic::Max),
    ];
    let flow =
        prop_oneof![Just(RateKind::Completed), Just(RateKind::Goodput), Just(RateKind::Sent)];
    let quantity = prop_oneof![
        (measure, statistic, 0..1u64 << 50).prop_map(|(measure, statistic, bound)| {
            Quantity::Latency { measure, statistic, bound }
        }),
        (0.0..=100.0f64).prop_map(Quantity::ErrorPercent),
        any::<u64>().prop_map(Quantity::ErrorCount),
        any::<u64>().prop_map(Quantity::SentCount),
        (flow, 0.001..1e7f64).prop_map(|(of, bound)| Quantity::Rate { of, bound }),
    ];
    let operator = prop_oneof![
        Just(BoundOperator::Less),
        Just(BoundOperator::LessOrEqual),
        Just(BoundOperator::Greater),
        Just(BoundOperator::GreaterOrEqual),
    ];
    let tags = prop_oneof![
        Just(Tags::default()),
        "\\PC{0,8}".prop_map(|name| Tags::new([(Plan::NAME_TAG, name)])),
        ("\\PC{0,8}", "\\PC{0,8}")
            .prop_map(|(name, team)| Tags::new([(Plan::NAME_TAG, name), ("team", team)])),
    ];
    (label(), tags, quantity, operator).prop_map(|(label, tags, quantity, operator)| {
        let kept = match quantity {
            Quantity::Latency { measure, .. } => {
                matches!(measure, Measure::Response | Measure::Of(LatencyMetric::Service))
            }
            _ => true,
        };
        let label = label.filter(|_| kept);
        // Only a label that is a tag is written with braces.
        let is_free = label.as_ref().is_none_or(|label| label.is_tag);
        let tags = if is_free { tags } else { Tags::default() };
        let scope = ObjectiveScope { label, tags, is_k6: false };
        Objective { claim: Claim::Builtin { scope, quantity }, operator }
    })
}

fn label() -> impl Strategy<Value = Option<ObjectiveLabel>> {
    prop_oneof![
        Just(None),
        "[a-z/:]{0,6}[a-z]".prop_map(|name| Some(ObjectiveLabel { name, is_tag: false })),
        "\\PC{0,8}".prop_map(|name| Some(ObjectiveLabel { name, is_tag: true })),
    ]
}

fn series_objective() -> impl Strategy<Value = Objective> {
    let tags = prop_oneof![
        Just(Tags::default()),
        "\\PC{0,6}".prop_map(|check| Tags::new([("check", check)])),
    ];
    let statistic = prop_oneof![
        (1u32..=100).prop_map(|p| SeriesStatistic::Of(Statistic::Percentile(f64::from(p)))),
        Just(SeriesStatistic::Count),
        Just(SeriesStatistic::Rate),
    ];
    let bound = prop_oneof![
        (-1e6..1e6_f64).prop_map(SeriesBound::Number),
        (0..1u64 << 50).prop_map(SeriesBound::Time),
        (0.0..1e12_f64).prop_map(SeriesBound::Bytes),
        (0.0..=100.0_f64).prop_map(SeriesBound::Percent),
    ];
    (tags, statistic, bound).prop_map(|(tags, statistic, bound)| {
        let metric = "my.trend".to_owned();
        // Without tags some of these would parse as a label's.
        let tags = if tags.is_empty() { Tags::new([("a", "b")]) } else { tags };
        let series = SeriesClaim { metric, tags, statistic: Some(statistic), bound };
        Objective { claim: Claim::Series(series), operator: BoundOperator::GreaterOrEqual }
    })
}

proptest! {
    #[test]
    fn objectives_round_trip(objective in objective()) {
        prop_assert_eq!(objective.to_string().parse::<Objective>(), Ok(objective));
    }

    #[test]
    fn series_objectives_round_trip(objective in series_objective()) {
        prop_assert_eq!(objective.to_string().parse::<Objective>(), Ok(objective));
    }

    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        let _ = text.parse::<Objective>();
    }
}
