//! Searches and overload maps of virtual servers with known capacities: no socket, no clock, fixed
//! seeds.
//!
//! The bounds are one-sided binomial ones: with other seeds a correct method fails with a
//! probability under 10⁻³. The full study is `cargo xtask sim`.

#![allow(clippy::unwrap_used)] // the helpers are tests too

mod baseline;
mod server;
mod servers;
mod trial;

use std::time::Duration;

use gake_judge::Clause;
use gake_judge::overload::{self, Overload, OverloadClass, Recovery};
use gake_judge::search::{
    CapacityResult, Dimension, Search, SearchAction, SearchOptions, SearchResult, StepOutcome,
    StopReason, TrialLoad, TrialSecond,
};
use server::{Arrivals, Done, Metastable, Model, Server, Service};
use servers::{Case, cases};

fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

fn search(case: &Case, seed: u64, options: SearchOptions) -> SearchResult {
    let mut server = Server::new(case.model.clone(), seed * 7 + 11);
    let mut search = Search::new(case.clauses(), options);
    trial::run(&mut search, &mut server);
    search.result()
}

/// Percentages of runs within 5 %, with the truth in the interval, and with a safe rate below it.
fn study(case: &Case, runs: u64) -> [f64; 3] {
    let mut counts = [0u32; 3];
    for seed in 0..runs {
        let result = search(case, seed, SearchOptions::default());
        assert!(result.spent <= 125.0, "{} spent {}", case.name, result.spent);
        let CapacityResult::Capacity(e) = result.found else { continue };
        counts[0] += u32::from((e.capacity / case.truth - 1.0).abs() < 0.05);
        counts[1] += u32::from(e.low <= case.truth && case.truth <= e.high);
        counts[2] += u32::from(e.safe <= case.truth);
    }
    counts.map(|count| 100.0 * f64::from(count) / runs as f64)
}

/// Nominally 90 % within 5 % and 95 % covered, less three standard deviations of 30 runs.
#[test]
fn capacities_of_queues_are_found_with_honest_intervals() {
    for name in ["mmc", "mdc", "usl"] {
        let [within, covered, safe] = study(&case(name), 30);
        assert!(within >= 73.0, "{name}: {within} % within 5 %");
        assert!(covered >= 83.0, "{name}: {covered} % covered");
        assert!(safe >= 83.0, "{name}: {safe} % safe");
    }
}

/// 200 concurrent requests of 5 s each: two minutes are too short for such a server.
#[test]
fn a_budget_that_is_too_small_names_a_sufficient_one() {
    let model = Model {
        kind: Service::Fixed,
        slots: 200,
        places: 10_000,
        service: 5.0,
        ..Model::default()
    };
    let objectives = &["p99<10s"];
    let slow = Case { name: "slow", model, objectives, truth: 40.0, ..case("mdc") };
    let short = search(&slow, 1, SearchOptions::default());
    assert_eq!(short.ended, StopReason::Budget);
    let needed = short.budget_needed.unwrap();
    assert!((300.0..7_200.0).contains(&needed), "{needed}");
    let budget = Duration::from_secs_f64(needed);
    let long = search(&slow, 1, SearchOptions { budget, ..SearchOptions::default() });
    assert_eq!(long.budget_needed, None, "{long:?}");
    let CapacityResult::Capacity(found) = long.found else { panic!("{long:?}") };
    assert!(found.low <= 40.0 && 35.0 <= found.high, "{found:?}");
}

/// A fast server with an objective that it cannot miss, at 40/s at most. An objective of seconds
/// gets steps of minutes only when the budget has them.
#[test]
fn a_budget_of_seconds_names_one_of_minutes() {
    let fast = Case { name: "fast", objectives: &["p50<20s"], truth: 400.0, ..case("mdc") };
    let options = |seconds: f64| SearchOptions {
        dimension: Dimension::TlsHandshakes,
        budget: Duration::from_secs_f64(seconds),
        highest: Some(40.0),
        ..SearchOptions::default()
    };
    let short = search(&fast, 1, options(5.0));
    assert_eq!((short.ended, short.rungs.len()), (StopReason::Budget, 2), "{short:?}");
    let needed = short.budget_needed.unwrap();
    // Thirteen steps of 8 s to 12 s, including warm-ups.
    assert!((104.0..=170.0).contains(&needed), "{needed}");
    let long = search(&fast, 1, options(needed));
    assert_eq!((long.ended, long.budget_needed), (StopReason::Ceiling, None), "{long:?}");
    assert!(
        matches!(long.found, CapacityResult::AtLeast { level, .. } if level > 38.0),
        "{long:?}"
    );
}

