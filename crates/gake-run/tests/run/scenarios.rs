//! Concurrent scenarios: the counts of each match the server's.

use gake_core::plan::UserStage;
use gake_core::record::Run;
use gake_run::spec::file::SpecFile;
use gake_run::spec::{Load, RunSpec, ScenarioSpec};

use crate::support::*;

fn named(name: &str, spec: ScenarioSpec) -> ScenarioSpec {
    ScenarioSpec { name: name.to_owned(), ..spec }
}

/// Requests sent and ok, by scenario.
fn counts(run: &Run) -> Vec<(&str, u64, u64)> {
    let of = |scenario: &'_ gake_core::record::ScenarioRun| {
        let counts = scenario.tally.counts;
        assert_eq!(counts.sent, counts.ok + counts.failed + counts.unfinished, "{counts:?}");
        (counts.sent, counts.ok)
    };
    run.scenarios
        .iter()
        .map(|scenario| (scenario.plan.name.as_str(), of(scenario).0, of(scenario).1))
        .collect()
}

/// A ramp of users, an open loop and iterations per user, which start at different times.
fn three(lab: &gake_lab::Lab, threads: usize) -> RunSpec {
    let stages = vec![
        UserStage { from: 1, to: 6, duration: ms(600) },
        UserStage { from: 6, to: 0, duration: ms(600) },
    ];
    let ramp = Load::Ramping { stages, graceful_ramp_down: ms(5_000), think: ms(5) };
    let open = ScenarioSpec {
        start: ms(300),
        ..ScenarioSpec::new(url(lab, "/echo"), Load::rate(200.0, ms(500)))
    };
    let each = ScenarioSpec {
        start: ms(450),
        ..ScenarioSpec::new(url(lab, "/bytes/10"), Load::PerUser { users: 7, iterations: 13 })
    };
    let mut spec = RunSpec::new(named("ramp", ScenarioSpec::new(url(lab, "/fast"), ramp)));
    spec.scenarios.extend([named("open", open), named("each", each)]);
    spec.threads = Some(threads);
    spec
}

#[test]
fn the_counts_of_three_scenarios_are_exact() {
    for threads in [1, 2] {
        let lab = lab();
        let run = gake_run::run(&three(&lab, threads)).unwrap();
        let stats = lab.shutdown();
        let [ramp, open, each] = counts(&run)[..] else { panic!("{:?}", counts(&run)) };
        assert_eq!(open, ("open", 100, 100));
        assert_eq!(each, ("each", 7 * 13, 7 * 13));
        assert_eq!((ramp.0, ramp.1), ("ramp", ramp.2), "none is lost");
        assert!(ramp.1 > 20, "users came: {ramp:?}");
        let routes = ["/fast", "/echo", "/bytes"].map(|route| stats.routes[route]);
        assert_eq!(routes, [ramp.1, open.1, each.1], "what the server has seen");
        assert_eq!(run.tally.counts.sent, routes.iter().sum::<u64>(), "the sum is the whole");
        // Requests of different scenarios are distinguished by label.
        assert_eq!(run.plan.labels, ["GET /fast", "GET /echo", "GET /bytes/10"]);
        let labels: Vec<_> = run.tally.labels().iter().map(|label| label.counts.sent).collect();
        assert_eq!(labels, routes);
    }
}

#[test]
fn a_scenario_starts_at_its_time() {
    let lab = lab();
    let spec = three(&lab, 1);
    let run = gake_run::run(&spec).unwrap();
    assert!(run.measured >= 1_200_000_000, "the ramp is the longest: {}", run.measured);
    let measured: Vec<_> = run.scenarios.iter().map(|scenario| scenario.measured).collect();
    assert_eq!(measured[1], 500_000_000, "an open loop lasts as long as its stages");
    let starts: Vec<_> = run.scenarios.iter().map(|scenario| scenario.plan.start).collect();
    assert_eq!(starts, [ms(0), ms(300), ms(450)]);
}

#[test]
fn each_scenario_warms_up_before_its_figures() {
    let lab = lab();
    let open = |name: &str, path: &str, rate: f64, start: u64| {
        let load = Load::rate(rate, ms(300));
        named(name, ScenarioSpec { start: ms(start), ..ScenarioSpec::new(url(&lab, path), load) })
    };
    let mut spec = RunSpec::new(open("late", "/fast", 200.0, 400));
    spec.scenarios.push(open("early", "/echo", 100.0, 100));
    spec.warmup = ms(200);
    let prepared = gake_run::ResolvedRun::new(&spec, gake_run::Inputs::default()).unwrap();
    assert_eq!(prepared.plan.length(), Some(ms(900)), "the late one ends last");
    let run = prepared.run().unwrap();
    let stats = lab.shutdown();
    let of = |number: usize| {
        let scenario = &run.scenarios[number];
        (scenario.warmup.ok, scenario.tally.counts.ok, scenario.measured)
    };
    assert_eq!((of(0), of(1)), ((40, 60, 300_000_000), (20, 30, 300_000_000)));
    assert_eq!((run.warmup.ok, run.tally.counts.ok), (60, 90));
    assert_eq!((stats.routes["/fast"], stats.routes["/echo"]), (100, 50));
    // The early one has the first figures.
    assert_eq!((run.plan.warmup, run.measured), (ms(300), 600_000_000));
}

#[test]
fn iterations_are_shared_by_users() {
    let lab = lab();
    let shared = Load::Shared { users: 8, iterations: 101 };
    let spec =
        RunSpec { threads: Some(2), ..RunSpec::new(ScenarioSpec::new(url(&lab, "/fast"), shared)) };
    let run = gake_run::run(&spec).unwrap();
    assert_eq!((run.tally.counts.ok, lab.shutdown().requests), (101, 101));
    assert!(run.scenarios.is_empty(), "one scenario is the whole run");
}

#[test]
fn a_file_is_a_run() {
    let lab = lab();
    let text = format!(
        "objectives = [\"errors<1%\"]\n\
         [[scenario]]\nname = \"get\"\nurl = \"http://{0}/fast\"\nusers = 2\nrequests = 10\n\
         [[scenario]]\nname = \"post\"\nusers = 1\niterations = 5\n\
         headers = [\"X-Common: 1\"]\n\
         [[scenario.request]]\nurl = \"http://{0}/echo\"\nbody = \"hello\"\nweight = 4\n\
         [[scenario.request]]\nname = \"status\"\nurl = \"http://{0}/status/404\"\nmethod = \"PUT\"\n",
        lab.addr()
    );
    let spec = SpecFile::read("a.toml", text.as_bytes()).unwrap().spec().unwrap();
    let run = gake_run::run(&spec).unwrap();
    let stats = lab.shutdown();
    assert_eq!((stats.routes["/fast"], stats.routes["/echo"], stats.routes["/status"]), (10, 4, 1));
    assert_eq!(run.plan.labels, ["GET /fast", "POST /echo", "status"]);
    assert_eq!(run.tally.counts.failed, 1, "404 is not ok");
}
