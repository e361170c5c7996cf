//! Every finding at both sides of its threshold.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use gake_core::Load;
use gake_core::clock::SECOND;
use gake_core::metric::{Definition, MetricKind, MetricUnit, Tags};
use gake_core::plan::{PlanLoad, Stage, WorkKind};
use gake_core::record::{
    Counts, Fault, LevelUnit, MACHINE, PROBE, Phase, Run, Series, SeriesPoint, TcpSample,
};
use gake_core::schedule::Process;

use super::facts::RunFacts;
use super::syns::SynLosses;
use super::*;
use crate::objective;
use crate::testing::{MS, RunBuilder, answered, healthy, watch};
use crate::{PROBE_GROUP, PROBE_TOGETHER};

fn ids(run: &Run) -> Vec<&'static str> {
    find(run, &[]).into_iter().map(|finding| finding.id).collect()
}

fn named(run: &Run, objectives: &[Evaluation]) -> Vec<&'static str> {
    find(run, objectives).into_iter().map(|finding| finding.id).collect()
}

fn missed(text: &str, value: f64) -> Evaluation {
    Evaluation {
        text: text.to_owned(),
        value: Some(value),
        unit: objective::ValueUnit::Nanoseconds,
        met: false,
        problem: None,
    }
}

fn evidence(run: &Run) -> String {
    find(run, &[]).remove(0).evidence
}

fn base() -> RunBuilder {
    RunBuilder::of(10_000, 5 * MS)
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
fn run_delay_is_a_cause_only_of_what_it_explains() {
    let delayed = |late: u64| {
        let mut run = RunBuilder::default()
            .add(10_000, answered(late, late + 5 * MS, late + 5 * MS, 200))
            .run();
        run.generator.run_delay = SECOND * 51 / 100;
        run
    };
    // Nothing is wrong, so there is no finding.
    assert!(ids(&delayed(MS / 100)).is_empty());
    assert_eq!(ids(&delayed(20 * MS)), ["run_delay"]);
    let mut little = delayed(20 * MS);
    little.generator.run_delay = SECOND * 49 / 100;
    assert!(ids(&little).is_empty());
    // The objective was missed by the server's time, not by the generator's delay.
    let missed = missed("p99<1ms", 5e6);
    assert_eq!(
        named(&delayed(MS / 100), std::slice::from_ref(&missed)),
        ["unexplained", "run_delay"]
    );
    let missed_by_delay = Evaluation { value: Some(25e6), ..missed };
    assert_eq!(named(&delayed(20 * MS), &[missed_by_delay]), ["run_delay"]);
    let mut nothing = delayed(20 * MS);
    (nothing.generator.threads, nothing.measured) = (0, 0);
    assert!(!ids(&nothing).contains(&"run_delay"));
}

#[test]
fn workers_that_starve_read_responses_late_too() {
    // In a closed loop no request is due at any time.
    let starving = |delay: u64, cpu: u64| {
        let mut run = base().closed().run();
        (run.generator.run_delay, run.generator.cpu) = (delay, cpu);
        ids(&run)
    };
    assert_eq!(starving(5 * SECOND, SECOND), ["run_delay"]);
    // They ran for longer than they waited, or their waits are no more than a third of the times.
    assert!(starving(5 * SECOND, 6 * SECOND).is_empty());
    assert!(starving(3 * SECOND, SECOND).is_empty());
}

/// Adds requests sent one at a time after the load.
fn probe(run: &mut Run, times: &[f64]) {
    watch(run, MACHINE, PROBE, LevelUnit::Seconds, times);
    watch(run, MACHINE, "cores", LevelUnit::Count, &[0.1; 4]);
}

#[test]
fn requests_sent_alone_give_the_places_of_a_pool() {
    // Nothing but the probe shows that requests wait: all take as long.
    let pool = |times: &[f64]| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
        probe(&mut run, times);
        run
    };
    let run = pool(&[0.02, 0.0201, 0.0199, 0.02]);
    assert_eq!(ids(&run), ["pool_queueing"]);
    expect!["about 2 are served at once (100/s × 20.0 ms = 2): the median first byte takes 59.4 ms, 20.0 ms when sent one at a time after the load, with 6 in flight"].assert_eq(&evidence(&run));
    assert_eq!(ids(&pool(&[0.01, 0.01, 0.01])), ["one_at_a_time"]);
    // Three places cannot be busier than all the time.
    assert!(evidence(&pool(&[0.0348; 5])).starts_with("about 3 to 4 are served"));
    assert!(evidence(&pool(&[0.0315; 5])).starts_with("about 3 are served"));
    assert!(ids(&pool(&[0.059, 0.06, 0.061])).is_empty(), "alone they take as long");
    // Two of thirty are slow, and one in ten under the load.
    let mut times = [0.001; 28];
    (times[9], times[19]) = (0.08, 0.08);
    let few = pool(&times);
    assert_eq!(ids(&few), ["one_at_a_time"]);
    expect!["requests are served one after another (100/s × 6.64 ms = 0.66, 0 to 1.45): the median first byte takes 59.4 ms, 6.64 ms when sent one at a time after the load, with 6 in flight"].assert_eq(&evidence(&few));
}

#[test]
fn places_stand_before_the_accept_queue_that_fills_behind_them() {
    let run = |alone: f64| {
        let late = RunBuilder::of(970, 600 * MS).connects(30, SECOND + 10 * MS);
        let mut run = late.closed().in_flight(60.0).run();
        probe(&mut run, &[alone; 5]);
        for (name, level) in
            [("listener_dropped", 90.0), ("accept_queue", 101.0), ("backlog", 100.0)]
        {
            watch(&mut run, "port:80", name, LevelUnit::Count, &[0.0, level]);
        }
        ids(&run)
    };
    assert_eq!(run(0.01), ["one_at_a_time", "target_overflows"]);
    assert_eq!(run(0.03), ["pool_queueing", "target_overflows"]);
    // A request alone takes next to nothing: the server accepts too slowly.
    assert_eq!(run(0.002), ["target_overflows"]);
}

#[test]
fn a_pool_in_front_of_a_smaller_one_is_not_the_limit() {
    let run = |threads: f64| {
        let mut run = RunBuilder::of(1_000, 600 * MS).closed().in_flight(100.0).run();
        probe(&mut run, &[0.03; 5]);
        for (name, value) in [("target_here", 1.0), ("machine_cpu", 1.0)] {
            watch(&mut run, MACHINE, name, LevelUnit::Share, &[value; 4]);
        }
        for (name, value) in
            [("established", threads), ("awaited", threads), ("futex_threads", 1.0)]
        {
            let name =
                if value == 1.0 { name.to_owned() } else { format!("127.0.0.1:6432 {name}") };
            watch(&mut run, MACHINE, &name, LevelUnit::Count, &[0.0, value, value, value]);
        }
        find(&run, &[]).remove(0)
    };
    assert_eq!((run(4.0).served, run(6.0).served), (Some(4.0), Some(6.0)));
    let front = run(40.0);
    expect![[r#"
        about 3 to 4 are served at once (100/s × 30.0 ms = 3, more with free cores): the median first byte takes 594 ms, 30.0 ms when sent one at a time after the load, with 100 in flight; 40 threads wait for 127.0.0.1:6432
        the limit is behind the target: watch that server, too"#]].assert_eq(&format!("{}\n{}", front.evidence, front.advice));
}

#[test]
fn requests_that_take_turns_for_a_part_of_their_time_are_served_one_by_one() {
    let run = |together: f64| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
        probe(&mut run, &[0.02; 5]);
        watch(&mut run, MACHINE, PROBE_TOGETHER, LevelUnit::Seconds, &[together; 8]);
        watch(&mut run, MACHINE, PROBE_GROUP, LevelUnit::Count, &[2.0]);
        find(&run, &[]).remove(0)
    };
    let turns = run(0.0302);
    assert_eq!((turns.id, turns.served), ("one_at_a_time", Some(1.0)));
    expect!["requests are served one after another, each for 10.0 ms of the 20.0 ms that one takes alone (100/s): 2 sent at once take up to 30.2 ms; the median first byte takes 59.4 ms, with 6 in flight"].assert_eq(&turns.evidence);
    assert_eq!(run(0.0203).id, "pool_queueing");
    // Both by one of two processes.
    assert_eq!(run(0.04).id, "pool_queueing");
}

#[test]
fn places_are_counted_where_a_full_machine_makes_requests_longer() {
    let run = |cpu: f64, sleeping: f64| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(16.0).run();
        probe(&mut run, &[0.03; 5]);
        for (name, value) in [("target_here", 1.0), ("machine_cpu", cpu)] {
            watch(&mut run, MACHINE, name, LevelUnit::Share, &[value; 4]);
        }
        for (name, value) in [("sleeping_threads", sleeping), ("futex_threads", 1.0)] {
            watch(&mut run, MACHINE, name, LevelUnit::Count, &[0.0, value, value, value]);
        }
        find(&run, &[]).remove(0)
    };
    let (quiet, counted, full) = (run(0.2, 4.0), run(1.0, 4.0), run(1.0, 9.0));
    expect!["about 3 are served at once (100/s × 30.0 ms = 3): the median first byte takes 59.4 ms, 30.0 ms when sent one at a time after the load, with 16 in flight; 4 threads sleep"].assert_eq(&quiet.evidence);
    expect!["4 are served at once: 4 threads sleep all the time, with 16 in flight; the median first byte takes 59.4 ms, the fastest 59.4 ms"].assert_eq(&counted.evidence);
    assert_eq!(counted.served, Some(4.0));
    expect!["about 3 to 4 are served at once (100/s × 30.0 ms = 3, more with free cores): the median first byte takes 59.4 ms, 30.0 ms when sent one at a time after the load, with 16 in flight"].assert_eq(&full.evidence);
}

