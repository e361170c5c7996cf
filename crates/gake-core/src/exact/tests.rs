//! Properties of the exact encoding.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use gake_text::redact::Redacted;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::Load;
use crate::metric::{Definition, MetricKind, MetricUnit, Tags};
use crate::plan::{ExpectedStatus, Overflow, Plan, Stage, UserStage};
use crate::record::{
    AgentRecord, Counts, Exchange, ExchangeEnd, FailedBodies, Fault, GaugeReading, Generator,
    LevelUnit, Outcome, Phase, Provenance, ResponseSummary, RunEnd, RunEvent, ScenarioEnd,
    ScenarioInterval, ScenarioRun, Series, SeriesPoint, WatchRecord, WorkerEnd,
};
use crate::schedule::{Process, Trace};
use crate::spec::{RequestSource, ScenarioSpec};
use crate::work::{Arrival, Gauges};

fn outcome() -> impl Strategy<Value = Outcome> {
    let end = prop_oneof![
        (200u16..600)
            .prop_map(|status| ExchangeEnd::Response(ResponseSummary { status, body_bytes: 12 })),
        Just(ExchangeEnd::Fault(Fault::Timeout(Phase::Body))),
        Just(ExchangeEnd::Fault(Fault::Malformed("bad_status_line"))),
        Just(ExchangeEnd::Fault(Fault::Other(104))),
        Just(ExchangeEnd::Unfinished),
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
    (vec(outcome(), 0..100), vec(sample, 0..30), 0..1u64 << 58, 0usize..4).prop_map(of)
}

fn of((outcomes, samples, in_flight, labels): (Vec<Outcome>, Vec<Sample>, u64, usize)) -> Tally {
    let mut tally = Tally::new(labels);
    outcomes.iter().for_each(|outcome| tally.record(outcome, &ExpectedStatus::default()));
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

fn failed_bodies() -> FailedBodies {
    let mut bodies = FailedBodies::default();
    bodies.add(503, b"full");
    bodies
}

fn interval() -> impl Strategy<Value = Interval> {
    (vec(tally(), 0..3), 0..1u64 << 56, any::<u32>()).prop_map(|(tallies, cpu, tenth)| Interval {
        worker: 3,
        tenth: tenth.into(),
        scenarios: tallies
            .into_iter()
            .zip(0..)
            .map(|(tally, scenario)| ScenarioInterval {
                scenario,
                warmup: Counts { sent: 3, ok: 3, started: 5, ..Counts::default() },
                gauges: Gauges { open: cpu, peak: cpu / 2 },
                bodies: failed_bodies(),
                tally,
            })
            .collect(),
        cpu,
        run_delay: cpu / 3,
    })
}

fn again<T: ExactEncoding>(value: &T) -> T {
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
            for part in changed.scenarios.iter().chain(&interval.scenarios) {
                sum.merge(&part.tally);
                sum.counts.merge(&part.warmup);
            }
            let _ = (sum.counts.finished(), sum.counts.due(), sum.latency.response().quantile(0.9));
        }
    }
}

fn scenario_end() -> impl Strategy<Value = ScenarioEnd> {
    let instants = [0..NUMBER_MAX, 0..NUMBER_MAX, 0..NUMBER_MAX, 0..NUMBER_MAX];
    (instants, any::<bool>()).prop_map(
        |([arrivals_end, last_fired, last_ended, done], exhausted)| ScenarioEnd {
            arrivals_end,
            last_fired,
            last_ended,
            done,
            exhausted,
        },
    )
}

fn worker_end() -> impl Strategy<Value = WorkerEnd> {
    (0usize..999, vec((0usize..9, scenario_end()), 0..5), 0..NUMBER_MAX)
        .prop_map(|(worker, scenarios, log_lost)| WorkerEnd { worker, scenarios, log_lost })
}

