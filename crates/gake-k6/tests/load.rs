//! The engine's scenarios for k6's executors.

#![allow(clippy::unwrap_used, missing_docs)] // the helpers are tests too

use std::path::Path;
use std::time::Duration;

use gake_core::Load;
use gake_core::plan::{Overflow, UserStage};
use gake_core::schedule::{Schedule, Slice};
use gake_core::spec::{RequestSource, ScenarioSpec};
use gake_k6::options::{K6Options, Tiers, scenario_specs, vus_needed};
use serde_json::{Value, json};

fn options(script: Value) -> K6Options {
    let script = K6Options::read(&script).unwrap().options;
    Tiers { script, ..Tiers::default() }.consolidate().unwrap().options
}

fn specs(script: Value) -> Vec<ScenarioSpec> {
    scenario_specs(&options(script), Path::new("script.js")).unwrap()
}

fn one(scenario: Value) -> ScenarioSpec {
    specs(json!({ "scenarios": { "a": scenario } })).remove(0)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_script_that_says_nothing_runs_once() {
    let spec = specs(Value::Null).remove(0);
    assert_eq!(spec.name, "default");
    assert_eq!(spec.load, Load::PerUser { users: 1, iterations: 1 });
    assert_eq!(spec.duration, Some(600 * SECOND));
    assert_eq!(spec.graceful_stop, 30 * SECOND);
}

#[test]
fn users_stay_for_a_time_or_come_and_leave() {
    let spec = specs(json!({ "vus": 3, "duration": "5s" })).remove(0);
    assert_eq!((spec.load, spec.duration), (Load::closed(3), Some(5 * SECOND)));
    let stages = json!([{ "duration": "5s", "target": 4 }, { "duration": 0, "target": 1 }]);
    let spec = one(json!({
        "executor": "ramping-vus", "startVUs": 0, "stages": stages, "startTime": "2s",
        "gracefulRampDown": "3s", "gracefulStop": 0, "exec": "visit",
        "env": { "A": "b" }, "tags": { "t": "u" },
    }));
    let stages = vec![
        UserStage { from: 0, to: 4, duration: 5 * SECOND },
        UserStage { from: 4, to: 1, duration: Duration::ZERO },
    ];
    let think = Duration::ZERO;
    let expected = Load::Ramping { stages, graceful_ramp_down: 3 * SECOND, think };
    assert_eq!((spec.load, spec.duration), (expected, None));
    assert_eq!((spec.start, spec.graceful_stop), (2 * SECOND, Duration::ZERO));
    assert_eq!(spec.tags, [("t".to_owned(), "u".to_owned())]);
    let RequestSource::Script(script) = spec.source else { panic!("{:?}", spec.source) };
    assert_eq!(script.function.as_deref(), Some("visit"));
    assert_eq!(script.environment, [("A".to_owned(), "b".to_owned())]);
}

#[test]
fn iterations_are_shared_or_of_each_user() {
    let spec = one(json!({ "executor": "shared-iterations", "vus": 3, "iterations": 10 }));
    assert_eq!(spec.load, Load::Shared { users: 3, iterations: 10 });
    let per_user = json!({
        "executor": "per-vu-iterations", "vus": 3, "iterations": 10, "maxDuration": "5s",
    });
    let spec = one(per_user);
    assert_eq!(spec.load, Load::PerUser { users: 3, iterations: 10 });
    assert_eq!(spec.duration, Some(5 * SECOND));
}

#[test]
fn arrivals_come_at_their_rate_and_are_dropped_without_a_user() {
    let spec = one(json!({
        "executor": "constant-arrival-rate", "rate": 30, "timeUnit": "1m", "duration": "10s",
        "preAllocatedVUs": 2, "maxVUs": 5,
    }));
    assert_eq!(spec.load, Load::rate(0.5, 10 * SECOND));
    assert_eq!((spec.max_in_flight, spec.overflow), (5, Overflow::Drop));
    let spec = one(json!({
        "executor": "ramping-arrival-rate", "startRate": 10, "timeUnit": "500ms",
        "stages": [{ "duration": "2s", "target": 40 }], "preAllocatedVUs": 7,
    }));
    let Load::Open { stages, process } = &spec.load else { panic!() };
    let schedule = Schedule::new(*process, stages, None, 1);
    assert_eq!((spec.max_in_flight, schedule.total()), (7, 100));
    // Arrival i is due where the area 20 t + 15 t² is i, the first one where it is 1.
    for (number, area) in [(0, 1.0), (49, 50.0), (99, 100.0_f64)] {
        let at = ((400.0 + 60.0 * area).sqrt() - 20.0) / 30.0;
        let due = schedule.due(number).unwrap() as f64 / 1e9;
        assert!((due - at).abs() < 1e-6, "{number}: {due}, not {at}");
    }
}

#[test]
fn users_are_set_from_outside() {
    let spec = one(json!({
        "executor": "externally-controlled", "vus": 2, "maxVUs": 9, "duration": 0,
    }));
    assert_eq!(spec.load, Load::External { users: 2, max: 9 });
    assert_eq!(spec.duration, None);
}

#[test]
fn segments_share_everything_out() {
    let all = json!({
        "users": { "executor": "constant-vus", "vus": 5, "duration": "3s" },
        "ramp": { "executor": "ramping-vus", "startVUs": 3,
            "stages": [{ "duration": "3s", "target": 7 }] },
        "rate": { "executor": "constant-arrival-rate", "rate": 10, "duration": "1s",
            "preAllocatedVUs": 9 },
        "shared": { "executor": "shared-iterations", "vus": 3, "iterations": 10 },
        "alone": { "executor": "per-vu-iterations" },
    });
    let segments = ["0:1/3", "1/3:1"].map(|segment| {
        let script = json!({ "scenarios": all, "executionSegment": segment });
        specs(script)
    });
    let needed = segments.each_ref().map(|segment| vus_needed(segment));
    assert_eq!(needed, [2 + 2 + 3 + 1, 3 + 5 + 6 + 2 + 1]);
    let loads = |segment: usize, name: &str| {
        let spec = segments[segment].iter().find(|spec| spec.name == name);
        spec.map(|spec| spec.load.clone())
    };
    assert_eq!(loads(0, "alone"), None);
    assert_eq!(loads(1, "alone"), Some(Load::PerUser { users: 1, iterations: 1 }));
    assert_eq!(loads(0, "shared"), Some(Load::Shared { users: 1, iterations: 3 }));
    assert_eq!(loads(1, "shared"), Some(Load::Shared { users: 2, iterations: 7 }));
    let Some(Load::Open { stages, .. }) = loads(1, "rate") else { panic!() };
    assert!((stages[0].to - 20.0 / 3.0).abs() < 1e-9, "its own rate: {stages:?}");
    let Some(Load::Ramping { stages, .. }) = loads(1, "ramp") else { panic!() };
    assert_eq!(stages, [UserStage { from: 2, to: 5, duration: 3 * SECOND }]);
}

#[test]
fn the_arrivals_of_segments_are_those_of_the_whole() {
    let rate = json!({
        "executor": "constant-arrival-rate", "rate": 10, "duration": "1s", "preAllocatedVUs": 9,
    });
    let ramp = json!({
        "executor": "ramping-arrival-rate", "startRate": 3, "preAllocatedVUs": 9,
        "stages": [{ "duration": "2s", "target": 20 }, { "duration": "1s", "target": 5 }],
    });
    let due = |scenario: &Value, segment: &str, sequence: &str| -> Vec<u64> {
        let spec = specs(json!({
            "scenarios": { "a": scenario },
            "executionSegment": segment, "executionSegmentSequence": sequence,
        }))
        .remove(0);
        let Load::Open { stages, process } = &spec.load else { panic!("{:?}", spec.load) };
        let schedule = Schedule::new(*process, stages, None, 1);
        let schedule = match spec.stripes {
            Some(stripes) => schedule.with_pattern(stripes),
            None => schedule,
        };
        assert_eq!(schedule.arrivals(Slice::WHOLE).count() as u64, schedule.total());
        schedule.arrivals(Slice::WHOLE).map(|arrival| arrival.due).collect()
    };
    let sequence = "0,1/3,1/2,1";
    for scenario in [rate, ramp] {
        let whole = due(&scenario, "0:1", "0,1");
        let segments = ["0:1/3", "1/3:1/2", "1/2:1"].map(|one| due(&scenario, one, sequence));
        assert!(segments.iter().all(|segment| !segment.is_empty()), "{segments:?}");
        let mut all = segments.concat();
        all.sort_unstable();
        assert_eq!(all.len(), whole.len());
        // Rates of a third are rounded, and so are their instants.
        let is_due = all.iter().zip(&whole).all(|(due, whole)| due.abs_diff(*whole) <= 2);
        assert!(is_due, "{all:?} are not {whole:?}");
    }
}