#[test]
fn one_request_at_a_time_that_takes_a_core() {
    let run = |cores: f64| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
        watch(&mut run, MACHINE, PROBE, LevelUnit::Seconds, &[0.01; 5]);
        watch(&mut run, MACHINE, "cores", LevelUnit::Count, &[cores; 4]);
        find(&run, &[]).remove(0)
    };
    assert!(!run(0.3).evidence.contains("one core"));
    let busy = run(1.02);
    assert_eq!(busy.id, "one_at_a_time");
    expect!["requests are served one after another (100/s × 10.0 ms = 1): the median first byte takes 59.4 ms, 10.0 ms when sent one at a time after the load, with 6 in flight; the target wants 1.02 cores all that time: one core does the work"].assert_eq(&busy.evidence);
}

#[test]
fn a_generator_kept_to_one_core_leaves_the_target_the_others() {
    let run = |cores: f64| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
        watch(&mut run, MACHINE, PROBE, LevelUnit::Seconds, &[0.02; 5]);
        for (name, value) in [("machine_cores", cores), ("cores", 1.2)] {
            watch(&mut run, MACHINE, name, LevelUnit::Count, &[value; 4]);
        }
        run.generator.cores = 1;
        ids(&run)
    };
    assert_eq!(run(4.0), ["pool_queueing"]);
    assert_eq!(run(1.0), ["unexplained"]);
}

#[test]
fn a_busy_machine_is_no_queue() {
    let run = |alone: f64, steal: f64| {
        let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
        probe(&mut run, &[alone; 5]);
        watch(&mut run, MACHINE, "machine_steal", LevelUnit::Share, &[steal; 4]);
        ids(&run)
    };
    assert_eq!(run(0.036, 0.1), ["pool_queueing"]);
    assert!(run(0.036, 0.4).is_empty());
    // Other programs have the cores, and the generator needs few.
    let mut full = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
    probe(&mut full, &[0.036; 5]);
    for name in ["target_here", "machine_cpu"] {
        watch(&mut full, MACHINE, name, LevelUnit::Share, &[1.0; 4]);
    }
    assert!(ids(&full).is_empty());
    assert_eq!(run(0.02, 0.4), ["pool_queueing"]);
}

#[test]
fn a_late_acknowledgement_is_no_queue_in_the_network() {
    // A server that takes over 40 ms acknowledges the request before it responds.
    let run = |size: u64, rtt: u64| {
        let mut outcome = answered(0, 60 * MS, 60 * MS, 200);
        outcome.exchange.bytes_in = size;
        outcome.exchange.connect = Some(MS / 10);
        outcome.exchange.tcp = Some(TcpSample { rtt, retransmits: 0 });
        let mut run = RunBuilder::default().add(1_000, outcome).closed().in_flight(6.0).run();
        probe(&mut run, &[0.02; 5]);
        ids(&run)
    };
    assert_eq!(run(100, 40 * MS), ["pool_queueing"]);
    assert!(!run(100, 80 * MS).contains(&"pool_queueing"));
    assert!(!run(100_000, 40 * MS).contains(&"pool_queueing"));
}

#[test]
fn a_busy_machine_stands_behind_what_it_does_not_explain() {
    let mut run = RunBuilder::of(1_000, 60 * MS).closed().in_flight(6.0).run();
    probe(&mut run, &[0.02; 5]);
    (run.generator.run_delay, run.generator.cpu) = (6 * SECOND, SECOND);
    assert_eq!(ids(&run), ["pool_queueing"]);
    // Waits of a core for most of the times.
    let mut run = RunBuilder::of(1_000, 12 * MS).closed().in_flight(1.2).run();
    (run.generator.run_delay, run.generator.cpu) = (8 * SECOND, SECOND);
    assert_eq!(ids(&run), ["run_delay"]);
}

#[test]
fn connections_that_an_open_loop_opens_and_no_server_accepts() {
    let mut run = RunBuilder::of(5_000, 20 * MS).run();
    (run.tally.counts.unfinished, run.tally.counts.sent) = (500, 5_500);
    watch(&mut run, MACHINE, "accept_queue", LevelUnit::Count, &[100.0, 200.0, 300.0, 480.0]);
    assert_eq!(ids(&run)[0], "connection_limit");
    expect!["500 of 5,500 requests never had a response, while the others got theirs in 20.0 ms (median); up to 480 connections waited to be accepted, in 4 of 4 readings"].assert_eq(&evidence(&run));
}

#[test]
fn connections_that_are_accepted_after_the_load_are_no_stall() {
    // Three a second, as those before them fall idle.
    let mut run = in_time(|_| tenth(10, 20 * MS));
    let mut series = run.series.clone();
    for at in 80..130 {
        series.push_tenth(SeriesPoint {
            second: at,
            seconds: 1,
            ..tenth(if at % 10 == 9 { 3 } else { 0 }, 9_000 * MS)
        });
    }
    run.series = series;
    assert!(ids(&run).is_empty(), "{:?}", ids(&run));
    // They are as many as nothing beside those that never were.
    let mut run = RunBuilder::of(1_000, 20 * MS).more(20, 9_000 * MS).run();
    (run.tally.counts.unfinished, run.tally.counts.sent) = (500, 1_520);
    watch(&mut run, MACHINE, "accept_queue", LevelUnit::Count, &[100.0, 200.0, 300.0, 480.0]);
    assert_eq!(ids(&run)[0], "connection_limit");
}

#[test]
fn failed_connections_stand_before_the_pool_behind_them() {
    let mut run = base().fault(Fault::ConnectTimeout, 900).run();
    watch(&mut run, "actuator:a", "pool", LevelUnit::Share, &[1.0; 4]);
    watch(&mut run, "actuator:a", "connections", LevelUnit::Share, &[1.0; 4]);
    let found = ids(&run);
    assert_eq!(found[..2], ["target_connections", "target_pool"], "{found:?}");
}

#[test]
fn client_limits() {
    assert_eq!(ids(&base().fault(Fault::NoLocalPort, 1).run()), ["client_ports"]);
    assert_eq!(ids(&base().fault(Fault::NoDescriptors, 1).run()), ["client_descriptors"]);
}

#[test]
fn lost_syns_are_modes_of_the_connect_time() {
    let sample = base().connects(10_000, MS);
    let two = sample.clone().connects(2, SECOND + 10 * MS);
    assert!(ids(&two.run()).is_empty());
    let some = sample.clone().connects(20, SECOND + 10 * MS).connects(12, 3 * SECOND + 10 * MS);
    // Too few of all for an accept queue.
    assert_eq!(ids(&some.clone().run()), ["syn_drops"]);
    expect!["32 of 10,032 connections opened late (20 after about 1 s, 12 after about 3 s): their SYN was dropped and retransmitted"].assert_eq(&evidence(&some.clone().run()));
    // The same mass spread over the neighbourhood is a slow server, not a lost SYN.
    let spread = some.connects(10, 700 * MS).connects(10, 1_600 * MS).connects(12, 2_500 * MS);
    assert!(!ids(&spread.run()).contains(&"syn_drops"));
    // A far away server connects in a second without any loss.
    let far = base().connects(1_000, SECOND + 10 * MS);
    assert!(ids(&far.run()).is_empty());
}