proptest! {
    #[test]
    fn ends_come_back_as_they_were(worker in worker_end(), scenario in scenario_end()) {
        prop_assert_eq!(again(&worker), worker);
        prop_assert_eq!(again(&scenario), scenario);
    }

    #[test]
    fn merging_ends_commutes_with_it(a in scenario_end(), b in scenario_end(), c in scenario_end()) {
        let merged = |first: ScenarioEnd, second: &ScenarioEnd| {
            let mut sum = first;
            sum.merge(second);
            sum
        };
        prop_assert_eq!(again(&merged(a, &b)), merged(again(&a), &again(&b)));
        prop_assert_eq!(merged(a, &b), merged(b, &a));
        prop_assert_eq!(merged(merged(a, &b), &c), merged(a, &merged(b, &c)));
        prop_assert_eq!(merged(a, &ScenarioEnd::default()), a);
    }

    #[test]
    fn changed_bytes_of_an_end_are_read_or_refused(
        end in worker_end(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&end).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(changed) = decode::<WorkerEnd>(&bytes) {
            let mut sum = ScenarioEnd::default();
            changed.scenarios.iter().for_each(|(_, end)| sum.merge(end));
            prop_assert!(sum.instants().into_iter().all(|instant| instant <= NUMBER_MAX));
        }
    }
}

