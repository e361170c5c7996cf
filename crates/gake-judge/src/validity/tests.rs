//! Every rule at both sides of its thresholds.

use expect_test::expect;
use gake_core::clock::SECOND;
use gake_core::plan::Stage;
use gake_core::record::{GaugeReading, LevelUnit, MACHINE, Outcome};

use super::*;
use crate::testing::{MS, RunBuilder, answered, healthy};

/// The level of one rule on a run.
fn level_of(run: &Run, rule: &str) -> Validity {
    let (worst, reasons) = check(run);
    let level = reasons.iter().find(|r| r.rule == rule).map_or(Valid, |r| r.level);
    assert!(worst >= level);
    level
}

use Validity::{Invalid, Suspect, Valid};

#[test]
fn a_healthy_run_has_no_reason() {
    assert_eq!(check(&healthy()), (Valid, vec![]));
}

#[test]
fn counts_that_differ_are_invalid() {
    let mut run = healthy();
    assert_eq!(level_of(&run, "accounts"), Valid);
    run.generator.miscounted = 1;
    assert_eq!(level_of(&run, "accounts"), Invalid);
}

#[test]
fn an_abandoned_worker_is_no_defect_of_the_counts() {
    let mut run = healthy();
    run.generator.abandoned = 1;
    let (worst, reasons) = check(&run);
    assert_eq!(worst, Invalid);
    expect!["1 worker blocked and had to be abandoned, without the figures since the last report: the events name the call"].assert_eq(&reasons[0].text);
    assert_eq!(reasons.len(), 1);
}

#[test]
fn nothing_sent_is_invalid() {
    let mut run = healthy();
    run.tally = gake_core::record::Tally::new(0);
    assert_eq!(level_of(&run, "nothing_sent"), Invalid);
    assert_eq!(level_of(&healthy(), "nothing_sent"), Valid);
}

#[test]
fn lateness_needs_both_its_size_and_its_share() {
    let run = |late: u64, response: u64| {
        RunBuilder::default().add(1_000, answered(late, response, response, 200)).run()
    };
    for (late, response, level) in [
        (MS - MS / 50, 2 * MS, Valid),
        (MS + MS / 50, 2 * MS, Suspect),
        (MS + MS / 50, 20 * MS, Valid),
        (9 * MS, 10 * MS, Suspect),
        (11 * MS, 20 * MS, Invalid),
        (11 * MS, 24 * MS, Suspect),
        (11 * MS, 200 * MS, Valid),
    ] {
        assert_eq!(level_of(&run(late, response), "lateness"), level, "{late} of {response}");
    }
}

#[test]
fn users_who_never_began() {
    let run = |requests| RunBuilder::of(requests, 2 * MS).closed().run();
    for (requests, users, level) in [
        (1_000, 1_000, Valid),
        (1_000, 1_010, Valid),
        (1_000, 1_011, Suspect),
        (1_000, 1_052, Suspect),
        (1_000, 1_053, Invalid),
        (9_000, 1_000, Valid),
    ] {
        let mut run = run(requests);
        run.plan.load = Load::closed(users).into();
        assert_eq!(level_of(&run, "users"), level, "{requests} of {users}");
    }
    let few = || {
        let mut run = run(10);
        assert_eq!(level_of(&run, "users"), Invalid);
        run.plan.requests = Some(10);
        run
    };
    assert_eq!(level_of(&few(), "users"), Valid);
    let mut warmed = few();
    warmed.plan.requests = None;
    warmed.plan.warmup = std::time::Duration::from_secs(1);
    assert_eq!(level_of(&warmed, "users"), Valid);
    let mut interrupted = few();
    interrupted.plan.requests = None;
    interrupted.ending = RunEnd::Interrupted;
    assert_eq!(level_of(&interrupted, "users"), Valid);
}

