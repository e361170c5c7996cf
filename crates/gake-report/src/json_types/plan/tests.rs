//! Plans survive a round trip.

use std::time::Duration;

use gake_core::plan::{Overflow, Stage, UserStage};
use gake_core::schedule::{Process, Trace};

use super::*;
use crate::testing::plan;

fn again(plan: &Plan) -> Result<Plan, InvalidPlan> {
    let text = serde_json::to_string(&finished(plan)).unwrap();
    checked(serde_json::from_str(&text).unwrap())
}

#[test]
fn every_part_comes_back() {
    let mut plan = plan();
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    plan.load = Load::Closed { users: 64, think: Duration::from_millis(1_500) }.into();
    plan.duration = None;
    plan.requests = Some(u64::MAX);
    plan.overflow = Overflow::Drop;
    plan.connect_rate = Some(0.1);
    plan.timeouts.first_byte = Some(Duration::from_nanos(1_000_001));
    plan.expect = "2xx,404".parse().unwrap();
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    plan.overflow = Overflow::Queue { waiting: 7 };
    plan.labels = vec!["a b".to_owned(), "č,\"".to_owned()];
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    let stages = vec![
        Stage { from: 1.0 / 3.0, to: 1e9, duration: Duration::from_secs(86_400) },
        Stage::step(0.0, Duration::MAX),
    ];
    for process in [Process::Poisson, Process::Bursts { size: 4, jitter: 1_500_000 }] {
        plan.load = Load::Open { stages: stages.clone(), process }.into();
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
    }
    let trace = Some(Trace::described(3_600, 60_500_000_000, 75));
    plan.load = Load::Replay { speed: 60.0, trace }.into();
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    plan.load = Load::Closed { users: 9, think: Duration::ZERO }.into();
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
}

#[test]
fn scenarios_come_back() {
    let pace = Duration::from_millis(20);
    let down = Duration::from_secs(30);
    let stages = vec![UserStage { from: 1, to: 50, duration: Duration::from_secs(9) }];
    let loads = [
        Load::Paced { users: 7, pace },
        Load::Ramping { stages, graceful_ramp_down: down, think: pace },
        Load::Shared { users: 3, iterations: 100 },
        Load::PerUser { users: 3, iterations: 9 },
        Load::External { users: 0, max: 1_000 },
    ];
    let named = |(i, load)| Plan {
        name: format!("scenario {i}"),
        start: Duration::from_secs(i as u64),
        tags: vec![("team".to_owned(), "checkout".to_owned())],
        ..Plan::new("http://localhost/", load)
    };
    let plans: Vec<_> = loads.into_iter().enumerate().map(named).collect();
    let plan = Plan { load: plans.into(), ..plan() };
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
}

#[test]
fn an_invalid_plan_is_refused() {
    let json = serde_json::to_value(plan()).unwrap();
    for (field, value) in [
        ("drain_s", serde_json::json!(-1.0)),
        ("load", serde_json::json!({"loop": "open", "stages": [], "arrivals": "uniform"})),
    ] {
        let mut json = json.clone();
        json[field] = value;
        assert!(
            serde_json::from_value(json)
                .map_err(|error| error.to_string())
                .and_then(checked)
                .is_err()
        );
    }
}

/// Plans in the format of version 0.1.
#[test]
fn plans_of_older_files_are_read() {
    let text = |load: &str| {
        format!(
            r#"{{"target":"http://h/","load":{load},"duration_s":5.0,"requests":null,"warmup_s":0.5,
            "connections":7,"max_in_flight":7,"overflow":{{"queue":{{"waiting":3}}}},
            "connect_rate":null,"idle_connections":0,"keepalive":true,
            "timeouts":{{"connect_s":10.0,"first_byte_s":null,"total_s":30.0}},"drain_s":5.0,
            "threads":2,"spin":false,"expect":"200-399","labels":[]}}"#
        )
    };
    let read = |load: &str| checked(serde_json::from_str(&text(load)).unwrap()).unwrap();
    let second = Duration::from_secs(1);
    let (think, pace) = (Duration::ZERO, Duration::from_millis(20));
    let open = vec![Stage::step(5.0, Duration::MAX)];
    let trace = Some(Trace::described(9, 2_500_000_000, 4));
    for (load, expected) in [
        (r#"{"loop":"closed","think_s":0.0}"#, Load::Closed { users: 7, think }),
        (r#"{"loop":"closed","users":50,"think_s":0.0}"#, Load::Closed { users: 50, think }),
        (r#"{"loop":"paced","pace_s":0.02}"#, Load::Paced { users: 7, pace }),
        (
            r#"{"loop":"open","stages":[{"from":5.0,"to":5.0,"duration_s":null}],
            "arrivals":{"bursts":{"size":4,"jitter_s":0.02}}}"#,
            Load::Open { stages: open, process: Process::Bursts { size: 4, jitter: 20_000_000 } },
        ),
        (
            r#"{"loop":"replay","arrivals":9,"length_s":2.5,"speed":2.0,"peak":4}"#,
            Load::Replay { speed: 2.0, trace },
        ),
        (
            r#"{"loop":"per_user","users":3,"iterations":9}"#,
            Load::PerUser { users: 3, iterations: 9 },
        ),
    ] {
        let plan = Plan {
            duration: Some(second * 5),
            warmup: second / 2,
            connections: 7,
            max_in_flight: 7,
            overflow: Overflow::Queue { waiting: 3 },
            threads: 2,
            ..Plan::new("http://h/", expected)
        };
        assert_eq!(read(load), plan, "{load}");
    }
    let several = text(&format!(
        r#"{{"loop":"scenarios","scenarios":[{}]}}"#,
        text(r#"{"loop":"closed","think_s":0.0}"#)
    ));
    let plan = checked(serde_json::from_str(&several).unwrap()).unwrap();
    assert_eq!(plan.scenarios()[0].load.users(), Some(7));
}
