//! Properties of tallies and histograms.

use proptest::prelude::*;

use super::*;
use crate::record::{Exchange, Phase};
use crate::schedule::Arrival;

fn outcome() -> impl Strategy<Value = Outcome> {
    let end = prop_oneof![
        (200u16..600)
            .prop_map(|status| ExchangeEnd::Response(ResponseSummary { status, body_bytes: 12 })),
        Just(ExchangeEnd::Fault(Fault::Reset)),
        Just(ExchangeEnd::Fault(Fault::Timeout(Phase::Body))),
        Just(ExchangeEnd::Fault(Fault::Malformed("bad_status_line"))),
        Just(ExchangeEnd::Unfinished),
    ];
    (0..1u64 << 40, 0..1u64 << 35, end, 0u16..4, any::<bool>()).prop_map(
        |(due, took, end, label, written)| Outcome {
            arrival: Arrival { number: 0, due },
            blocked: took / 8,
            fired: due + took / 4,
            exchange: Exchange {
                label,
                written,
                write: due + took / 4,
                first_byte: Some(due + took / 2),
                done: due + took,
                end,
                bytes_in: took % 100,
                ..Exchange::unfinished(0)
            },
        },
    )
}

fn tally(outcomes: &[Outcome]) -> Tally {
    let mut tally = Tally::new(3);
    for outcome in outcomes {
        tally.record(outcome, &ExpectedStatus::default());
    }
    tally
}

fn merged(a: &Tally, b: &Tally) -> Tally {
    let mut all = a.clone();
    all.merge(b);
    all
}

fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    proptest::collection::vec(outcome(), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merge_is_associative_and_commutative(a in outcomes(), b in outcomes(), c in outcomes()) {
        let (ta, tb, tc) = (tally(&a), tally(&b), tally(&c));
        prop_assert_eq!(merged(&ta, &tb), merged(&tb, &ta));
        prop_assert_eq!(merged(&merged(&ta, &tb), &tc), merged(&ta, &merged(&tb, &tc)));
    }

    #[test]
    fn merging_is_recording_everything(a in outcomes(), b in outcomes()) {
        let whole: Vec<_> = a.iter().chain(&b).cloned().collect();
        prop_assert_eq!(merged(&tally(&a), &tally(&b)), tally(&whole));
    }

    #[test]
    fn every_arrival_is_accounted_for(all in outcomes()) {
        let tally = tally(&all);
        let counts = tally.counts;
        prop_assert_eq!(counts.sent + counts.unsent, all.len() as u64);
        prop_assert_eq!(counts.due(), counts.sent + counts.unsent + counts.dropped);
        prop_assert_eq!(counts.sent, counts.ok + counts.failed + counts.unfinished);
        let samples = tally.latency.response().count()
            + tally.latency.of(LatencyMetric::FaultResponse).count();
        prop_assert_eq!(samples, counts.due());
        let responses: u64 = tally.statuses().iter().map(|s| s.1).sum();
        prop_assert_eq!(
            responses + tally.faults_where(|_| true) + counts.unfinished,
            counts.sent + counts.unsent
        );
    }

    #[test]
    fn a_cleared_tally_is_a_new_one(all in outcomes(), next in outcomes()) {
        let mut cleared = tally(&all);
        cleared.clear();
        prop_assert_eq!(&cleared, &Tally::new(3));
        for outcome in &next {
            cleared.record(outcome, &ExpectedStatus::default());
        }
        prop_assert_eq!(cleared, tally(&next));
    }

    #[test]
    fn quantiles_are_within_the_histograms_error(
        mut values in proptest::collection::vec(1..1u64 << 42, 1..300), q in 0.0..=1.0f64,
    ) {
        let mut histogram = Histogram::new();
        for &value in &values {
            histogram.record(value);
        }
        values.sort_unstable();
        let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = values[rank - 1] as f64;
        let got = histogram.quantile(q) as f64;
        // Floating error may move a rank by one when q·n is nearly whole.
        let near = |v: f64| (got - v).abs() <= v * 0.001 + 1.0;
        let next = values[rank.min(values.len() - 1)] as f64;
        let previous = values[rank.saturating_sub(2)] as f64;
        prop_assert!(near(exact) || near(next) || near(previous), "{got} against {exact}");
        prop_assert_eq!(histogram.min(), values[0]);
        prop_assert_eq!(histogram.max(), *values.last().unwrap());
        let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
        prop_assert_eq!(histogram.sum(), sum);
    }
}

#[test]
fn a_fast_fault_is_not_in_the_response_times() {
    let fault = Outcome {
        arrival: Arrival { number: 0, due: 0 },
        blocked: 0,
        fired: 0,
        exchange: Exchange::faulted(5, Fault::ConnectRefused),
    };
    let tally = tally(&[fault]);
    assert!(tally.latency.response().is_empty());
    assert_eq!(tally.latency.of(LatencyMetric::FaultResponse).count(), 1);
}

#[test]
fn a_dropped_arrival_is_due_and_waited() {
    let mut tally = Tally::new(1);
    tally.record_dropped(1_000_000);
    assert_eq!((tally.counts.due(), tally.counts.sent), (1, 0));
    assert_eq!(tally.latency.response().max(), 1_000_000);
}

#[test]
fn ten_million_requests_take_no_megabyte_more_than_one_million() {
    // Two workers with a tally and a spare each, the second being joined, and the sum. A second has
    // 100,000 requests with heavy-tailed latencies.
    let mut workers = [Tally::new(0), Tally::new(0)];
    let mut spares = [Tally::new(0), Tally::new(0)];
    let (mut second, mut whole) = (Tally::new(0), Tally::new(0));
    let (mut number, mut at_a_million) = (0_u64, 0);
    let mut peak = 0;
    for at in 1..=100 {
        for n in 0..100_000_usize {
            number += 1;
            let chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
            let took = (5e4 * (chance as f64 / (1_u64 << 53) as f64).powf(-1.2)) as u64;
            let due = at * 1_000_000_000;
            let end = ExchangeEnd::Response(ResponseSummary { status: 200, body_bytes: 12 });
            let (write, done) = (due + took / 50, due + took);
            let first_byte = Some(due + took / 2);
            let exchange = Exchange { write, first_byte, done, end, ..Exchange::unfinished(0) };
            let arrival = Arrival { number, due };
            let outcome = Outcome { arrival, blocked: 0, fired: write, exchange };
            workers[n % 2].record(&outcome, &ExpectedStatus::default());
        }
        let bytes = |tallies: &[Tally]| tallies.iter().map(Tally::heap_bytes).sum::<usize>();
        second.clear();
        workers.iter().for_each(|worker| second.merge(worker));
        whole.merge(&second);
        let bytes = bytes(&workers) + bytes(&spares) + second.heap_bytes() + whole.heap_bytes();
        peak = peak.max(bytes);
        if at == 10 {
            at_a_million = peak;
        }
        workers.iter_mut().for_each(Tally::clear);
        std::mem::swap(&mut workers, &mut spares);
    }
    assert_eq!(whole.counts.ok, 10_000_000);
    let more = peak - at_a_million;
    assert!(more < 1_000_000, "{more} more than {at_a_million}");
}