#[test]
fn lateness_of_few_requests_is_counted() {
    let run = |late: u64, of: u64| {
        RunBuilder::of(of - late, 2 * MS).add(late, answered(30 * MS, 32 * MS, 32 * MS, 200)).run()
    };
    for (late, of, level) in
        [(1, 10, Valid), (9, 10, Valid), (9, 999, Valid), (10, 40, Invalid), (10, 999, Invalid)]
    {
        assert_eq!(level_of(&run(late, of), "lateness"), level, "{late} of {of}");
    }
    let (_, reasons) = check(&run(10, 40));
    expect!["10 of 40 requests left more than 10.0 ms late (median response 2.00 ms): the generator ran late"].assert_eq(&reasons[0].text);
    let (_, reasons) = check(&run(40, 1_000));
    expect!["p99 send delay 30.0 ms (median response 2.00 ms): the generator ran late"]
        .assert_eq(&reasons[0].text);
}

#[test]
fn a_closed_loop_that_starves_is_suspect() {
    let run = |run_delay: u64, builder: RunBuilder| {
        let mut run = builder.run();
        (run.generator.run_delay, run.generator.cpu) = (run_delay, SECOND);
        run
    };
    let closed = || RunBuilder::of(10_000, 2 * MS).closed();
    let (_, reasons) = check(&run(4 * SECOND, closed()));
    expect!["the workers waited for a core 40 % of their time, longer than they had one: the server may be faster"].assert_eq(&reasons[0].text);
    assert_eq!(level_of(&run(4 * SECOND, closed()), "run_delay"), Suspect);
    assert_eq!(level_of(&run(SECOND, closed()), "run_delay"), Valid);
    assert_eq!(level_of(&run(4 * SECOND, RunBuilder::of(10_000, 2 * MS)), "run_delay"), Valid);
}

#[test]
fn a_busy_machine_is_distinguished_from_a_slow_generator() {
    // 4 % of the requests are late.
    let run = |run_delay: u64, busiest: f64| {
        let mut run =
            RunBuilder::of(960, 2 * MS).add(40, answered(30 * MS, 32 * MS, 32 * MS, 200)).run();
        (run.generator.run_delay, run.generator.busiest) = (run_delay, busiest);
        run
    };
    let lateness = |run: &Run| {
        let (_, reasons) = check(run);
        let reason = reasons.into_iter().find(|reason| reason.rule == "lateness").unwrap();
        assert_eq!(reason.level, Invalid);
        reason.text
    };
    let away = lateness(&run(3 * SECOND / 10, 0.2));
    expect!["p99 send delay 30.0 ms (median response 2.00 ms): the machine was busy, not the generator: its workers waited for a core 3.0 % of their time"].assert_eq(&away);
    for own in [run(SECOND / 10, 0.2), run(3 * SECOND / 10, 0.9)] {
        assert!(lateness(&own).ends_with(": the generator ran late"), "{}", lateness(&own));
    }
    // Each of 3,400 late requests waited 30 ms for a core by itself, on one of many workers.
    let late = answered(30 * MS, 32 * MS, 32 * MS, 200);
    let mut apart = RunBuilder::of(9_600, 2 * MS).add(3_400, late).run();
    (apart.generator.run_delay, apart.generator.threads) = (60 * SECOND, 80);
    assert!(lateness(&apart).contains("the machine was busy"), "{}", lateness(&apart));
    apart.generator.run_delay = 20 * SECOND;
    assert!(lateness(&apart).ends_with(": the generator ran late"), "{}", lateness(&apart));
    let mut stolen = run(0, 0.2);
    let reading = GaugeReading {
        source: MACHINE.to_owned(),
        name: "machine_steal".to_owned(),
        unit: LevelUnit::Share,
        value: 0.12,
    };
    stolen.watched.add(SECOND, &[reading]);
    expect!["p99 send delay 30.0 ms (median response 2.00 ms): the machine was busy, not the generator: the host took 12 % of the CPU (steal)"].assert_eq(&lateness(&stolen));
}

#[test]
fn the_wait_for_a_connection_is_not_lateness() {
    let mut outcome = answered(50 * MS, 60 * MS, 60 * MS, 200);
    outcome.blocked = 50 * MS;
    let run = RunBuilder::default().add(1_000, outcome).run();
    assert_eq!(level_of(&run, "lateness"), Valid);
}