#[test]
fn without_a_response_no_sufficient_budget_is_known() {
    let budget = Duration::from_millis(500);
    let result = search(&case("mdc"), 1, SearchOptions { budget, ..SearchOptions::default() });
    assert_eq!(result.rungs, []);
    assert_eq!((result.ended, result.budget_needed), (StopReason::Budget, None), "{result:?}");
}

/// In the default two minutes a slow service is found within a factor, and not overestimated.
#[test]
fn a_slow_service_is_found_as_far_as_two_minutes_go() {
    let model = Model {
        kind: Service::Fixed,
        slots: 200,
        places: 10_000,
        service: 5.0,
        ..Model::default()
    };
    let objectives = &["p99<12s"];
    let slow = Case { name: "slow", model, objectives, truth: 40.0, ..case("mdc") };
    for seed in 0..5 {
        let rate = search(&slow, seed, SearchOptions::default());
        match rate.found {
            CapacityResult::Capacity(e) => assert!(e.low <= 40.0 && 40.0 <= e.high * 1.02, "{e:?}"),
            CapacityResult::AtLeast { level, .. } => {
                assert!((20.0..=42.0).contains(&level), "{level}")
            }
            other => panic!("{other:?}"),
        }
        assert!(rate.spent <= 140.0, "{}", rate.spent);
        // 480 users wait 12 s each.
        let dimension = Dimension::Users;
        let users = search(&slow, seed, SearchOptions { dimension, ..SearchOptions::default() });
        match users.found {
            CapacityResult::Capacity(e) => {
                assert!(e.low <= 480.0 && 480.0 <= e.high * 1.02, "{e:?}")
            }
            CapacityResult::AtLeast { level, .. } => {
                assert!((200.0..=490.0).contains(&level), "{level}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn errors_and_bursts_widen_the_interval_and_do_not_break_it() {
    for name in ["mm1", "mm2", "mmck", "pool"] {
        let [_, covered, _] = study(&case(name), 12);
        assert!(covered >= 75.0, "{name}: {covered} % covered");
    }
}

#[test]
fn it_beats_doubling_and_bisecting_in_equal_time() {
    let case = case("mmc");
    let (mut ours, mut theirs, mut covered) = (0.0, 0.0, [0u32; 2]);
    for seed in 0..20 {
        let mut server = Server::new(case.model.clone(), seed * 7 + 11);
        let bisected = baseline::bisect(&case, &mut server, case.truth / 15.0);
        assert!(bisected.spent > 100.0);
        theirs += (bisected.capacity / case.truth - 1.0).powi(2);
        covered[1] += u32::from(bisected.low <= case.truth && case.truth <= bisected.high);
        let CapacityResult::Capacity(e) = search(&case, seed, SearchOptions::default()).found
        else {
            panic!()
        };
        ours += (e.capacity / case.truth - 1.0).powi(2);
        covered[0] += u32::from(e.low <= case.truth && case.truth <= e.high);
    }
    assert!(ours < 0.6 * theirs, "squared errors: {ours} against {theirs}");
    assert!(covered[0] >= 16 && covered[1] <= 11, "{covered:?}");
}

#[test]
fn a_server_that_misses_the_objective_without_load_has_no_capacity() {
    let case = Case { objectives: &["p99<60ms"], ..case("mmc") };
    let result = search(&case, 1, SearchOptions::default());
    assert_eq!(result.ended, StopReason::Infeasible);
    assert!(matches!(result.found, CapacityResult::Infeasible { .. }), "{:?}", result.found);
    assert!(result.spent < 30.0);
}

/// When the budget ends the search before the floor is tried twice, no level has passed.
#[test]
fn a_small_budget_invents_no_capacity() {
    let case = Case { objectives: &["p99<60ms"], ..case("mmc") };
    for budget in 10..=24 {
        let options =
            SearchOptions { budget: Duration::from_secs(budget), ..SearchOptions::default() };
        let result = search(&case, 1, options);
        assert!(
            matches!(result.found, CapacityResult::Infeasible { .. } | CapacityResult::Unknown),
            "{budget}: {:?}",
            result.found
        );
    }
}

/// A queue whose services take twenty times as long for some seconds; its objective fails then.
#[test]
fn a_target_that_warms_up_is_searched_again_and_its_cold_steps_do_not_count() {
    let warm = case("mmc");
    for (until, cold_steps) in [(6.0, true), (12.0, true), (0.0, false)] {
        let model = Model { cold: (until, 20.0), ..warm.model.clone() };
        let case = Case { model, ..case("mmc") };
        let mut server = Server::new(case.model.clone(), 3);
        let mut search = Search::new(case.clauses(), SearchOptions::default());
        trial::run(&mut search, &mut server);
        let cold = search.steps().iter().filter(|step| step.outcome == StepOutcome::Cold);
        assert_eq!(cold.count() > 0, cold_steps, "{until}");
        let result = search.result();
        assert_eq!(result.warm_up.is_some(), cold_steps, "{result:?}");
        let CapacityResult::Capacity(e) = result.found else { panic!("{until}: {result:?}") };
        assert!(0.9 * e.low <= case.truth && case.truth <= 1.1 * e.high, "{until}: {e:?}");
        assert!(result.spent <= 125.0, "{}", result.spent);
    }
}

/// Acknowledgements that a server delays, for example, cost a single user 40 ms, and many none.
#[test]
fn a_light_load_that_is_slow_by_nature_is_no_warm_up() {
    let case = case("mmc");
    let mut server = Server::new(case.model.clone(), 3);
    let mut search = Search::new(case.clauses(), SearchOptions::default());
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                let mut seen = trial::observe(&mut server, &trial, search.clauses());
                if trial.load == TrialLoad::Users(1) {
                    seen.response = 5.0 * case.model.service;
                }
                search.tell(seen);
            }
            SearchAction::Rest(_) => {}
            SearchAction::Done => break,
        }
    }
    let cold = search.steps().iter().filter(|step| step.outcome == StepOutcome::Cold);
    assert!(cold.count() <= 3, "{:?}", search.steps());
    let result = search.result();
    assert_eq!(result.warm_up, None);
    assert!(matches!(result.found, CapacityResult::Capacity(_)), "{result:?}");
}

#[test]
fn the_highest_rate_allowed_is_never_passed() {
    let case = case("mmc");
    let options = SearchOptions { highest: Some(200.0), ..SearchOptions::default() };
    let mut server = Server::new(case.model.clone(), 3);
    let mut search = Search::new(case.clauses(), options);
    trial::run(&mut search, &mut server);
    for step in search.steps() {
        assert!(matches!(step.trial.load, TrialLoad::Rate(rate) if rate <= 200.0), "{step:?}");
    }
    let CapacityResult::AtLeast { level, .. } = search.result().found else { panic!() };
    assert!(level > 180.0 && level <= 200.0, "{level}");
    // A limit above the capacity has no effect.
    let options = SearchOptions { highest: Some(600.0), ..SearchOptions::default() };
    let CapacityResult::Capacity(e) = self::search(&case, 3, options).found else { panic!() };
    assert!(e.low <= case.truth && case.truth <= e.high, "{e:?}");
}

#[test]
fn a_small_budget_gives_a_wide_interval() {
    let case = case("mmc");
    for seed in 0..5 {
        let options = SearchOptions { budget: Duration::from_secs(45), ..SearchOptions::default() };
        let result = search(&case, seed, options);
        assert!(result.spent <= 50.0, "{}", result.spent);
        assert_eq!(result.ended, StopReason::Budget);
        let CapacityResult::Capacity(e) = result.found else { panic!("{:?}", result.found) };
        assert!(e.half_width() > 0.08, "{e:?}");
    }
    let options = SearchOptions { budget: Duration::from_secs(5), ..SearchOptions::default() };
    assert!(!matches!(search(&case, 1, options).found, CapacityResult::Capacity(_)));
}

#[test]
fn users_of_a_closed_loop_are_found_too() {
    // Fixed service in a closed loop: R = s·N/c, so 100 ms hold up to 40 users.
    let case = Case { objectives: &["p95<101ms"], ..case("mdc") };
    let options = SearchOptions { dimension: Dimension::Users, ..SearchOptions::default() };
    for seed in 0..3 {
        let result = search(&case, seed, options.clone());
        let CapacityResult::Capacity(e) = result.found else { panic!("{:?}", result.found) };
        assert!((36.0..=43.0).contains(&e.capacity), "{e:?}");
    }
}

/// The generator is the limit above 1,500/s: failures there do not count.
#[test]
fn the_generators_limit_is_never_the_servers_capacity() {
    let case = Case { truth: 2_000.0, ..case("mmc") };
    let fast = Model { slots: 64, ..case.model.clone() };
    let mut server = Server::new(fast, 5);
    let mut search = Search::new(case.clauses(), SearchOptions::default());
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                let mut seen = trial::observe(&mut server, &trial, search.clauses());
                if matches!(trial.load, TrialLoad::Rate(rate) if rate > 1_500.0) {
                    seen.limited = Some("the generator is busy".to_owned());
                    for clause in &mut seen.clauses {
                        clause.total.bad = clause.total.of;
                    }
                }
                search.tell(seen);
            }
            SearchAction::Rest(_) => {}
            SearchAction::Done => break,
        }
    }
    let result = search.result();
    let CapacityResult::AtLeast { level, why } = result.found else { panic!("{:?}", result.found) };
    assert!(level <= 1_500.0 && level > 1_000.0, "{level}");
    assert!(why.contains("generator"), "{why}");
}

