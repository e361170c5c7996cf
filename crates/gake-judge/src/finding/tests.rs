//! Every finding at both sides of its threshold.

use gake_core::clock::SECOND;
use gake_core::record::{Phase, Point, Reading, Series};

use super::*;
use crate::objective::Unit;
use crate::testing::{MS, Sample, answered, healthy};

fn ids(run: &Run) -> Vec<&'static str> {
    find(run, &[]).into_iter().map(|finding| finding.id).collect()
}

fn base() -> Sample {
    Sample::of(10_000, 5 * MS)
}

#[test]
fn a_healthy_run_has_none() {
    assert_eq!(find(&healthy(), &[]), []);
    assert_eq!(find(&base().closed().run(), &[]), []);
}

#[test]
fn generator_cpu() {
    let mut run = healthy();
    run.generator.busiest = 0.84;
    assert!(ids(&run).is_empty());
    run.generator.busiest = 0.86;
    assert_eq!(ids(&run), ["generator_cpu"]);
    assert!(find(&run, &[])[0].advice.contains("--threads"));
    run.plan.spin = true;
    assert!(ids(&run).is_empty());
}

#[test]
fn run_delay() {
    let mut run = healthy();
    run.generator.run_delay = SECOND * 49 / 100;
    assert!(ids(&run).is_empty());
    run.generator.run_delay = SECOND * 51 / 100;
    assert_eq!(ids(&run), ["run_delay"]);
    run.generator.threads = 0;
    run.measured = 0;
    assert!(!ids(&run).contains(&"run_delay"));
}

#[test]
fn client_limits() {
    assert_eq!(ids(&base().fault(Fault::NoLocalPort, 1).run()), ["client_ports"]);
    assert_eq!(ids(&base().fault(Fault::NoDescriptors, 1).run()), ["client_descriptors"]);
}

#[test]
fn syn_drops_are_modes_of_the_connect_time() {
    let sample = base().connects(1_000, MS);
    let two = sample.clone().connects(2, SECOND + 10 * MS);
    assert!(ids(&two.run()).is_empty());
    let twelve = sample.clone().connects(12, SECOND + 10 * MS).connects(4, 3 * SECOND + 10 * MS);
    let findings = find(&twelve.clone().run(), &[]);
    assert_eq!(findings[0].id, "syn_drops");
    assert!(findings[0].evidence.contains("12 took about 1 s, 4 took about 3 s"));
    // The same mass spread over the neighbourhood is a slow server, not a lost SYN.
    let spread = twelve.connects(10, 700 * MS).connects(10, 2 * SECOND);
    assert!(!ids(&spread.run()).contains(&"syn_drops"));
    // A far away server connects in a second without any loss.
    let far = base().connects(1_000, SECOND + 10 * MS);
    assert!(ids(&far.run()).is_empty());
}

#[test]
fn accept_queue_needs_established_connections_that_lose_nothing() {
    let sample = base().connects(100, MS).connects(5, SECOND + 10 * MS);
    assert_eq!(ids(&sample.clone().run()), ["syn_drops", "accept_queue"]);
    let mut lossy = sample.run();
    lossy.tally.counts.retransmits = 500;
    assert_eq!(ids(&lossy), ["syn_drops", "retransmits"]);
    let few = base().connects(1_000, MS).fault(Fault::ConnectTimeout, 5);
    assert!(!ids(&few.run()).contains(&"accept_queue"));
    let many = base().connects(1_000, MS).fault(Fault::ConnectTimeout, 20);
    assert_eq!(ids(&many.run()), ["accept_queue", "timeouts"]);
}

#[test]
fn connection_limit_needs_others_to_be_served() {
    let few = base().connects(1_000, MS).fault(Fault::ConnectRefused, 5);
    assert!(ids(&few.run()).is_empty());
    let many = base().connects(1_000, MS).fault(Fault::ConnectRefused, 20);
    assert_eq!(ids(&many.run()), ["connection_limit"]);
    let all = Sample::default().fault(Fault::ConnectRefused, 100);
    assert_eq!(ids(&all.run()), ["unreachable"]);
}

#[test]
fn connection_limit_is_seen_in_who_is_never_answered() {
    // 10 connections at most; a run of 10 s.
    let sample = |starved, between| {
        base().more(between, 4 * SECOND).more(starved, 9 * SECOND).closed().in_flight(10.0)
    };
    assert!(ids(&sample(2, 0).run()).is_empty());
    assert_eq!(ids(&sample(4, 0).run()), ["connection_limit"]);
    assert!(find(&sample(4, 0).run(), &[])[0].evidence.contains("while the other 6 were"));
    // A distribution with a long tail, and a server that stood still.
    assert!(ids(&sample(4, 2).run()).is_empty());
    assert!(ids(&sample(10, 0).run()).is_empty());
    // In an open loop nobody waits for his turn.
    assert!(ids(&base().more(4, 9 * SECOND).run()).is_empty());
}

#[test]
fn a_queue_that_loses_syns_is_no_lossy_route() {
    let sample = base().connects(20, MS).connects(80, SECOND + 10 * MS);
    let mut run = sample.run();
    // The SYNs themselves, and segments to a server that has not accepted.
    run.tally.counts.retransmits = 80 + 3_000;
    assert_eq!(ids(&run), ["syn_drops", "accept_queue"]);
    // As many of the segments as of the SYNs.
    run.tally.counts.retransmits = 80 + 8_000;
    assert_eq!(ids(&run), ["syn_drops", "retransmits"]);
}