#[test]
fn sent_less_than_asked() {
    let run = |asked: f64| RunBuilder::of(10_000, 5 * MS).asked(asked).run();
    for (asked, level) in [
        (10_000.0, Valid),
        (10_100.0, Valid),
        (10_110.0, Suspect),
        (10_520.0, Suspect),
        (10_540.0, Invalid),
    ] {
        assert_eq!(level_of(&run(asked), "asked_sent"), level, "{asked}");
    }
    let closed = RunBuilder::of(100, MS).asked(1_000.0).closed().run();
    assert_eq!(level_of(&closed, "asked_sent"), Valid);
}

#[test]
fn a_small_grid_and_a_poisson_process_may_differ_by_chance() {
    assert_eq!(level_of(&RunBuilder::of(19, MS).asked(20.0).run(), "asked_sent"), Valid);
    let mut run = RunBuilder::of(9_750, MS).asked(10_000.0).run();
    assert_eq!(level_of(&run, "asked_sent"), Suspect);
    let stages = vec![Stage::step(1_000.0, std::time::Duration::from_secs(10))];
    run.plan.load = Load::Open { stages, process: Process::Poisson }.into();
    assert_eq!(level_of(&run, "asked_sent"), Valid);
}

#[test]
fn connections_as_the_limit_are_named() {
    let mut run = RunBuilder::of(9_000, MS).asked(10_000.0).run();
    assert!(!check(&run).1[0].text.contains("busy"));
    for _ in 0..1_000 {
        run.tally.record_dropped(MS);
    }
    let (worst, reasons) = check(&run);
    assert_eq!(worst, Invalid);
    expect!["only 900/s of 1,000/s asked for were sent (90 %); the rest was dropped, as all 64 connections were busy: the server, or the limit of 64, held requests back"].assert_eq(&reasons[0].text);
}

#[test]
fn cpu_of_the_busiest_worker() {
    let mut run = healthy();
    for (busiest, level) in [(0.84, Valid), (0.86, Suspect), (0.99, Suspect)] {
        run.generator.busiest = busiest;
        assert_eq!(level_of(&run, "generator_cpu"), level, "{busiest}");
    }
    run.plan.spin = true;
    assert_eq!(level_of(&run, "generator_cpu"), Valid);

    let mut late = RunBuilder::default().add(1_000, answered(3 * MS, 10 * MS, 10 * MS, 200)).run();
    late.generator.busiest = 0.96;
    assert_eq!(level_of(&late, "generator_cpu"), Suspect);
    late.generator.busiest = 0.98;
    assert_eq!(level_of(&late, "generator_cpu"), Invalid);
}

#[test]
fn any_drop_is_suspect_and_many_are_invalid() {
    let mut run = RunBuilder::of(10_000, MS).run();
    run.tally.record_dropped(MS);
    assert_eq!(level_of(&run, "dropped"), Suspect);
    for _ in 0..101 {
        run.tally.record_dropped(MS);
    }
    assert_eq!(level_of(&run, "dropped"), Invalid);
    // Arrivals of lost agents are counted separately.
    let dropped = run.tally.counts.dropped;
    let text = |run: &Run| {
        let (_, reasons) = check(run);
        reasons.into_iter().find(|reason| reason.rule == "dropped").unwrap().text
    };
    run.tally.counts.lost = dropped - 1;
    expect!["102 of 10,102 arrivals were dropped (1.0 %): 101 belonged to lost agents, 1 were not sent before the run ended"].assert_eq(&text(&run));
    run.tally.counts.lost = dropped;
    expect!["102 of 10,102 arrivals were dropped (1.0 %): they belonged to lost agents"]
        .assert_eq(&text(&run));
}

#[test]
fn the_generators_faults() {
    let run = |n| RunBuilder::of(10_000, 5 * MS).fault(Fault::NoLocalPort, n).run();
    assert_eq!(level_of(&run(0), "generator_faults"), Valid);
    assert_eq!(level_of(&run(1), "generator_faults"), Suspect);
    assert_eq!(level_of(&run(110), "generator_faults"), Invalid);
    let servers = RunBuilder::of(100, MS).fault(Fault::ConnectRefused, 50).run();
    assert_eq!(level_of(&servers, "generator_faults"), Valid);
}

