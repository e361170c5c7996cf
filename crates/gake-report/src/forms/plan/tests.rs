//! Every part of a plan comes back.

use super::*;
use crate::testing::plan;

fn again(plan: &Plan) -> Result<Plan, Senseless> {
    let text = serde_json::to_string(&PlanForm::from(plan)).unwrap();
    serde_json::from_str::<PlanForm>(&text).unwrap().plan()
}

#[test]
fn every_part_comes_back() {
    let mut plan = plan();
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    plan.load = Load::Closed { users: 64, think: Duration::from_millis(1_500) };
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
        plan.load = Load::Open { stages: stages.clone(), process };
        assert_eq!(again(&plan).as_ref(), Ok(&plan));
    }
    plan.load = Load::Replay(Trace::described(3_600, 60_500_000_000, 60.0, 75));
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
    plan.load = Load::Closed { users: 9, think: Duration::ZERO };
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
    let plans = loads.into_iter().enumerate().map(named).collect();
    let plan = Plan { load: Load::Scenarios(plans), ..plan() };
    assert_eq!(again(&plan).as_ref(), Ok(&plan));
}

#[test]
fn a_plan_without_sense_is_refused() {
    let mut form = PlanForm::from(&plan());
    form.drain_s = -1.0;
    assert!(form.plan().is_err());
    let mut form = PlanForm::from(&plan());
    form.load = LoadForm::Open { stages: Vec::new(), arrivals: ProcessForm::Uniform };
    assert!(form.plan().is_err());
}