#[test]
fn blocked_arrivals() {
    let mut outcome = answered(5 * MS, 10 * MS, 10 * MS, 200);
    outcome.blocked = 5 * MS;
    assert!(ids(&base().add(90, outcome.clone()).run()).is_empty());
    assert_eq!(ids(&base().add(110, outcome).run()), ["blocked"]);
}

#[test]
fn pool_queueing_by_shape() {
    // 200 slots of 10 ms each serve 1,000 users: a few fast ones, then everybody waits 50 ms.
    let queue = |fast: u64| {
        Sample::default()
            .add(200, answered(0, fast, fast, 200))
            .add(9_800, answered(0, 50 * MS, 50 * MS, 200))
    };
    assert_eq!(ids(&queue(10 * MS).closed().run()), ["pool_queueing"]);
    assert!(ids(&queue(20 * MS).closed().run()).is_empty());
    // In an open loop below capacity the same shape may be the service's own.
    assert!(ids(&queue(10 * MS).run()).is_empty());
    // Times that differ by themselves: 100 to 500 ms at random.
    let random = (0..400).fold(Sample::default(), |sample, n| {
        let took = (100 + n) * MS;
        sample.add(5, answered(0, took, took, 200))
    });
    assert!(ids(&random.closed().run()).is_empty());
}

#[test]
fn pool_queueing_by_growth() {
    let mut run = Sample::of(10_000, 5 * MS).more(1, MS).run();
    let point = |second: u64, rate: u64, in_flight: f64, p50: u64| Point {
        second,
        seconds: 1,
        counts: Counts { ok: rate, ..Counts::default() },
        in_flight,
        p50,
        ..Point::default()
    };
    let series = |gain: u64| {
        let mut series = Series::default();
        for s in 0..9 {
            series.push(point(s, 100 + gain * s, 10.0 * (s + 1) as f64, (s + 1) * 10 * MS));
        }
        series
    };
    run.series = series(0);
    assert_eq!(ids(&run), ["pool_queueing"]);
    run.series = series(50);
    assert!(ids(&run).is_empty());
}

#[test]
fn bandwidth() {
    let run = |first: u64, size: u64| {
        let mut outcome = answered(0, first, 10 * MS, 200);
        outcome.exchange.bytes_in = size;
        Sample::default().add(1_000, outcome).run()
    };
    assert_eq!(ids(&run(3 * MS, 100_000)), ["bandwidth"]);
    assert!(ids(&run(5 * MS, 100_000)).is_empty());
    assert!(ids(&run(3 * MS, 10_000)).is_empty());
}

#[test]
fn server_errors() {
    assert!(ids(&base().status(503, 9).run()).is_empty());
    let run = base().status(503, 100).status(500, 20).run();
    let findings = find(&run, &[]);
    assert_eq!(findings[0].id, "server_errors");
    assert!(findings[0].evidence.contains("503 × 100, 500 × 20"), "{}", findings[0].evidence);
    let mut wanted = run;
    wanted.plan.expect = "2xx,5xx".parse().unwrap();
    assert!(!ids(&wanted).contains(&"server_errors"));
}

#[test]
fn server_closes() {
    assert!(ids(&base().fault(Fault::Reset, 9).run()).is_empty());
    assert_eq!(ids(&base().fault(Fault::Reset, 12).run()), ["server_closes"]);
    let mut run = base().run();
    run.tally.counts.stale_reconnects = 12;
    assert_eq!(ids(&run), ["server_closes"]);
}

#[test]
fn timeouts() {
    let fault = Fault::Timeout(Phase::FirstByte);
    assert!(ids(&base().fault(fault, 9).run()).is_empty());
    assert_eq!(ids(&base().fault(fault, 12).run()), ["timeouts"]);
}

#[test]
fn a_target_at_its_limit_says_so() {
    for (name, unit, below, at, id) in [
        ("cpu", gake_core::record::Unit::Share, 0.85, 0.93, "target_cpu"),
        ("pool", gake_core::record::Unit::Share, 0.9, 0.97, "target_pool"),
        ("db_pool", gake_core::record::Unit::Share, 0.9, 1.0, "target_db_pool"),
        ("connections", gake_core::record::Unit::Share, 0.9, 1.0, "target_connections"),
        ("descriptors", gake_core::record::Unit::Share, 0.9, 0.99, "target_descriptors"),
        ("listen_overflows", gake_core::record::Unit::PerSecond, 0.0, 40.0, "target_overflows"),
    ] {
        let with = |value| {
            let mut run = base().run();
            let (source, name) = ("port:80".to_owned(), name.to_owned());
            run.watched.add(0, &[Reading { source, name, unit, value }]);
            run
        };
        assert_eq!(ids(&with(below)), Vec::<&str>::new(), "{name}");
        assert_eq!(ids(&with(at)), [id]);
    }
}

#[test]
fn unknown_is_said_when_nothing_explains() {
    assert!(ids(&base().status(404, 9).run()).is_empty());
    let run = base().status(404, 12).run();
    assert_eq!(ids(&run), ["unknown"]);
    assert!(find(&run, &[])[0].evidence.contains("404 × 12"));
    let missed = Evaluation {
        text: "p99<1ms".to_owned(),
        value: Some(5e6),
        unit: Unit::Nanoseconds,
        met: false,
        problem: None,
    };
    assert_eq!(find(&healthy(), std::slice::from_ref(&missed))[0].id, "unknown");
    // A finding explains it.
    let explained = find(&base().fault(Fault::Reset, 12).run(), &[missed]);
    assert!(explained.iter().all(|finding| finding.id != "unknown"));
}