#[test]
fn littles_law_on_a_steady_state() {
    // 1,000/s of 50 ms each: 50 in flight.
    for (in_flight, level) in [
        (50.0, Valid),
        (48.5, Valid),
        (46.0, Suspect),
        (55.0, Suspect),
        (40.0, Invalid),
        (70.0, Invalid),
    ] {
        let run = RunBuilder::of(10_000, 50 * MS).in_flight(in_flight).run();
        assert_eq!(level_of(&run, "littles_law"), level, "{in_flight}");
    }
}

#[test]
fn a_request_that_waits_for_a_stream_is_in_flight() {
    // 1,000/s of 60 ms each, including 50 ms of waiting for a stream.
    let waiting = Outcome { blocked: 50 * MS, ..answered(50 * MS, 55 * MS, 60 * MS, 200) };
    let of = |streams, in_flight| {
        let mut run = RunBuilder::default().add(10_000, waiting.clone()).in_flight(in_flight).run();
        run.tally.counts.streams = streams;
        level_of(&run, "littles_law")
    };
    assert_eq!((of(0, 10.0), of(0, 60.0)), (Valid, Invalid));
    assert_eq!((of(10_000, 10.0), of(10_000, 60.0), of(10_000, 90.0)), (Valid, Valid, Invalid));
}

#[test]
fn littles_law_allows_the_edges_and_skips_bursts() {
    // 1 s requests in a 10 s run at 100/s: the ramp at the start costs 5 of 100 in flight.
    let edge = RunBuilder::of(1_000, SECOND).in_flight(95.0).run();
    assert_eq!(level_of(&edge, "littles_law"), Valid);
    // A burst that is over before the first response.
    let mut burst = RunBuilder::of(300, 6 * SECOND).in_flight(150.0).run();
    burst.measured = MS;
    assert_eq!(level_of(&burst, "littles_law"), Valid);
    // Too few to judge.
    assert_eq!(level_of(&RunBuilder::of(99, SECOND).in_flight(1.0).run(), "littles_law"), Valid);
    assert_eq!(
        level_of(&RunBuilder::of(1_000, MS / 2).in_flight(0.09).run(), "littles_law"),
        Valid
    );
}

#[test]
fn littles_law_sees_a_growing_queue() {
    // 200/s onto a server of 100/s for 10 s, then it drains: request n ends at n/100 s.
    let mut sample = RunBuilder::default();
    let mut area = 0.0;
    for n in 0..2_000u64 {
        let (due, end) = (n * 5 * MS, (n + 1) * 10 * MS);
        let mut outcome = answered(0, end - due, end - due, 200);
        outcome.exchange.written = true;
        area += (end.min(10 * SECOND).saturating_sub(due)) as f64;
        sample = sample.add(1, outcome);
    }
    let run = sample.in_flight(area / (10 * SECOND) as f64).run();
    assert_eq!(level_of(&run, "littles_law"), Invalid);
}

#[test]
fn users_who_never_had_a_response_are_missing() {
    let unserved = |count: u64| {
        let mut run = RunBuilder::of(5_000, 20 * MS).closed();
        run = run.add(count, answered(0, 10 * SECOND, 10 * SECOND, 200));
        let mut run = run.run();
        run.tally.counts.unfinished = count;
        level_of(&run, "users")
    };
    // Of 64.
    assert_eq!((unserved(0), unserved(2), unserved(40)), (Valid, Suspect, Suspect));
    // A response that came late is one.
    let mut late = RunBuilder::of(5_000, 20 * MS).closed().more(40, 10 * SECOND).run();
    late.tally.counts.unfinished = 0;
    assert_eq!(level_of(&late, "users"), Valid);
}

#[test]
fn a_target_that_stops_responding_does_not_make_the_run_invalid() {
    // 64 users send their last requests after 4 of 10 s; they wait for 9 s, 3 of them in the drain.
    let served = 64 * 4 * 50;
    let hung = answered(0, 9 * SECOND, 9 * SECOND, 200);
    let mut run = RunBuilder::of(served, 20 * MS).closed().add(64, hung).in_flight(64.0).run();
    run.elapsed = 13 * SECOND;
    run.tally.counts.unfinished = 64;
    assert_eq!(level_of(&run, "littles_law"), Valid);
    assert_eq!(level_of(&run, "users"), Valid);
}