#[test]
fn new_kernels_retransmit_a_syn_each_second() {
    let sample = base().connects(100, MS);
    let late = |seconds: &[u64]| {
        let sample = sample.clone();
        seconds.iter().fold(sample, |sample, s| sample.connects(5, s * SECOND + 20 * MS)).run()
    };
    for seconds in [&[1][..], &[2], &[1, 2, 3, 4], &[4], &[1, 3, 7]] {
        assert_eq!(ids(&late(seconds)), ["accept_queue"], "{seconds:?}");
    }
    // Retransmitted SYNs are no segments of requests.
    let mut run = late(&[1, 2, 3, 4]);
    run.tally.counts.retransmits = 5 * (1 + 2 + 3 + 4);
    assert_eq!(SynLosses::of(&RunFacts { run: &run, objectives: &[] }).segments, 0);
    let mut run = late(&[1, 3, 7]);
    run.tally.counts.retransmits = 5 * (1 + 2 + 3);
    assert_eq!(SynLosses::of(&RunFacts { run: &run, objectives: &[] }).segments, 0);
}

#[test]
fn accept_queue_needs_established_connections_that_lose_nothing() {
    let sample = base().connects(100, MS).connects(5, SECOND + 10 * MS);
    assert_eq!(ids(&sample.clone().run()), ["accept_queue"]);
    let mut lossy = sample.run();
    lossy.tally.counts.retransmits = 500;
    assert_eq!(ids(&lossy), ["retransmits", "syn_drops"]);
    let few = base().connects(1_000, MS).fault(Fault::ConnectTimeout, 5);
    assert!(!ids(&few.run()).contains(&"accept_queue"));
    let many = base().connects(1_000, MS).fault(Fault::ConnectTimeout, 20);
    assert_eq!(ids(&many.run()), ["accept_queue", "timeouts"]);
}

#[test]
fn few_connections_are_late_by_chance_on_a_lossy_route() {
    let late = |on_time, count| {
        let mut run = base().connects(on_time, MS).connects(count, SECOND + 10 * MS).run();
        run.tally.counts.retransmits = run.tally.counts.sent / 20;
        run
    };
    // 5 % of the segments: 3 of 17 connections are chance, 20 of 34 are not.
    assert_eq!(ids(&late(14, 3))[0], "retransmits");
    assert!(!ids(&late(14, 3)).contains(&"accept_queue"));
    assert_eq!(ids(&late(14, 20)), ["accept_queue"]);
}

#[test]
fn the_loopback_loses_nothing() {
    let mut run = base().connects(100, MS).connects(5, SECOND + 10 * MS).run();
    run.tally.counts.retransmits = 500;
    assert_eq!(ids(&run)[0], "retransmits");
    watch(&mut run, "machine", "target_loopback", LevelUnit::Share, &[1.0]);
    assert_eq!(ids(&run), ["accept_queue"]);
    let mut run = base().run();
    run.tally.counts.retransmits = 500;
    watch(&mut run, "machine", "target_loopback", LevelUnit::Share, &[1.0]);
    assert!(ids(&run).is_empty());
}

#[test]
fn drops_at_the_targets_own_socket_are_its_own() {
    let late = base().connects(100, MS).connects(5, SECOND + 10 * MS);
    let with = |dropped: f64| {
        let mut run = late.clone().run();
        // Of another server of the machine, before and during the run.
        watch(&mut run, "port:80", "listen_overflows", LevelUnit::PerSecond, &[900.0]);
        watch(&mut run, "machine", "listener_dropped", LevelUnit::Count, &[7.0, 7.0 + dropped]);
        watch(&mut run, "machine", "accept_queue", LevelUnit::Count, &[3.0, 11.0]);
        watch(&mut run, "machine", "backlog", LevelUnit::Count, &[10.0]);
        run
    };
    assert_eq!(ids(&with(12.0)), ["target_overflows"]);
    expect!["the kernel dropped 12 attempts to connect at the target's own listening socket: up to 11 waited in its accept queue of 10; 5 connections opened at least 1 s late"].assert_eq(&evidence(&with(12.0)));
    // A queue that is nearly empty drops no attempt, and no connection was late.
    let mut roomy = base().connects(100, MS).run();
    watch(&mut roomy, "machine", "listener_dropped", LevelUnit::Count, &[7.0, 19.0]);
    watch(&mut roomy, "machine", "accept_queue", LevelUnit::Count, &[3.0, 57.0]);
    watch(&mut roomy, "machine", "backlog", LevelUnit::Count, &[4_096.0]);
    assert!(ids(&roomy).is_empty());
    watch(&mut roomy, "machine", "accept_queue", LevelUnit::Count, &[4_097.0]);
    assert_eq!(ids(&roomy), ["target_overflows"]);
    // It dropped nothing, so its queue was not full, whatever others on the machine did.
    assert_eq!(ids(&with(0.0)), ["syn_drops"]);
}

#[test]
fn drops_of_a_whole_machine_count_only_with_late_connections() {
    let mut run = base().connects(100, MS).connects(5, SECOND + 10 * MS).run();
    watch(&mut run, "prometheus:http://h", "listen_overflows", LevelUnit::PerSecond, &[40.0]);
    assert_eq!(ids(&run)[0], "target_overflows");
    expect!["the kernel of the target's machine dropped up to 40 attempts to connect a second, over all its listening sockets; 5 connections opened at least 1 s late"].assert_eq(&evidence(&run));
    let mut run = base().run();
    watch(&mut run, "prometheus:http://h", "listen_overflows", LevelUnit::PerSecond, &[40.0]);
    assert!(ids(&run).is_empty());
}

#[test]
fn connection_limit_needs_others_to_be_served() {
    let few = base().connects(1_000, MS).fault(Fault::ConnectRefused, 5);
    assert!(ids(&few.run()).is_empty());
    let many = base().connects(1_000, MS).fault(Fault::ConnectRefused, 20);
    assert_eq!(ids(&many.run()), ["connection_limit"]);
    let all = RunBuilder::default().fault(Fault::ConnectRefused, 100);
    assert_eq!(ids(&all.run()), ["unreachable"]);
}

#[test]
fn connection_limit_shows_in_starved_users() {
    // 10 connections at most; a run of 10 s.
    let sample = |starved, between| {
        base().more(between, 4 * SECOND).more(starved, 9 * SECOND).closed().in_flight(10.0)
    };
    assert!(ids(&sample(2, 0).run()).is_empty());
    assert_eq!(ids(&sample(4, 0).run()), ["connection_limit"]);
    expect!["4 of 10 users waited for a response for more than half of the run, while the other 6 got theirs in 5.00 ms (median)"].assert_eq(&evidence(&sample(4, 0).run()));
    // A distribution with a long tail, and a server that stood still.
    assert!(ids(&sample(4, 2).run()).is_empty());
    assert!(ids(&sample(10, 0).run()).is_empty());
    // An open loop has no users who wait.
    assert!(ids(&base().more(4, 9 * SECOND).run()).is_empty());
}

#[test]
fn users_who_take_turns_at_few_connections() {
    // Twelve of forty users are served; a connection is closed after some hundred requests.
    let run = |waiting: f64, waited: u64| {
        let mut run =
            RunBuilder::of(2_900, 41 * MS).more(waited, 4 * SECOND).closed().in_flight(40.0).run();
        run.peak_connections = 40;
        watch(&mut run, MACHINE, "accept_queue", LevelUnit::Count, &[waiting; 4]);
        run
    };
    let turns = run(28.0, 40);
    assert_eq!(ids(&turns), ["connection_limit"]);
    expect!["12 of 40 users are served at a time, in 41.0 ms (median); 40 requests had to wait first, up to 4.00 s, since up to 28 connections waited to be accepted, in 4 of 4 readings"].assert_eq(&evidence(&turns));
    assert!(ids(&run(0.0, 40)).is_empty(), "all are accepted");
    assert!(ids(&run(28.0, 0)).is_empty(), "none waits long");
}

#[test]
fn users_who_wait_for_a_local_port_are_not_the_servers() {
    let starved = || base().more(4, 9 * SECOND).closed().in_flight(10.0).run();
    let mut run = starved();
    watch(&mut run, "machine", "quick_ports", LevelUnit::Count, &[9.0]);
    assert_eq!(ids(&run), ["client_ports"]);
    expect!["4 users waited for a connection for more than half of the run: 10 connections were open, and beyond 9 per source address the kernel is slow to find a free local port"].assert_eq(&evidence(&run));
    let mut run = starved();
    watch(&mut run, "machine", "quick_ports", LevelUnit::Count, &[14_116.0]);
    assert_eq!(ids(&run), ["connection_limit"]);
}

