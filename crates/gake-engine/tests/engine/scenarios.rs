//! Loads with changing numbers of users, and several scenarios in one run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Plan, UserStage};
use gake_core::record::RunEnd;
use gake_engine::{Collector, Stop, WorkerBody, start};

use super::support::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn ramping(stages: &[(usize, usize, u64)], graceful_ramp_down: Duration) -> Plan {
    let stages =
        stages.iter().map(|&(from, to, length)| UserStage { from, to, duration: ms(length) });
    let (stages, think) = (stages.collect(), Duration::ZERO);
    let load = Load::Ramping { stages, graceful_ramp_down, think };
    Plan { drain: Duration::from_secs(20), ..Plan::new("a ramp", load) }
}

#[test]
fn users_share_a_number_of_iterations() {
    for threads in [1, 2, 3] {
        let load = Load::Shared { users: 5, iterations: 103 };
        let done = run(Plan { threads, ..Plan::new("a test", load) }, takes(MS));
        assert_eq!(done.run.tally.counts.ok, 103, "{threads} threads");
        assert_eq!(done.seen.numbers(), (0..103).collect::<Vec<_>>());
        assert!(done.seen.peak() <= 5);
    }
}

#[test]
fn each_user_makes_its_own_iterations() {
    for threads in [1, 2] {
        let load = Load::PerUser { users: 7, iterations: 4 };
        let done = run(Plan { threads, ..Plan::new("a test", load) }, takes(MS));
        assert_eq!(done.run.tally.counts.ok, 28, "{threads} threads");
        assert_eq!(done.seen.lanes.lock().unwrap().len(), 7);
    }
}

#[test]
fn users_of_a_ramp_follow_the_line() {
    for threads in [1, 2] {
        // Up to 8 users in 400 ms, then down to none.
        let plan = Plan { threads, ..ramping(&[(0, 8, 400), (8, 0, 400)], Duration::MAX) };
        let (done, outcomes) = logged(plan, takes(10 * MS));
        let counts = done.run.tally.counts;
        assert_eq!(counts.ok, counts.sent, "a user who leaves finishes its iteration");
        assert!(done.seen.peak() <= 8);
        for outcome in &outcomes {
            let fired = outcome.fired;
            assert!((50 * MS..800 * MS).contains(&fired), "user 0 is active from 50 to 800 ms");
        }
        // User k starts at (k + 1) * 50 ms.
        for lane in done.seen.lanes.lock().unwrap().iter() {
            let comes = (lane.global as u64 + 1) * 50 * MS;
            assert!(lane.first >= comes, "user {} at {}", lane.global, lane.first);
        }
    }
}

#[test]
fn a_user_who_leaves_has_the_graceful_ramp_down() {
    // No responses. The second user leaves at 100 ms and is cut 150 ms later; the first stays to
    // the end at 600 ms, and its drain.
    let plan = Plan { drain: ms(200), ..ramping(&[(2, 2, 100), (1, 1, 500)], ms(150)) };
    let (done, outcomes) = logged(plan, never());
    let counts = done.run.tally.counts;
    assert_eq!((counts.started, counts.interrupted, counts.unfinished), (2, 2, 2), "{counts:?}");
    let mut ends: Vec<_> = outcomes.iter().map(|outcome| outcome.exchange.done).collect();
    ends.sort_unstable();
    assert!(ends[0] >= 250 * MS, "{ends:?}");
    assert!(ends[1] >= 800 * MS, "{ends:?}");
}

#[test]
fn the_number_of_users_can_be_set_from_outside() {
    let load = Load::External { users: 1, max: 6 };
    let plan = Arc::new(Plan { threads: 2, drain: ms(100), ..Plan::new("a test", load) });
    let seen = Arc::new(WorkRecord::default());
    let make = factories(&seen, takes(5 * MS));
    let running = start(&plan, SEED, None, WorkerBody::new(make)).unwrap();
    let users = running.users[0].clone().unwrap();
    let stop = running.stop.clone();
    let peaks = Arc::new(Mutex::new(Vec::new()));
    let setting = {
        let (seen, peaks) = (Arc::clone(&seen), Arc::clone(&peaks));
        std::thread::spawn(move || {
            for wanted in [3, 0, 100] {
                std::thread::sleep(ms(150));
                let users = users.set(wanted);
                std::thread::sleep(ms(150));
                peaks.lock().unwrap().push((users, seen.take_peak()));
            }
            stop.stop(Stop::Drain);
        })
    };
    let mut collector = Collector::new(&plan, SEED, running.spares.len());
    while !collector.is_over() {
        collector.take(running.messages.recv().unwrap(), |_, _| {});
        while collector.next_second().is_some() {}
    }
    setting.join().unwrap();
    running.join();
    let run = collector.finish(0, RunEnd::Done, 1);
    assert_eq!(run.tally.counts.ok, run.tally.counts.sent);
    // At most as many as wanted, and as the maximum of the load.
    let peaks = peaks.lock().unwrap();
    assert_eq!(peaks.iter().map(|peak| peak.0).collect::<Vec<_>>(), [3, 0, 6]);
    assert!(peaks[0].1 <= 3 && peaks[2].1 <= 6, "{peaks:?}");
    assert!(peaks[2].1 > 3, "{peaks:?}");
}

#[test]
fn scenarios_run_in_parallel_with_their_own_counts() {
    for threads in [1, 2, 4] {
        let named = |name: &str, plan: Plan| Plan { name: name.to_owned(), ..plan };
        let iterations = Load::PerUser { users: 3, iterations: 5 };
        let scenarios = vec![
            named("ramp", ramping(&[(0, 4, 300)], Duration::ZERO)),
            named("open", Plan { start: ms(200), ..open(200.0, 500) }),
            named("once", Plan { start: ms(350), ..Plan::new("a test", iterations) }),
        ];
        let whole = Plan { threads, ..Plan::new("three", scenarios) };
        let (done, outcomes) = several(whole, takes(2 * MS));
        let run = &done.run;
        assert_eq!(run.scenarios.len(), 3);
        let of = |number: usize| run.scenarios[number].tally.counts;
        assert_eq!((of(1).ok, of(2).ok), (100, 15), "{threads} threads");
        assert!(of(0).ok > 0);
        let sum = run.scenarios.iter().map(|scenario| scenario.tally.counts.sent).sum::<u64>();
        assert_eq!(run.tally.counts.sent, sum);
        for (number, begins) in [(0, 75), (1, 200), (2, 350)] {
            let fired = outcomes.iter().filter(|(scenario, _)| *scenario == number);
            let first = fired.map(|(_, fired)| *fired).min().unwrap();
            assert!(first >= begins * MS, "scenario {number} at {first}");
        }
        assert_eq!(run.scenarios[1].asked_rate, Some(200.0));
        assert_eq!(run.asked_rate, None, "two of the loops are closed");
        assert!(run.measured >= 700 * MS);
    }
}

#[test]
fn parallel_open_loops_ask_for_the_sum_of_their_rates() {
    let scenarios = vec![open(100.0, 400), Plan { start: ms(200), ..open(50.0, 400) }];
    let (done, _) = several(Plan::new("two", scenarios), takes(0));
    assert_eq!(done.run.tally.counts.ok, 60);
    let asked: f64 = done.run.series.points().iter().filter_map(|point| point.asked).sum();
    assert!((asked - 60.0).abs() < 1e-6, "{asked}");
    let rate = done.run.asked_rate.unwrap();
    assert!((rate - 100.0).abs() < 1e-6, "60 in 600 ms: {rate}");
}
