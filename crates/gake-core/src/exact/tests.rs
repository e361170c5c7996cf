//! Properties of the exact encoding.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::metric::{Definition, MetricKind, MetricUnit, Tags};
use crate::plan::Expect;
use crate::record::{Answer, Counts, End, Exchange, Fault, IntervalPart, Outcome, Phase};
use crate::spec::{LoadSpec, RequestSource, ScenarioSpec};
use crate::work::{Arrival, Gauges};

fn outcome() -> impl Strategy<Value = Outcome> {
    let end = prop_oneof![
        (200u16..600).prop_map(|status| End::Answered(Answer { status, body_bytes: 12 })),
        Just(End::Fault(Fault::Timeout(Phase::Body))),
        Just(End::Fault(Fault::Malformed("bad_status_line"))),
        Just(End::Fault(Fault::Other(104))),
        Just(End::Unfinished),
    ];
    (0..1u64 << 40, 0..1u64 << 35, end, 0u16..4).prop_map(|(due, took, end, label)| Outcome {
        arrival: Arrival { number: 0, due },
        blocked: took / 8,
        fired: due + took / 4,
        exchange: Exchange {
            label,
            write: due + took / 4,
            first_byte: Some(due + took / 2),
            done: due + took,
            end,
            bytes_in: took % 100,
            ..Exchange::unfinished(0)
        },
    })
}

/// A metric by its kind, a tag's value, a value and an instant.
type Sample = (usize, String, f64, u64);

fn tally() -> impl Strategy<Value = Tally> {
    let value = prop_oneof![-1e3..1e3, (0..100u32).prop_map(f64::from), Just(f64::NAN)];
    let sample = (0..4usize, "\\PC{0,4}", value, 0..1u64 << 40);
    (vec(outcome(), 0..100), vec(sample, 0..30), any::<u64>(), 0usize..4).prop_map(of)
}

fn of((outcomes, samples, in_flight, labels): (Vec<Outcome>, Vec<Sample>, u64, usize)) -> Tally {
    let mut tally = Tally::new(labels);
    outcomes.iter().for_each(|outcome| tally.record(outcome, &Expect::default()));
    for (kind, tag, value, at) in samples {
        let kind = MetricKind::ALL[kind];
        let (name, unit) = (kind.name().to_owned(), MetricUnit::ALL[tag.len() % 3]);
        let metric = Arc::new(Definition { name, kind, unit });
        let series = tally.series.intern(&metric, &Tags::new([("tag", tag)]));
        tally.series.add(series, value, at);
    }
    tally.in_flight_ns = u128::from(in_flight) << 40;
    tally.fired = in_flight / 7;
    tally
}

fn interval() -> impl Strategy<Value = Interval> {
    (vec(tally(), 0..3), 0..1u64 << 56, any::<u32>()).prop_map(|(tallies, cpu, second)| Interval {
        worker: 3,
        second: second.into(),
        parts: tallies
            .into_iter()
            .zip(0..)
            .map(|(tally, scenario)| IntervalPart {
                scenario,
                warmup: Counts { sent: 3, ok: 3, started: 5, ..Counts::default() },
                gauges: Gauges { open: cpu, peak: cpu / 2 },
                tally,
            })
            .collect(),
        cpu,
        run_delay: cpu / 3,
    })
}

fn again<T: Exact>(value: &T) -> T {
    decode(&encode(value).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_interval_comes_back_as_it_was(interval in interval()) {
        prop_assert_eq!(again(&interval), interval);
    }

    #[test]
    fn merging_commutes_with_it(a in tally(), b in tally()) {
        let (mut plain, mut decoded) = (a.clone(), again(&a));
        plain.merge(&b);
        decoded.merge(&again(&b));
        prop_assert_eq!(&again(&plain), &decoded);
        prop_assert_eq!(plain, decoded);
    }

    #[test]
    fn changed_bytes_are_read_or_refused_and_can_be_merged(
        interval in interval(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&interval).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(changed) = decode::<Interval>(&bytes) {
            let mut sum = Tally::default();
            for part in changed.parts.iter().chain(&interval.parts) {
                sum.merge(&part.tally);
                sum.counts.merge(&part.warmup);
            }
            let _ = (sum.counts.finished(), sum.counts.due(), sum.latency.response().quantile(0.9));
        }
    }
}

#[test]
fn a_spec_comes_back_as_it_was() {
    let source = RequestSource::Url("http://h/a?b=c".to_owned());
    let mut spec = RunSpec::new(ScenarioSpec::new(source, LoadSpec::closed(5)));
    spec.objectives.push("response{name:a}:p(95)<50ms".to_owned());
    assert_eq!(again(&spec), spec);
    assert!(decode::<RunSpec>(b"gake.spec/1\n{\"scenario\":[]}").is_err());
}

#[test]
fn other_things_are_refused_by_name() {
    let tally = encode(&Tally::default()).unwrap();
    let error = decode::<Interval>(&tally).unwrap_err().to_string();
    assert_eq!(
        error,
        "expected gake.interval/1, found \"gake.tally/1\": both sides need the same version of gake"
    );
    assert!(decode::<Tally>(&vec![b' '; READ_MAX + 1]).is_err());
    for json in [
        r#"{"counts":{"sent":2,"ok":1}}"#,
        r#"{"counts":{"sent":72057594037927937,"ok":72057594037927937}}"#,
        r#"{"counts":{"started":1,"interrupted":2}}"#,
        r#"{"latency":{"nope":""}}"#,
        r#"{"latency":{"service":"AA"}}"#,
        r#"{"faults":[{"name":"nope","count":1}]}"#,
        r#"{"in_flight_ns":"-1"}"#,
        r#"{"series":{"series":[{"metric":"a","value":{"rate":{"passed":2,"samples":1}}}]}}"#,
    ] {
        let bytes = [b"gake.tally/1\n", json.as_bytes()].concat();
        assert!(matches!(decode::<Tally>(&bytes), Err(ExactError::Senseless { .. })), "{json}");
    }
}
