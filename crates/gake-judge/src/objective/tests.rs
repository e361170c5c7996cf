//! Objectives: read, written, compared.

use gake_core::record::{Fault, Reading};
use proptest::prelude::*;

use super::*;
use crate::testing::{MS, Sample};

fn check(run: &Run, text: &str) -> Evaluation {
    text.parse::<Objective>().unwrap().evaluate(&View::of(run))
}

#[test]
fn compares_with_what_was_measured() {
    // 1,000/s for 10 s: 9,900 answers in 10 ms, 80 in 100 ms, 20 resets.
    let run =
        Sample::of(9_900, 10 * MS).more(80, 100 * MS).fault(Fault::Reset, 20).asked(10_000.0).run();
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
    let mut run = Sample::of(90, MS).run();
    let reading = |name: &str, unit, value| Reading {
        source: "port:1".to_owned(),
        name: name.to_owned(),
        unit,
        value,
    };
    for (second, cpu) in [(0, 0.5), (1, 1.0)] {
        let levels = [
            reading("cpu", gake_core::record::Unit::Share, cpu),
            reading("rss", gake_core::record::Unit::Bytes, 9e8 * cpu),
            reading("accept_queue", gake_core::record::Unit::Count, 128.0),
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
    let mut run = Sample::of(90, MS).run();
    run.tally.record_dropped(MS);
    run.tally.counts.sent += 9;
    run.tally.counts.unfinished += 9;
    assert_eq!(check(&run, "errors<50%").value, Some(10.0));
    assert_eq!(check(&run, "errors<=10").value, Some(10.0));
}

#[test]
fn no_sample_is_not_met_and_said() {
    let run = Sample::of(10, MS).run();
    let evaluation = check(&run, "tls.p99<1s");
    assert!(!evaluation.met && evaluation.value.is_none());
    assert_eq!(evaluation.shown(), "no sample");
    assert_eq!(check(&run, "nope:p99<1s").shown(), "there is no label \"nope\"");
}

#[test]
fn a_label_has_its_own_figures() {
    let run = Sample::of(10, MS).label("fast", 50, MS).label("slow: a", 50, 80 * MS).run();
    assert!(check(&run, "fast:p99<2ms").met);
    assert!(!check(&run, "slow: a:p99<2ms").met);
    assert!(check(&run, "slow: a:service.p99<81ms").met);
    assert_eq!(check(&run, "fast:errors<1%").value, Some(0.0));
    assert_eq!(check(&run, "fast:sent>1").value, Some(50.0));
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
        Just(Measure::Of(Metric::Service)),
        Just(Measure::Of(Metric::OkResponse)),
        Just(Measure::Of(Metric::FirstByte)),
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
    (quantity, operator).prop_map(|(quantity, operator)| Objective {
        label: None,
        quantity,
        operator,
    })
}

proptest! {
    #[test]
    fn writes_what_it_reads(objective in objective()) {
        prop_assert_eq!(objective.to_string().parse::<Objective>(), Ok(objective));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = text.parse::<Objective>();
    }
}