#[test]
fn a_queue_that_loses_syns_is_no_lossy_route() {
    let sample = base().connects(20, MS).connects(80, SECOND + 10 * MS);
    let mut run = sample.run();
    // The SYNs themselves, and segments to a server that has not accepted.
    run.tally.counts.retransmits = 80 + 3_000;
    assert_eq!(ids(&run), ["accept_queue"]);
    // As many of the segments as of the SYNs.
    run.tally.counts.retransmits = 80 + 8_000;
    assert_eq!(ids(&run), ["retransmits", "syn_drops"]);
}

#[test]
fn blocked_arrivals() {
    let mut outcome = answered(5 * MS, 10 * MS, 10 * MS, 200);
    outcome.blocked = 5 * MS;
    assert!(ids(&base().add(90, outcome.clone()).run()).is_empty());
    let mut lost = base().run();
    for _ in 0..2_000 {
        lost.tally.record_dropped(MS);
    }
    assert_eq!(ids(&lost), ["blocked"]);
    lost.tally.counts.lost = 2_000;
    assert!(ids(&lost).is_empty(), "lost agents were to send them: no server was busy");
    let mut run = base().add(110, outcome).run();
    assert_eq!(ids(&run), ["blocked"]);
    let first = |run: &Run| find(run, &[])[0].clone();
    assert!(first(&run).evidence.contains("connection"), "{:?}", first(&run));
    // Series do not make a script: every https run has some of its handshakes.
    let metric = Definition {
        name: "tls_handshake".to_owned(),
        kind: MetricKind::Counter,
        unit: MetricUnit::Number,
    };
    let series = run.tally.series.intern(&Arc::new(metric), &Tags::default());
    run.tally.series.add(series, 1.0, 0);
    assert!(first(&run).evidence.contains("connection"), "{:?}", first(&run));
    run.plan.fires = WorkKind::Iterations;
    let users = first(&run);
    assert!(users.evidence.contains("user") && users.advice.contains("-u"), "{users:?}");
}

#[test]
fn pool_queueing_by_shape() {
    // 200 slots of 10 ms each serve 1,000 users: the first are fast, then all wait 50 ms.
    let queue = |fast: u64| {
        RunBuilder::default()
            .add(200, answered(0, fast, fast, 200))
            .add(9_800, answered(0, 50 * MS, 50 * MS, 200))
    };
    // Only the target's own CPU shows whether they wait for a pool or for the CPU.
    let mut run = queue(10 * MS).closed().run();
    assert_eq!(ids(&run), ["unexplained"]);
    expect!["about 10 are served at once (1,000/s × 10.0 ms = 10): the median first byte takes 50.0 ms, the fastest 10.0 ms, with 49.2 in flight; they wait for its CPU, a pool or a lock"].assert_eq(&evidence(&run));
    watch(&mut run, "port:80", "cores", LevelUnit::Count, &[0.3; 3]);
    watch(&mut run, "port:80", "cores_waited", LevelUnit::Count, &[0.2; 3]);
    assert_eq!(ids(&run), ["pool_queueing"]);
    let in_flight = RunFacts { run: &run, objectives: &[] }.in_flight();
    let mut at_disk = run.clone();
    watch(&mut at_disk, "port:80", "disk_threads", LevelUnit::Count, &[0.1 * in_flight; 3]);
    assert_eq!(ids(&at_disk), ["pool_queueing"]);
    let mut at_disk = run.clone();
    watch(&mut at_disk, "port:80", "disk_threads", LevelUnit::Count, &[0.3 * in_flight; 3]);
    assert_eq!(ids(&at_disk), ["unexplained"]);
    watch(&mut run, "machine", "busiest_thread", LevelUnit::Share, &[0.85; 3]);
    assert_eq!(ids(&run), ["unexplained"]);
    assert!(ids(&queue(20 * MS).closed().run()).is_empty());
    // In an open loop below capacity the same shape may be the service's own.
    assert!(ids(&queue(10 * MS).run()).is_empty());
    // Times that vary by themselves: 100 to 500 ms.
    let random = (0..400).fold(RunBuilder::default(), |sample, n| {
        let took = (100 + n) * MS;
        sample.add(5, answered(0, took, took, 200))
    });
    assert!(ids(&random.closed().run()).is_empty());
}

#[test]
fn a_queue_that_lets_some_pass_is_unexplained() {
    // 20 threads of 200 ms serve 100 users, and a user keeps its thread for a while, as in Tomcat.
    let kept = |lucky: u64| {
        RunBuilder::of(lucky, 200 * MS).more(1_000 - lucky, 1_200 * MS).in_flight(100.0)
    };
    let found = find(&kept(150).closed().run(), &[]);
    assert_eq!(found[0].id, "unexplained");
    expect!["the median first byte takes 1.19 s, but 198 ms for 15 % of the requests, with 100 in flight: the rest waited inside the server, or took that long by itself"].assert_eq(&found[0].evidence);
    assert!(found[0].advice.contains("-c 1"), "{}", found[0].advice);
    // Times that merely vary include few as short as the shortest.
    let varied =
        (0..200).fold(RunBuilder::of(20, 200 * MS), |run, n| run.more(1, (250 + 3 * n) * MS));
    let varied = varied.more(780, 1_200 * MS).in_flight(100.0);
    assert!(ids(&varied.closed().run()).is_empty());
    assert!(ids(&kept(150).run()).is_empty(), "an open loop below its capacity does not push");
}

#[test]
fn pool_queueing_by_growth() {
    let mut run = RunBuilder::of(10_000, 5 * MS).more(1, MS).run();
    watch(&mut run, "actuator:http://h", "cpu", LevelUnit::Share, &[0.4; 3]);
    let point = |second: u64, rate: u64, in_flight: f64, p50: u64| SeriesPoint {
        second,
        seconds: 1,
        counts: Counts { ok: rate, ..Counts::default() },
        in_flight,
        p50,
        ..SeriesPoint::default()
    };
    let series = |gain: u64| {
        let mut series = Series::default();
        for s in 0..9 {
            series.push(point(s, 100 + gain * s, 10.0 * (s + 1) as f64, (s + 1) * 10 * MS));
        }
        series
    };
    run.series = series(0);
    assert!(!ids(&run).contains(&"pool_queueing"), "at a constant rate it is no queue");
    let stage = Stage { from: 100.0, to: 1_000.0, duration: Duration::from_secs(10) };
    let rising = Load::Open { stages: vec![stage], process: Process::Uniform };
    run.plan.load = PlanLoad::One(rising);
    assert_eq!(ids(&run), ["pool_queueing"]);
    run.series = series(50);
    assert!(ids(&run).is_empty());
}

#[test]
fn bandwidth() {
    let run = |first: u64, size: u64| {
        let mut outcome = answered(0, first, 10 * MS, 200);
        outcome.exchange.bytes_in = size;
        RunBuilder::default().add(1_000, outcome).run()
    };
    assert_eq!(ids(&run(3 * MS, 100_000)), ["bandwidth"]);
    assert!(ids(&run(5 * MS, 100_000)).is_empty());
    assert!(ids(&run(3 * MS, 10_000)).is_empty());
}

#[test]
fn a_slow_body_over_the_loopback_is_the_servers() {
    let body = |loopback: f64| {
        let mut outcome = answered(10_000, MS, 200 * MS, 200);
        outcome.exchange.bytes_in = 100_000;
        let mut run = RunBuilder::default().add(1_000, outcome).closed().run();
        watch(&mut run, MACHINE, "target_loopback", LevelUnit::Share, &[loopback; 2]);
        let finding = find(&run, &[]).remove(0);
        assert_eq!(finding.id, "bandwidth");
        finding.advice
    };
    // Thirty bodies of two seconds, each at the rate of a limit.
    let mut outcome = answered(10_000, MS, 2_000 * MS, 200);
    outcome.exchange.bytes_in = 400_000;
    let few = RunBuilder::default().add(30, outcome).closed().run();
    expect!["reading the body takes 99.95 % of the service time, 200 kB/s each; 1.20 MB/s (10 Mbit/s) were received"].assert_eq(&evidence(&few));
    assert!(body(0.0).contains("link"));
    assert!(body(1.0).contains("limit_rate"));
}

