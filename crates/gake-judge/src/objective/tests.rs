//! Objectives: read, written, compared.

use std::sync::Arc;
use std::time::Duration;

use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::record::{Fault, GaugeReading, LatencyMetric};
use proptest::prelude::*;

use super::quantity::{Flow, Measure, Statistic};
use super::series::{SeriesBound, SeriesStatistic};
use super::*;
use crate::testing::{MS, RunSample};

fn check(run: &Run, text: &str) -> Evaluation {
    text.parse::<Objective>().unwrap().evaluate(&View::of(run))
}

#[test]
fn compares_with_what_was_measured() {
    // 1,000/s for 10 s: 9,900 answers in 10 ms, 80 in 100 ms, 20 resets.
    let run = RunSample::of(9_900, 10 * MS)
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
fn the_target_can_be_bounded() {
    let mut run = RunSample::of(90, MS).run();
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
    let unseen = check(&run, "pool<90%");
    assert!(!unseen.met && unseen.value.is_none(), "{unseen:?}");
    for text in ["cpu<80", "rss<1h", "pool<-1%", "label:cpu<80%", "accept_queue<5/s", "cpu.p99<1%"]
    {
        assert!(text.parse::<Objective>().is_err(), "{text}");
    }
    let clause = "cpu<80%".parse::<Objective>().unwrap().clause().unwrap();
    assert_eq!((clause.target_level(), clause.bound), (Some("cpu"), Bound::Level(0.8)));
}

#[test]
fn dropped_and_unfinished_are_errors() {
    let mut run = RunSample::of(90, MS).run();
    run.tally.record_dropped(MS);
    run.tally.counts.sent += 9;
    run.tally.counts.unfinished += 9;
    assert_eq!(check(&run, "errors<50%").value, Some(10.0));
    assert_eq!(check(&run, "errors<=10").value, Some(10.0));
}

#[test]
fn no_sample_is_not_met_and_said() {
    let run = RunSample::of(10, MS).run();
    let evaluation = check(&run, "tls.p99<1s");
    assert!(!evaluation.met && evaluation.value.is_none());
    assert_eq!(evaluation.shown(), "no sample");
    assert_eq!(check(&run, "nope:p99<1s").shown(), "there is no label \"nope\"");
}

#[test]
fn a_label_has_its_own_figures() {
    let run = RunSample::of(10, MS).label("fast", 50, MS).label("slow: a", 50, 80 * MS).run();
    assert!(check(&run, "fast:p99<2ms").met);
    assert!(!check(&run, "slow: a:p99<2ms").met);
    assert!(check(&run, "slow: a:service.p99<81ms").met);
    assert_eq!(check(&run, "fast:errors<1%").value, Some(0.0));
    assert_eq!(check(&run, "fast:sent>1").value, Some(50.0));
}

/// A run with checks, a trend of times and one of numbers, a counter and a gauge.
fn with_metrics() -> Run {
    let mut run = RunSample::of(10, MS).label("login", 50, MS).run();
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
fn an_unknown_metric_tag_or_statistic_fails_and_says_what_there_is() {
    let run = with_metrics();
    for (text, why) in [
        ("nope:avg<3", "there is no metric \"nope\"; there are checks, hits, items, sizes, waits"),
        ("nope:p95<3ms", "there is no label or metric \"nope\"; there are the labels "),
        ("waits{name:nope}:p95<3ms", "has the tags {name:nope}; there are {name:home}, {name:log"),
        ("checks{check:nope}>1%", "there are {check:\"body, whole\"}, {check:status is 200}"),
        ("waits:p95<3", "write a time with its unit"),
        ("items:p95<3ms", "\"items\": write a plain number"),
        ("items:rate>3", "is a trend: it has p50, p95"),
        ("items{name:home}>3", "say what of it"),
        ("hits:value>3", "is a counter: it has count and rate"),
        ("sizes:avg<3MB", "is a gauge: it has value, min and max"),
        ("checks>3", "write a share, as 99%"),
        ("response{name:nope}:p95<1s", "there is no label \"nope\""),
    ] {
        let evaluation = check(&run, text);
        assert!(!evaluation.met && evaluation.value.is_none(), "{text}");
        assert!(evaluation.shown().contains(why), "{text}: {}", evaluation.shown());
    }
    let plain = RunSample::of(10, MS).run();
    assert_eq!(
        check(&plain, "checks>99%").shown(),
        "there is no metric \"checks\": the run has none of its own"
    );
    assert!("waits:p99<1ms".parse::<Objective>().unwrap().clause().is_ok());
    assert!("items:avg<1".parse::<Objective>().unwrap().clause().is_err());
}

#[test]
fn a_scenario_can_be_bounded() {
    let slow = RunSample::of(10, 20 * MS).run();
    let mut run = RunSample::of(90, 10 * MS).more(10, 20 * MS).run();
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
    let parts = [RunSample::of(90, 10 * MS).run(), slow, RunSample::of(5, 40 * MS).run()];
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
fn what_no_run_of_a_plan_can_have_is_known_before_it() {
    let mut registry = Registry::default();
    let (name, kind, unit) = ("waits".to_owned(), MetricKind::Trend, MetricUnit::Time);
    registry.define(Definition { name, kind, unit }).unwrap();
    let mut plan = RunSample::of(1, MS).run().plan;
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
    for (text, why) in [
        (
            "logn:p99<1s",
            "there is no label or metric \"logn\"; there are the labels login, the metrics waits",
        ),
        ("login:p99<50", "\"login\" is a label, whose times are bounded with their unit"),
        ("waits:p99<50", "write a time with its unit"),
        ("wait:count>1", "there is no metric \"wait\"; there are waits"),
        (
            "wait:avg<1s",
            "no label or metric \"wait\"; there are the labels login, the metrics waits",
        ),
        ("checks>99%", "there is no metric \"checks\"; there are waits"),
        ("response{scenario:ramp}:p99<1s", "there is no scenario \"ramp\"; there are default"),
    ] {
        assert!(check(text).unwrap_err().contains(why), "{text}: {:?}", check(text));
    }
}

#[test]
fn refuses_the_rest_and_says_why() {
    for (text, why) in [
        ("", "no <"),
        ("p99", "no <"),
        ("p99<", "nothing after"),
        ("p99<50", "no unit"),
        ("p99<-5ms", "not a duration"),
        ("p0<5ms", "not a percentile"),
        ("p101<5ms", "not a percentile"),
        ("p1e1<5ms", "not a percentile"),
        ("px<5ms", "not a percentile"),
        ("median<5ms", "nothing that is measured"),
        ("foo.p99<5ms", "no metric \"foo\""),
        ("service.foo<5ms", "nothing that is measured"),
        ("errors<0.1", "neither a share"),
        ("errors<101%", "not a percentage"),
        ("errors<NaN%", "not a percentage"),
        ("rate>=0", "not a rate"),
        ("rate>=max", "not a rate"),
        ("sent>=x", "not a rate"),
        (":p99<5ms", "label before the colon is empty"),
        ("response{name:a}<1s", "say what of response"),
        ("errors{name:a}:p95<1%", "nothing comes after its tags"),
        ("connect{name:a}:p95<1s", "of one label"),
        ("response{name:a}p95<1s", "comes a statistic"),
        ("hits:count>x", "is not a valid bound"),
        ("hits>10", "nothing that is measured"),
        ("a:connect.p99<5ms", "of one label"),
        ("p99==5ms", "no <"),
        ("p99=<5ms", "not a percentile"),
    ] {
        let error = text.parse::<Objective>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
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
    let flow = prop_oneof![Just(Flow::Completed), Just(Flow::Goodput), Just(Flow::Sent)];
    let quantity = prop_oneof![
        (measure, statistic, 0..1u64 << 50).prop_map(|(measure, statistic, bound)| {
            Quantity::Latency { measure, statistic, bound }
        }),
        (0.0..=100.0f64).prop_map(Quantity::ErrorPercent),
        any::<u64>().prop_map(Quantity::ErrorCount),
        any::<u64>().prop_map(Quantity::SentCount),
        (flow, 0.001..1e9f64).prop_map(|(of, bound)| Quantity::Rate { of, bound }),
    ];
    let operator = prop_oneof![
        Just(Operator::Less),
        Just(Operator::LessOrEqual),
        Just(Operator::Greater),
        Just(Operator::GreaterOrEqual),
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
        // A label that is not a tag has no braces.
        let is_free = label.as_ref().is_none_or(|label| label.is_tag);
        let scope = Scope { label, tags: if is_free { tags } else { Tags::default() } };
        Objective { claim: Claim::Builtin { scope, quantity }, operator }
    })
}

fn label() -> impl Strategy<Value = Option<Label>> {
    prop_oneof![
        Just(None),
        "[a-z/:]{0,6}[a-z]".prop_map(|name| Some(Label { name, is_tag: false })),
        "\\PC{0,8}".prop_map(|name| Some(Label { name, is_tag: true })),
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
        // Without tags some of these are what a label may claim too.
        let tags = if tags.is_empty() { Tags::new([("a", "b")]) } else { tags };
        let series = SeriesClaim { metric, tags, statistic: Some(statistic), bound };
        Objective { claim: Claim::Series(series), operator: Operator::GreaterOrEqual }
    })
}

proptest! {
    #[test]
    fn writes_what_it_reads(objective in objective()) {
        prop_assert_eq!(objective.to_string().parse::<Objective>(), Ok(objective));
    }

    #[test]
    fn writes_metrics_as_it_reads_them(objective in series_objective()) {
        prop_assert_eq!(objective.to_string().parse::<Objective>(), Ok(objective));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = text.parse::<Objective>();
    }
}