#[test]
fn a_target_without_responses_ends_the_search() {
    let case = case("mmc");
    let mut server = Server::new(case.model.clone(), 5);
    let mut search = Search::new(case.clauses(), SearchOptions::default());
    let mut trials = 0;
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                trials += 1;
                let mut seen = trial::observe(&mut server, &trial, search.clauses());
                if trials > 8 {
                    (seen.errors, seen.ok) = (seen.due, 0);
                    for clause in &mut seen.clauses {
                        clause.total.bad = clause.total.of;
                    }
                }
                search.tell(seen);
            }
            SearchAction::Rest(_) => {}
            SearchAction::Done => break,
        }
    }
    assert_eq!(search.result().ended, StopReason::Gone);
    assert!(trials <= 12, "{trials}");
}

#[test]
fn an_interrupt_leaves_the_result_so_far() {
    let case = case("mmc");
    let mut server = Server::new(case.model.clone(), 5);
    let mut search = Search::new(case.clauses(), SearchOptions::default());
    assert_eq!(search.result().found, CapacityResult::Unknown);
    for _ in 0..14 {
        if let SearchAction::Trial(trial) = search.next() {
            assert_eq!(
                search.next(),
                SearchAction::Trial(trial.clone()),
                "asking twice changes nothing"
            );
            search.tell(trial::observe(&mut server, &trial, search.clauses()));
        }
    }
    search.next();
    search.interrupt();
    assert_eq!(search.next(), SearchAction::Done);
    assert!(matches!(search.result().found, CapacityResult::Capacity(_)));
    assert_eq!(search.result().ended, StopReason::Interrupted);
}