#[test]
fn a_first_byte_that_waits_in_the_network_waits_for_the_link() {
    let run = |rtt| {
        let mut outcome = answered(0, 6 * MS, 10 * MS, 200);
        outcome.exchange.bytes_in = 100_000;
        outcome.exchange.connect = Some(MS / 10);
        outcome.exchange.tcp = Some(TcpSample { rtt, retransmits: 0 });
        RunBuilder::default().add(1_000, outcome).run()
    };
    assert_eq!(ids(&run(5 * MS)), ["bandwidth"]);
    expect!["reading the body takes 40 % of the service time; 10.0 MB/s (80 Mbit/s) were received; a round trip takes 5.00 ms under the load, and took 100 µs when connections were opened"].assert_eq(&evidence(&run(5 * MS)));
    assert!(ids(&run(2 * MS)).is_empty());
}

#[test]
fn server_errors() {
    assert!(ids(&base().status(503, 9).run()).is_empty());
    let run = base().status(503, 100).status(500, 20).run();
    assert_eq!(ids(&run)[0], "server_errors");
    expect!["1.2 % of the responses were server errors: 503 × 100, 500 × 20"]
        .assert_eq(&evidence(&run));
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
    // Users whose connections are closed at once return at once, which takes the generator's CPU.
    let mut spinning = base().fault(Fault::Reset, 40_000).closed().run();
    spinning.generator.busiest = 0.96;
    assert_eq!(ids(&spinning), ["server_closes", "generator_cpu"]);
}

#[test]
fn timeouts() {
    let fault = Fault::Timeout(Phase::FirstByte);
    assert!(ids(&base().fault(fault, 9).run()).is_empty());
    assert_eq!(ids(&base().fault(fault, 12).run()), ["timeouts"]);
}

#[test]
fn a_target_at_its_limit_says_so() {
    for (name, below, at, id) in [
        ("cpu", 0.85, 0.93, "target_cpu"),
        ("pool", 0.9, 0.97, "target_pool"),
        ("db_pool", 0.9, 1.0, "target_db_pool"),
        ("connections", 0.9, 1.0, "target_connections"),
        ("descriptors", 0.9, 0.99, "target_descriptors"),
        ("gc", 0.1, 0.3, "target_gc"),
    ] {
        let with = |value| {
            let mut run = base().run();
            watch(&mut run, "prometheus:http://h", name, LevelUnit::Share, &[value]);
            run
        };
        assert_eq!(ids(&with(below)), Vec::<&str>::new(), "{name}");
        assert_eq!(ids(&with(at)), [id]);
    }
}

#[test]
fn connections_waiting_to_be_accepted_confirm_a_limit_nearly_reached() {
    // A Tomcat of 50 that counts 47 as open and accepts no more.
    let mut run = healthy();
    watch(&mut run, "actuator:http://h", "connections", LevelUnit::Share, &[0.7, 0.94, 0.94, 0.94]);
    assert!(ids(&run).is_empty());
    watch(&mut run, "machine", "accept_queue", LevelUnit::Count, &[0.0, 11.0, 11.0, 11.0]);
    assert_eq!(ids(&run)[0], "target_connections");
    expect!["actuator:http://h had up to 94 % of its allowed connections open in 3 of 4 readings; up to 11 more waited to be accepted, in 3 of 4 readings"].assert_eq(&evidence(&run));
    // A queue that empties immediately is no sign of a limit.
    let mut busy = healthy();
    watch(&mut busy, "actuator:http://h", "connections", LevelUnit::Share, &[0.94; 6]);
    watch(&mut busy, "machine", "accept_queue", LevelUnit::Count, &[0.0, 0.0, 0.0, 0.0, 0.0, 2.0]);
    assert!(ids(&busy).is_empty());
}

#[test]
fn a_leaking_pool() {
    let leaks = |busy: &[f64], in_flight: f64| {
        let mut run = base().in_flight(in_flight).run();
        let point =
            |second| SeriesPoint { second, seconds: 1, in_flight, ..SeriesPoint::default() };
        run.series = Series::default();
        (0..busy.len() as u64).for_each(|second| run.series.push(point(second)));
        watch(&mut run, "actuator:http://h", "pool_busy", LevelUnit::Count, busy);
        ids(&run).contains(&"target_leak")
    };
    assert!(leaks(&[1.0, 3.0, 5.0, 7.0], 1.0));
    // A few requests more than usual in some seconds.
    assert!(leaks(&[2.0, 3.0, 6.0, 5.0, 8.0, 10.0, 11.0], 1.0));
    // A member that others use comes and goes.
    assert!(!leaks(&[1.0, 6.0, 2.0, 7.0], 1.0));
    // The last reading may count requests that are just ending.
    assert!(!leaks(&[1.0, 1.0, 1.0, 7.0], 1.0));
    // Slow clients hold the same number all the time.
    assert!(!leaks(&[8.0, 8.0, 8.0, 8.0], 1.0));
    // More requests in flight need more members.
    assert!(!leaks(&[1.0, 3.0, 5.0, 7.0], 8.0));
}

#[test]
fn a_pool_that_is_full_for_half_of_the_time() {
    let with = |values: &[f64]| {
        let mut run = base().run();
        watch(&mut run, "actuator:http://h", "pool", LevelUnit::Share, values);
        let full: Vec<f64> = values.iter().map(|share| share * 200.0).collect();
        watch(&mut run, "actuator:http://h", "pool_busy", LevelUnit::Count, &full);
        run
    };
    // 72 % on average.
    let run = with(&[0.1, 0.5, 1.0, 1.0, 1.0]);
    assert_eq!(ids(&run)[0], "target_pool");
    expect!["actuator:http://h: all 200 worker threads busy in 3 of 5 readings (72 % on average)"]
        .assert_eq(&evidence(&run));
    // A short peak is no limit.
    assert!(ids(&with(&[0.1, 0.5, 1.0, 0.6, 0.5, 0.4, 0.5])).is_empty());
}

#[test]
fn what_is_full_inside_comes_before_what_is_full_around_it() {
    let mut run = base().status(500, 900).run();
    for (source, name) in [
        ("actuator:http://h", "connections"),
        ("actuator:http://h", "pool"),
        ("actuator:http://h", "db_pool"),
        ("prometheus:http://db", "db_connections"),
    ] {
        watch(&mut run, source, name, LevelUnit::Share, &[1.0, 1.0]);
    }
    let expected = [
        "db_connections_refused",
        "target_db_pool",
        "target_pool",
        "target_connections",
        "server_errors",
    ];
    assert_eq!(ids(&run), expected);
}

#[test]
fn failed_reads_of_a_source_are_evidence() {
    let with = |silent: usize| {
        let mut run = base().run();
        watch(&mut run, "actuator:http://h", "pool", LevelUnit::Share, &[0.2, 0.27]);
        watch(&mut run, "actuator:http://h", "unanswered", LevelUnit::Share, &vec![1.0; silent]);
        run
    };
    assert!(ids(&with(1)).is_empty());
    assert_eq!(ids(&with(6))[0], "target_silent");
    expect!["6 of 8 reads of actuator:http://h failed under the load; its last values before that: pool 27 %"].assert_eq(&evidence(&with(6)));
    // A process that is gone is not a slow source.
    let mut run = base().fault(Fault::ConnectRefused, 3_000).run();
    watch(&mut run, "port:80", "rss", LevelUnit::Bytes, &[1e6, 1e6]);
    watch(&mut run, "port:80", "unanswered", LevelUnit::Share, &[1.0; 4]);
    assert_eq!(ids(&run)[0], "target_ended");
}

/// A run with these shares of this machine's CPU.
fn shared(target: f64, waited: f64, generator: f64, busy: f64) -> Run {
    let mut run = base().closed().run();
    let machine = [
        ("target_here", 1.0),
        ("machine_cpu", busy),
        ("generator_cpu", generator),
        ("cpu", target),
        ("cores", 2.0 * target),
        ("cores_waited", waited),
        ("busiest_thread", if target + waited > 1.0 { 0.95 } else { 0.5 }),
        ("cpu of rustc", busy - target - generator),
    ];
    for (name, value) in machine {
        watch(&mut run, "machine", name, LevelUnit::Share, &[value; 5]);
    }
    run
}