#[test]
fn ends_that_no_run_has_are_refused() {
    let end = |done: u64| {
        format!(
            r#"{{"arrivals_end":0,"last_fired":0,"last_ended":0,"done":{done},"exhausted":false}}"#
        )
    };
    let scenario = |done| format!("gake.scenario-end/1\n{}", end(done));
    assert!(decode::<ScenarioEnd>(scenario(NUMBER_MAX).as_bytes()).is_ok());
    let far = decode::<ScenarioEnd>(scenario(NUMBER_MAX + 1).as_bytes());
    assert!(matches!(far, Err(ExactError::TooLarge(_))), "{far:?}");
    let worker = |scenarios: &str| {
        let json = format!(r#"{{"worker":1,"scenarios":[{scenarios}],"log_lost":0}}"#);
        decode::<WorkerEnd>(format!("gake.worker-end/1\n{json}").as_bytes())
    };
    assert!(worker(&format!("[0,{}]", end(5))).is_ok());
    let many = vec![format!("[0,{}]", end(5)); SCENARIOS_MAX + 1].join(",");
    assert!(matches!(worker(&many), Err(ExactError::TooLarge(_))));
    assert!(matches!(worker("[0]"), Err(ExactError::Invalid { .. })));
}

#[test]
fn a_spec_comes_back_as_it_was() {
    let source = RequestSource::Url("http://h/a?b=c".to_owned());
    let mut spec = RunSpec::new(ScenarioSpec::new(source, Load::closed(5)));
    spec.objectives.push("response{name:a}:p(95)<50ms".to_owned());
    assert_eq!(again(&spec), spec);
    assert!(decode::<RunSpec>(b"gake.spec/1\n{\"scenario\":[]}").is_err());
}

#[test]
fn other_kinds_and_invalid_values_are_rejected() {
    let tally = encode(&Tally::default()).unwrap();
    let error = decode::<Interval>(&tally).unwrap_err().to_string();
    expect![[r#"expected gake.interval/2, found "gake.tally/1": both sides need the same version of gake"#]].assert_eq(&error);
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
        assert!(matches!(decode::<Tally>(&bytes), Err(ExactError::Invalid { .. })), "{json}");
    }
}

fn load() -> impl Strategy<Value = Load> {
    let time = || (0u64..1 << 40).prop_map(Duration::from_nanos);
    let stage = (0.0..1e6f64, 0.0..1e6f64, prop_oneof![time(), Just(Duration::MAX)])
        .prop_map(|(from, to, duration)| Stage { from, to, duration });
    let users = (0usize..50, 0usize..50, time()).prop_map(|(from, to, duration)| UserStage {
        from,
        to,
        duration,
    });
    let process = prop_oneof![
        Just(Process::Uniform),
        Just(Process::Poisson),
        (1u64..9, 0u64..1 << 30).prop_map(|(size, jitter)| Process::Bursts { size, jitter }),
    ];
    prop_oneof![
        (vec(stage, 1..4), process).prop_map(|(stages, process)| Load::Open { stages, process }),
        (1u64..9, 1u64..1 << 40, 0.1..9f64, 1u64..9).prop_map(|(n, length, speed, peak)| {
            Load::Replay { speed, trace: Some(Trace::described(n, length, peak)) }
        }),
        (1usize..9, time()).prop_map(|(users, think)| Load::Closed { users, think }),
        (1usize..9, time()).prop_map(|(users, pace)| Load::Paced { users, pace }),
        (vec(users, 1..4), time(), time()).prop_map(|(stages, graceful_ramp_down, think)| {
            Load::Ramping { stages, graceful_ramp_down, think }
        }),
        (1usize..9, 1u64..99).prop_map(|(users, iterations)| Load::Shared { users, iterations }),
        (1usize..9, 1u64..99).prop_map(|(users, iterations)| Load::PerUser { users, iterations }),
        (1usize..9, 9usize..99).prop_map(|(users, max)| Load::External { users, max }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let overflow = prop_oneof![
        Just(Overflow::Wait),
        Just(Overflow::Drop),
        (0usize..9).prop_map(|waiting| Overflow::Queue { waiting }),
    ];
    let some = (prop::option::of(0.1..1e4f64), prop::option::of(1u64..99), any::<bool>());
    (load(), overflow, some, "\\PC{0,8}").prop_map(|(load, overflow, some, text)| {
        let (connect_rate, requests, keepalive) = some;
        Plan {
            overflow,
            connect_rate,
            requests,
            keepalive,
            tags: vec![(text.clone(), "value".to_owned())],
            expect: if keepalive { "200,404".parse().unwrap() } else { ExpectedStatus::default() },
            duration: requests.map(Duration::from_millis),
            labels: vec![text.clone(); usize::from(keepalive)],
            ..Plan::new(text, load)
        }
    })
}

/// A run of one scenario, or of two with the same figures.
fn run() -> impl Strategy<Value = Run> {
    let reading = ("[a-c]", -1e9..1e9f64, 0u64..1 << 40);
    let ending = prop_oneof![
        Just(RunEnd::Done),
        Just(RunEnd::Interrupted),
        Just(RunEnd::OutOfTargets),
        "\\PC{0,8}".prop_map(RunEnd::Aborted),
    ];
    let rest = (any::<u64>(), 0u64..1 << 50, prop::option::of(0.0..1e6f64), any::<bool>());
    (plan(), vec(tally(), 1..4), vec(reading, 0..20), ending, rest).prop_map(
        |(plan, tallies, readings, ending, (started, time, asked_rate, several))| {
            let mut series = Series::default();
            let mut whole = Tally::new(plan.labels.len());
            for (second, tally) in (0..).zip(&tallies) {
                let asked = asked_rate.filter(|_| several);
                series.push(SeriesPoint { asked, open: second, ..SeriesPoint::new(second, tally) });
                whole.merge(tally);
            }
            let mut watched = WatchRecord::default();
            for (name, value, at) in readings {
                let reading = GaugeReading {
                    source: "pid:1".to_owned(),
                    name,
                    unit: LevelUnit::Bytes,
                    value,
                };
                watched.add(at, &[reading]);
            }
            let part = |name: &str| ScenarioRun {
                plan: Plan { name: name.to_owned(), ..plan.clone() },
                measured: time,
                sending: time,
                completing: time,
                asked_rate,
                tally: whole.clone(),
                warmup: Counts { started: 3, ..Counts::default() },
            };
            let scenarios = if several { vec![part("a"), part("b")] } else { Vec::new() };
            let plans: Vec<_> = scenarios.iter().map(|part| part.plan.clone()).collect();
            Run {
                plan: if several { Plan::new("two", plans) } else { plan.clone() },
                origin: Provenance {
                    commands: vec![Redacted::plain("gake run")],
                    ..Provenance::default()
                },
                started_unix_ns: started,
                measured: time,
                sending: time + 1,
                completing: time + 2,
                elapsed: time + 3,
                ending,
                asked_rate,
                tally: whole.clone(),
                warmup: Counts { started: 6, ..Counts::default() },
                series,
                peak_connections: 7,
                generator: Generator { cpu: time, busiest: 0.1 + 0.2, ..Generator::default() },
                events: vec![RunEvent::new(time, "it rained")],
                agents: vec![AgentRecord {
                    name: "a".to_owned(),
                    lost_ns: Some(5),
                    validity: "valid".to_owned(),
                    reasons: vec!["late".to_owned()],
                    sent: 3,
                    lateness_p99_ns: 7,
                }],
                watched,
                bodies: failed_bodies(),
                scenarios,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_comes_back_as_it_was(run in run()) {
        prop_assert_eq!(again(&run), run);
    }

    #[test]
    fn changed_bytes_of_a_run_are_read_or_refused(
        run in run(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encode(&run).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(changed) = decode::<Run>(&bytes) {
            let mut series = changed.series.at_most(1);
            run.series.points().iter().for_each(|point| series.push(point.clone()));
            let _ = (series.at_most(1), changed.watched.gauges().len(), changed.plan.to_string());
        }
    }
}