/// Runs an overload map; requests count in the second in which they end.
fn map(model: Model, capacity: f64, limit: f64) -> Overload {
    let steps = overload::steps(capacity, None);
    let mut server = Server::new(model, 9);
    let mut done: Vec<Done> = Vec::new();
    let mut end = 0.0;
    for step in &steps {
        end += step.seconds as f64;
        server.load(&Arrivals::Open(step.level), end, &mut done);
    }
    let mut seconds = vec![TrialSecond::default(); end as usize];
    for d in &done {
        let Some(second) = seconds.get_mut((d.arrival + d.latency) as usize) else { continue };
        second.due += 1.0;
        if d.refused {
            second.failed += 1.0;
            second.failure = d.latency;
        } else {
            second.ok += 1.0;
            second.good += f64::from(u8::from(d.latency <= limit));
            second.response += d.latency;
        }
    }
    seconds.iter_mut().for_each(|second| second.response /= second.ok.max(1.0));
    overload::judge(&steps, &seconds)
}

#[test]
fn classes_of_overload() {
    let queue = map(Model::default(), 363.0, 0.15);
    assert_eq!(queue.class, OverloadClass::Graceful, "{queue:?}");
    assert!(queue.cliff, "{queue:?}");
    assert!(matches!(queue.recovery, Recovery::After(s) if s > 1.0), "{queue:?}");
    let bounded = map(Model { places: 40, ..Model::default() }, 350.0, 0.15);
    assert_eq!(bounded.class, OverloadClass::Shedding, "{bounded:?}");
    assert!(matches!(bounded.recovery, Recovery::After(s) if s <= 1.0), "{bounded:?}");
    let contended = |kappa| Model {
        slots: 64,
        places: 600,
        service: 0.01,
        sigma: 0.02,
        kappa,
        ..Model::default()
    };
    // By the law, 64 in flight leave 66 % and 31 % of the peak.
    assert_eq!(map(contended(0.002), 900.0, 0.1).class, OverloadClass::Retrograde);
    assert_eq!(map(contended(0.01), 460.0, 0.1).class, OverloadClass::Collapsing);
}