#[test]
fn the_process_that_has_the_cores_is_named() {
    // Two cores, most of them used by the target.
    assert_eq!(ids(&shared(0.8, 0.4, 0.15, 1.0)), ["target_cpu"]);
    // Both take what they can get.
    let run = shared(0.5, 0.9, 0.45, 1.0);
    assert_eq!(ids(&run), ["shared_cores"]);
    expect!["the target and the generator share cores: this machine's CPU was used up (in 5 readings): 50 % by the target, 45 % by the generator, 5.0 % by others"].assert_eq(&evidence(&run));
    // Other processes have them.
    let run = shared(0.2, 1.6, 0.1, 1.0);
    assert_eq!(ids(&run), ["run_delay"]);
    expect!["this machine's CPU was used up (in 5 readings): 20 % by the target, 10 % by the generator, 70 % by others (most of it rustc, 70 %)"].assert_eq(&evidence(&run));
    // There is a core to spare.
    assert!(ids(&shared(0.2, 0.1, 0.1, 0.5)).is_empty());
    // No process waits for a core.
    assert!(ids(&shared(0.2, 0.1, 0.1, 1.0)).is_empty());
    // One thread does all the work and has its core: other processes are not the cause.
    let mut run = shared(0.45, 0.0, 0.45, 1.0);
    watch(&mut run, "port:80", "busiest_thread", LevelUnit::Share, &[0.98; 5]);
    assert_eq!(ids(&run), ["target_thread"]);
}

#[test]
fn a_thread_or_a_quota_can_be_the_limit_of_a_machine_that_is_idle() {
    let mut run = shared(0.5, 0.0, 0.1, 0.6);
    watch(&mut run, "port:80", "busiest_thread", LevelUnit::Share, &[0.99; 5]);
    assert_eq!(ids(&run), ["target_thread"]);
    let mut run = shared(0.25, 0.0, 0.1, 0.4);
    watch(&mut run, "machine", "cpu_quota", LevelUnit::Count, &[0.5; 5]);
    watch(&mut run, "machine", "cpu_throttled", LevelUnit::Share, &[0.95; 5]);
    assert_eq!(ids(&run), ["target_cpu_quota"]);
}

#[test]
fn waits_for_disk_memory_and_locks_are_distinguished() {
    // 50 requests in flight.
    let run = |levels: &[(&str, f64)]| {
        let mut run = base().in_flight(50.0).run();
        for (name, value) in levels {
            watch(&mut run, "port:80", name, LevelUnit::Count, &[*value; 3]);
        }
        run
    };
    assert_eq!(ids(&run(&[("disk_threads", 30.0)])), ["target_disk"]);
    assert!(ids(&run(&[("disk_threads", 20.0)])).is_empty());
    let swapping = [("disk_threads", 30.0), ("major_faults", 900.0)];
    assert_eq!(ids(&run(&swapping))[0], "target_memory");
    // A disk too fast to show waiting threads: then the group's limit is the evidence.
    let fast = [("disk_threads", 0.0), ("major_faults", 5_000.0)];
    let missed = missed("p99<1ms", 5e6);
    let named = |levels: &[_]| named(&run(levels), std::slice::from_ref(&missed));
    assert!(!named(&fast).contains(&"target_memory"));
    let bound = [&fast[..], &[("memory_refused", 4_000.0)]].concat();
    assert_eq!(named(&bound), ["target_memory"]);
    assert!(ids(&run(&bound)).is_empty(), "nothing is wrong");
    assert_eq!(ids(&run(&[("lock_waiting", 30.0)])), ["target_lock"]);
    assert_eq!(ids(&run(&[("db_lock_waits", 30.0)])), ["db_locks"]);
}

#[test]
fn a_database_that_refuses_and_a_pool_that_churns() {
    // 1,000 responses a second.
    let mut run = base().status(500, 900).run();
    watch(&mut run, "prometheus:http://db", "db_refused", LevelUnit::Count, &[5.0, 905.0]);
    watch(&mut run, "prometheus:http://db", "db_open", LevelUnit::Count, &[151.0]);
    watch(&mut run, "prometheus:http://db", "db_max_connections", LevelUnit::Count, &[151.0]);
    watch(&mut run, "prometheus:http://db", "db_connects", LevelUnit::PerSecond, &[700.0, 800.0]);
    assert_eq!(ids(&run), ["db_connections_refused", "db_pool_churn", "server_errors"]);
    expect!["the database refused 900 connections (up to 151 of 151 allowed were open), while 900 requests (8.3 %) failed"].assert_eq(&evidence(&run));
    expect![
        "connections to the database were opened at 750/s: 0.69 per response, at 1,090 responses/s"
    ]
    .assert_eq(&find(&run, &[])[1].evidence);
    // MariaDB refuses most before it counts them as refused.
    watch(&mut run, "prometheus:http://db", "db_aborted", LevelUnit::Count, &[5.0, 1_205.0]);
    expect!["the database refused at least 900 connections, and 1,200 connection attempts failed (up to 151 of 151 allowed were open), while 900 requests (8.3 %) failed"].assert_eq(&evidence(&run));
    // Only the sockets are known: 6,000 more in TIME-WAIT after 10 s.
    let mut run = base().run();
    watch(&mut run, "port:80", "10.0.0.9:3306 time_wait", LevelUnit::Count, &[100.0, 6_100.0]);
    assert_eq!(ids(&run), ["db_pool_churn"]);
    // A few do not count, nor do those to other ports.
    let mut run = base().run();
    watch(&mut run, "port:80", "10.0.0.9:3306 time_wait", LevelUnit::Count, &[0.0, 600.0]);
    watch(&mut run, "port:80", "10.0.0.9:443 time_wait", LevelUnit::Count, &[0.0, 6_000.0]);
    assert!(ids(&run).is_empty());
}

#[test]
fn unexplained() {
    assert!(ids(&base().status(404, 9).run()).is_empty());
    let run = base().status(404, 12).run();
    assert_eq!(ids(&run), ["unexplained"]);
    expect!["12 requests (0.12 %) failed, and no finding explains it; most often status 404 × 12"]
        .assert_eq(&evidence(&run));
    let alone = missed("p99<1ms", 5e6);
    let found = find(&healthy(), std::slice::from_ref(&alone));
    assert_eq!(found[0].id, "service_time");
    expect!["p99<1ms is missed (5.00 ms), though nothing waits: a request that meets no other takes 5.00 ms, and the median one 5.00 ms"].assert_eq(&found[0].evidence);
    let missed = missed("p99<1ms", 50e6);
    let found = find(&healthy(), std::slice::from_ref(&missed));
    assert_eq!(found[0].id, "unexplained");
    assert!(found[0].advice.contains("mysql://"), "{}", found[0].advice);
    expect!["p99<1ms is missed (50.0 ms); it is not the generator (requests left 10.0 µs late, p99), nor connecting (500 µs, p99), nor waiting in a queue (the median first byte takes 4.94 ms, the fastest 4.94 ms)"].assert_eq(&found[0].evidence);
    // Some resets do not explain times, but they do explain errors.
    let resets = base().fault(Fault::Reset, 12).run();
    assert_eq!(named(&resets, &[missed]), ["unexplained", "server_closes"]);
    let errors = Evaluation {
        text: "errors<0.1%".to_owned(),
        value: Some(0.0012),
        unit: objective::ValueUnit::Share,
        met: false,
        problem: None,
    };
    assert_eq!(named(&resets, &[errors]), ["server_closes"]);
}

#[test]
fn every_finding_names_another_tool() {
    let mut run = base().status(503, 100).connects(20, SECOND + 10 * MS).closed().run();
    watch(&mut run, "port:80", "pool", LevelUnit::Share, &[1.0; 3]);
    let found = find(&run, &[]);
    assert!(found.len() >= 2, "{found:?}");
    assert!(found.iter().all(|finding| finding.check.len() > 10), "{found:?}");
}

/// A run of 8 s with the seconds and tenths of `point`.
fn in_time(point: impl Fn(u64) -> SeriesPoint) -> Run {
    let mut run = base().run();
    run.measured = 8 * SECOND;
    let mut series = Series::default();
    for tenth in 0..80 {
        series.push_tenth(SeriesPoint { second: tenth, seconds: 1, ..point(tenth) });
    }
    for second in 0..8 {
        let mut all = SeriesPoint { p50: point(10 * second + 5).p50, ..SeriesPoint::default() };
        for tenth in 10 * second..10 * second + 10 {
            let of = point(tenth);
            all.counts.merge(&of.counts);
            all.fired += of.fired;
        }
        series.push(SeriesPoint { second, seconds: 1, ..all });
    }
    run.series = series;
    run
}

fn tenth(ok: u64, p50: u64) -> SeriesPoint {
    SeriesPoint {
        counts: Counts { ok, ..Counts::default() },
        fired: 10,
        p50,
        ..SeriesPoint::default()
    }
}

#[test]
fn stalls_of_the_whole_target() {
    let stalled = |at: u64| at % 20 >= 17;
    let run = in_time(|at| tenth(if stalled(at) { 0 } else { 12 }, 5 * MS));
    assert_eq!(ids(&run), ["stalls"]);
    expect!["every 2.00 s the target completes nothing for up to 300 ms (3 times), then all requests resume"].assert_eq(&evidence(&run));
    // Stalls of the generator.
    let own = in_time(|at| SeriesPoint {
        lateness_max: if stalled(at) { 300 * MS } else { 0 },
        ..tenth(if stalled(at) { 0 } else { 12 }, 5 * MS)
    });
    assert!(ids(&own).is_empty());
    // Requests that begin together end together.
    let mut together = in_time(|at| tenth(if at % 3 == 0 { 36 } else { 0 }, 250 * MS));
    together.tally = RunBuilder::of(1_000, 250 * MS).run().tally;
    assert!(ids(&together).is_empty(), "{:?}", ids(&together));
    // Few requests have gaps between them.
    assert!(ids(&in_time(|at| tenth(u64::from(at % 3 == 0), 5 * MS))).is_empty());
    assert!(ids(&in_time(|at| tenth(if at == 30 { 0 } else { 10 }, 5 * MS))).is_empty());
}

#[test]
fn a_step_and_a_target_that_warms_up() {
    let run = in_time(|at| tenth(10, if at < 45 { 20 * MS } else { 200 * MS }));
    assert_eq!(ids(&run), ["step"]);
    let mut throttled = run.clone();
    watch(&mut throttled, "machine", "cpu_quota", LevelUnit::Count, &[0.5; 5]);
    watch(&mut throttled, "machine", "cpu_throttled", LevelUnit::Share, &[1.0; 5]);
    let ranks: Vec<_> = find(&throttled, &[]).iter().map(|one| (one.id, one.rank)).collect();
    assert_eq!(ranks, [("target_cpu_quota", Rank::Cause), ("step", Rank::Context)]);
    let warm = in_time(|at| tenth(10, if at < 20 { 100 * MS } else { 5 * MS }));
    assert_eq!(ids(&warm), ["warm_up"]);
    assert!(find(&warm, &[])[0].advice.contains("--warmup 3s"), "{:?}", find(&warm, &[]));
    let slope = in_time(|at| tenth(10, (20 + at) * MS));
    assert_eq!(ids(&slope), ["drift"]);
    // Noise, a single slow second.
    let noise = in_time(|at| tenth(10, (20 + 7 * (at / 10 % 2)) * MS));
    let once = in_time(|at| tenth(10, if at / 10 == 4 { 200 * MS } else { 20 * MS }));
    for run in [noise, once] {
        assert!(ids(&run).is_empty(), "{:?}", ids(&run));
    }
}

#[test]
fn refusals_faster_than_any_work() {
    let refused = |took: u64| {
        RunBuilder::of(1_000, 20 * MS).add(500, answered(10_000, took, took, 503)).run()
    };
    assert_eq!(find(&refused(MS / 5), &[])[0].id, "load_shed");
    expect!["33 % of the responses are 503 after 200 µs (median), less than any ok response takes (20.0 ms, the fastest): the target refuses what exceeds 100/s, 2 of them at once"].assert_eq(&evidence(&refused(MS / 5)));
    // Users who are refused return at once, which takes all the CPU.
    let spinning = |ok: u64, refused: u64| {
        let refusal = answered(10_000, MS / 5, MS / 5, 503);
        let mut run = RunBuilder::of(ok, 20 * MS).add(refused, refusal).closed().run();
        for (name, value) in [("target_here", 1.0), ("machine_cpu", 1.0), ("cpu", 0.7)] {
            watch(&mut run, MACHINE, name, LevelUnit::Share, &[value; 4]);
        }
        watch(&mut run, MACHINE, "generator_cpu", LevelUnit::Share, &[0.2; 4]);
        watch(&mut run, MACHINE, "cores", LevelUnit::Count, &[2.0; 4]);
        ids(&run)
    };
    assert_eq!(spinning(500, 5_000), ["load_shed", "server_errors", "target_cpu"]);
    assert_eq!(spinning(5_000, 500)[0], "target_cpu");
    // Errors after the work, and other statuses.
    assert!(!ids(&refused(20 * MS)).contains(&"load_shed"));
    let broken =
        RunBuilder::of(1_000, 20 * MS).add(500, answered(10_000, MS / 5, MS / 5, 500)).run();
    assert_eq!(ids(&broken), ["server_errors"]);
}

#[test]
fn a_wait_that_gives_up() {
    let waited = |low: u64, high: u64| {
        RunBuilder::of(375, 40 * MS)
            .more(375, 220 * MS)
            .add(300, answered(10_000, low * MS, low * MS, 500))
            .add(300, answered(10_000, high * MS, high * MS, 500))
            .run()
    };
    assert_eq!(find(&waited(200, 205), &[])[0].id, "wait_limit");
    expect!["44 % of the responses are 500 after 200 ms each (200 ms to 205 ms): requests wait that long for a place and give up; about 3 are served at once (75/s ok × 40.0 ms)"].assert_eq(&evidence(&waited(200, 205)));
    // Failures at any time, and failures of the work itself.
    assert!(!ids(&waited(50, 205)).contains(&"wait_limit"));
    let failing =
        RunBuilder::of(700, 40 * MS).add(300, answered(10_000, 41 * MS, 41 * MS, 500)).run();
    assert_eq!(ids(&failing), ["server_errors"]);
}

#[test]
fn ok_responses_at_even_intervals_among_refusals_are_limited() {
    let limited = |ok: fn(u64) -> u64| {
        let mut run = in_time(|at| tenth(ok(at), MS));
        let refused = answered(10_000, MS, MS, 503);
        run.tally = RunBuilder::of(1_000, MS).add(1_000, refused).run().tally;
        run
    };
    assert_eq!(find(&limited(|at| 10 + at % 2), &[])[0].id, "rate_limit");
    assert!(!ids(&limited(|at| if at % 3 == 0 { 30 } else { 1 })).contains(&"rate_limit"));
    // Refused after a wait: a pool with a time-out completes at even intervals, too.
    let mut waits = in_time(|at| tenth(10 + at % 2, MS));
    let refused = answered(10_000, 200 * MS, 200 * MS, 503);
    waits.tally = RunBuilder::of(1_000, 40 * MS).add(1_000, refused).run().tally;
    assert_eq!(find(&waits, &[])[0].id, "wait_limit");
}

#[test]
fn connections_to_a_peer_are_a_pool_when_they_are_constant() {
    let run = |connections: &[f64]| {
        let mut run = base().more(1, MS).closed().run();
        run.tally = RunBuilder::of(1_000, 200 * MS).more(2, 40 * MS).in_flight(20.0).run().tally;
        watch(&mut run, "port:80", "127.0.0.1:5432 established", LevelUnit::Count, connections);
        watch(&mut run, "port:80", "cores", LevelUnit::Count, &[0.1; 4]);
        run
    };
    let pool = find(&run(&[4.0; 4]), &[]);
    assert_eq!(pool[0].id, "pool_queueing");
    assert!(pool[0].evidence.contains("4 connections to 127.0.0.1:5432"), "{}", pool[0].evidence);
    for other in [[4.0, 5.0, 6.0, 7.0], [20.0; 4]] {
        let found = find(&run(&other), &[]);
        assert!(found.iter().all(|f| !f.evidence.contains("5432")), "{found:?}");
    }
    // Threads that wait for six of them all the time are six places, whatever the product.
    let mut awaited = run(&[5.0, 6.0, 7.0, 6.0]);
    for (name, threads) in [("127.0.0.1:5432 awaited", 6.0), ("futex_threads", 1.0)] {
        watch(&mut awaited, "port:80", name, LevelUnit::Count, &[0.0, threads, threads, threads]);
    }
    let pool = find(&awaited, &[]).remove(0);
    assert!(pool.evidence.contains("6 connections to 127.0.0.1:5432"), "{}", pool.evidence);
    assert_eq!(pool.evidence.matches("5432").count(), 1, "{}", pool.evidence);
    // Requests sent alone give the number: not in every reading do all threads wait.
    probe(&mut awaited, &[0.0401, 0.04, 0.0399, 0.04]);
    let pool = find(&awaited, &[]).remove(0);
    assert!(pool.evidence.starts_with("about 4 are served"), "{}", pool.evidence);
}