#[test]
fn metastability_is_distinguished_from_draining() {
    let metastable = Metastable { trigger: 0.3, slower: 2.5, heal: 120.0 };
    let model = Model { places: 400, metastable: Some(metastable), ..Model::default() };
    let stuck = map(model.clone(), 363.0, 0.15);
    assert_eq!(stuck.recovery, Recovery::Metastable, "{stuck:?}");
    assert!(stuck.hysteresis.is_some());
    let well = map(Model { metastable: None, ..model }, 363.0, 0.15);
    assert!(matches!(well.recovery, Recovery::After(_)), "{well:?}");
    assert_eq!(well.hysteresis, None);
}

/// A search bounded only by a level of the target, which is `idle` plus `each` per request a
/// second, read once a second with a few percent of noise.
fn by_level(bound: f64, (idle, each): (f64, f64), seed: u64) -> SearchResult {
    let model = Model { slots: 64, service: 0.001, places: 10_000, ..Model::default() };
    let cpu = Clause::target("cpu<25%".to_owned(), "cpu".to_owned(), bound);
    let mut server = Server::new(model, 5);
    let options = SearchOptions { seed, ..SearchOptions::default() };
    let mut search = Search::new([case("mmc").clauses(), vec![cpu]].concat(), options);
    let mut noise = seed;
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                let mut seen = trial::observe(&mut server, &trial, search.clauses());
                let rate = match trial.load {
                    TrialLoad::Rate(_) => seen.rate(),
                    _ => seen.throughput,
                };
                let read = |_| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                    let part = (noise >> 40) as f64 / f64::from(1 << 24);
                    (idle + each * rate) * (0.94 + 0.12 * part)
                };
                seen.clauses[1].levels = (0..trial.duration.as_secs()).map(read).collect();
                search.tell(seen);
            }
            SearchAction::Rest(rest) => server.now += rest.as_secs_f64(),
            SearchAction::Done => return search.result(),
        }
    }
}

/// The target can do 64,000/s, and the bound is reached at 1 %, 10 % and 50 % of that.
#[test]
fn a_bound_on_a_level_is_found_far_below_the_targets_maximum() {
    for truth in [640.0, 6_400.0, 32_000.0] {
        for seed in 1..4 {
            let result = by_level(0.25, (0.05, 0.20 / truth), seed);
            let CapacityResult::Capacity(e) = result.found else {
                panic!("{truth}: {:?}", result.found)
            };
            assert!(e.low <= truth && truth <= e.high, "{truth}: {e:?}");
            assert!(e.half_width() < 0.08, "{truth}: {e:?}");
        }
    }
}

#[test]
fn the_capacity_is_where_a_level_reaches_its_bound() {
    let case = case("mmc");
    let cpu = Clause::target("cpu<50%".to_owned(), "cpu".to_owned(), 50.0);
    let mut server = Server::new(case.model.clone(), 5);
    let mut search = Search::new([case.clauses(), vec![cpu]].concat(), SearchOptions::default());
    loop {
        match search.next() {
            SearchAction::Trial(trial) => {
                let mut seen = trial::observe(&mut server, &trial, search.clauses());
                // 5 % idle, and 0.2 % a request a second: 50 % at 225/s.
                let level = 5.0 + 0.2 * seen.rate();
                seen.clauses[1].levels = vec![level; 4];
                search.tell(seen);
            }
            SearchAction::Rest(rest) => server.now += rest.as_secs_f64(),
            SearchAction::Done => break,
        }
    }
    let result = search.result();
    let CapacityResult::Capacity(e) = result.found else { panic!("{:?}", result.found) };
    assert!(e.low <= 225.0 && 225.0 <= e.high, "{e:?}");
    assert_eq!(result.binding.map(|clause| clause.text), Some("cpu<50%".to_owned()));
}