#[test]
fn a_stopped_process() {
    let mut run = base().run();
    watch(&mut run, "port:80", "stopped_threads", LevelUnit::Count, &[0.0, 4.0, 4.0]);
    assert_eq!(find(&run, &[])[0].id, "target_stopped");
    let mut once = base().run();
    watch(&mut once, "port:80", "stopped_threads", LevelUnit::Count, &[0.0, 4.0, 0.0, 0.0]);
    assert!(ids(&once).is_empty());
}

#[test]
fn a_target_that_hangs() {
    let hangs = |unfinished: u64| {
        let mut run = in_time(|at| tenth(if at < 50 { 10 } else { 0 }, 5 * MS));
        run.tally.counts.unfinished = unfinished;
        run
    };
    assert_eq!(find(&hangs(300), &[])[0].id, "target_hang");
    assert!(!ids(&hangs(0)).contains(&"target_hang"), "nothing waits");
}

#[test]
fn a_rate_limiter() {
    let run = RunBuilder::of(9_000, 5 * MS).status(429, 1_000).run();
    assert_eq!(ids(&run)[0], "rate_limit");
    expect!["10 % of the responses are 429 Too Many Requests: a rate limiter let 900/s of 1,000/s through"].assert_eq(&evidence(&run));
    assert!(!ids(&RunBuilder::of(9_000, 5 * MS).status(404, 1_000).run()).contains(&"rate_limit"));
}

#[test]
fn redirects_that_nothing_follows() {
    let run = RunBuilder::of(1_000, 5 * MS).status(302, 9_000).run();
    let found = find(&run, &[]);
    let redirects = found.iter().find(|finding| finding.id == "redirects").expect("it is named");
    expect!["90 % of the responses are redirects, which were not followed"]
        .assert_eq(&redirects.evidence);
    for healthy in [304, 200] {
        let run = RunBuilder::of(1_000, 5 * MS).status(healthy, 9_000).run();
        assert!(!ids(&run).contains(&"redirects"), "{healthy}");
    }
}

#[test]
fn a_body_that_waits_for_a_delayed_acknowledgement() {
    let run = |rest: u64, size: u64| {
        let mut outcome = answered(0, 5 * MS, 5 * MS + rest, 200);
        outcome.exchange.bytes_in = size;
        RunBuilder::default().add(1_000, outcome).run()
    };
    assert_eq!(ids(&run(41 * MS, 120)), ["delayed_ack"]);
    assert!(ids(&run(20 * MS, 120)).is_empty());
    assert!(!ids(&run(41 * MS, 100_000)).contains(&"delayed_ack"));
}

#[test]
fn a_quota_on_the_generator_comes_first() {
    let mut run = base().run();
    watch(&mut run, MACHINE, "generator_quota", LevelUnit::Count, &[0.2; 3]);
    watch(&mut run, MACHINE, "generator_throttled", LevelUnit::Share, &[0.1; 3]);
    assert!(ids(&run).is_empty());
    let mut run = base().run();
    watch(&mut run, MACHINE, "generator_quota", LevelUnit::Count, &[0.2; 3]);
    watch(&mut run, MACHINE, "generator_throttled", LevelUnit::Share, &[0.9; 3]);
    assert_eq!(ids(&run)[0], "generator_quota");
    expect!["gake's own CPU quota, 0.2 cores, throttled it in 90 % of the scheduler's periods (in 3 of 3 readings): the figures show that quota, not the target"].assert_eq(&evidence(&run));
}

#[test]
fn a_starved_target() {
    let run = |waited: f64, busy: f64| {
        let mut run = base().run();
        watch(&mut run, "port:80", "cores", LevelUnit::Count, &[0.25; 3]);
        watch(&mut run, "port:80", "cores_waited", LevelUnit::Count, &[waited; 3]);
        watch(&mut run, MACHINE, "machine_cpu", LevelUnit::Share, &[busy; 3]);
        run
    };
    assert_eq!(ids(&run(1.1, 0.6)), ["target_starved"]);
    assert!(ids(&run(0.1, 0.6)).is_empty());
    assert!(ids(&run(1.1, 0.95)).is_empty(), "then it is the machine that has no core left");
}

#[test]
fn waits_for_locks_behind_a_pool() {
    let run = |waiting: f64| {
        let mut run = base().closed().in_flight(200.0).run();
        watch(&mut run, "mysql:h", "db_lock_waits", LevelUnit::Count, &[waiting; 3]);
        watch(&mut run, "mysql:h", "db_running", LevelUnit::Count, &[22.0; 3]);
        run
    };
    assert!(ids(&run(18.0)).contains(&"db_locks"), "{:?}", ids(&run(18.0)));
    assert!(!ids(&run(5.0)).contains(&"db_locks"));
}

#[test]
fn threads_of_the_target_say_what_a_full_server_waits_for() {
    // Twenty users, of whom four are served at once, in 40 ms.
    let saturated = |levels: &[(&str, f64)]| {
        let mut run = base().more(1, MS).closed().run();
        run.tally = RunBuilder::of(1_000, 200 * MS).more(2, 40 * MS).in_flight(20.0).run().tally;
        run.peak_connections = 20;
        watch(&mut run, "port:80", "cores", LevelUnit::Count, &[0.1; 4]);
        let is_given = levels.iter().any(|(name, _)| *name == "futex_threads");
        let idle = [("futex_threads", 2.0)];
        for (name, value) in idle.iter().filter(|_| !is_given).chain(levels) {
            watch(&mut run, "port:80", name, LevelUnit::Count, &[2.0, *value, *value, *value]);
        }
        let finding = find(&run, &[]).remove(0);
        assert_eq!(finding.id, "pool_queueing", "{levels:?}");
        let (_, inside) = finding.evidence.split_once("in flight").unwrap();
        format!("{inside}\n{}\n{}", finding.advice, finding.check)
    };
    let texts = [
        &[][..],
        &[("futex_threads", 18.0)],
        &[("sleeping_threads", 6.0), ("unread_connections", 15.0)],
        &[("sleeping_threads", 6.0), ("unread_connections", 0.0)],
        &[("127.9.8.7:5432 awaited", 6.0), ("unread_connections", 0.0)],
        &[("127.9.8.7:8080 awaited", 22.0)],
        &[("file_lock_threads", 18.0)],
        &[("gunicorn processes", 4.0), ("unread_connections", 15.0), ("java threads", 20.0)],
        // Threads that waited before the load, and half of those that would have to.
        &[("sleeping_threads", 2.0), ("unread_connections", 8.0)],
    ]
    .map(saturated);
    expect![[r#"

        look for a pool of that size: threads, workers, database connections
        ps -eLo comm,wchan:24 | sort | uniq -c there; jstack, py-spy dump
        ; the others wait for a lock (futex)
        look for a semaphore or a pool of that size
        ps -eLo comm,wchan:24 | sort | uniq -c there; jstack, py-spy dump
        ; 4 threads sleep; the others are unread (Recv-Q)
        its workers are all taken: more workers, if it has the cores
        ss -Htn sport = :PORT | awk '$2' | wc -l on the target
        ; 4 threads sleep; the others have been read
        look for a sleep, or a retry with a delay, in the request's code
        ps -eLo comm,wchan:24 | sort | uniq -c on the target
        ; 4 threads wait for 127.9.8.7:5432 (PostgreSQL)
        a larger pool helps if that server has room; else less work for it
        ss -tnp dst PEER; ps -eLo comm,wchan:24 | sort | uniq -c
        ; 20 threads wait for 127.9.8.7:8080
        the limit is behind the target: watch that server, too
        ss -tnp dst PEER; ps -eLo comm,wchan:24 | sort | uniq -c
        ; the others wait for a file lock
        look for the file that each request locks
        lslocks
        ; the others are unread (Recv-Q); it has as many "gunicorn" processes at work
        more "gunicorn" processes, if it has the cores
        ps -eLo comm | sort | uniq -c on the target; that pool's setting

        look for a pool of that size: threads, workers, database connections
        ps -eLo comm,wchan:24 | sort | uniq -c there; jstack, py-spy dump"#]]
    .assert_eq(&texts.join("\n"));
}
