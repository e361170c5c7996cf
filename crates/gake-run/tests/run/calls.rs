//! A program's own code as the load.

use std::time::Duration;

use gake_run::spec::{Load, RequestSource, RunSpec, ScenarioSpec};
use gake_run::{Fault, run_calls};

fn spec(load: Load) -> RunSpec {
    RunSpec::new(ScenarioSpec::new(RequestSource::Given("orders".to_owned()), load))
}

#[test]
fn calls_count_as_requests() {
    let spec = spec(Load::Shared { users: 4, iterations: 40 });
    let run = run_calls(&spec, |number| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        if number % 4 == 0 { Err(Fault::Timeout(gake_run::Phase::FirstByte)) } else { Ok(()) }
    });
    let run = run.unwrap();
    let counts = run.tally.counts;
    assert_eq!((counts.sent, counts.ok, counts.failed, counts.unfinished), (40, 30, 10, 0));
    assert_eq!(run.plan.target, "orders");
    // No sleep is shorter than asked for; histograms are within 1 %.
    assert!(run.tally.latency.response().quantile(0.0) >= 4_950_000);
}

#[test]
fn a_call_that_never_ends_is_unfinished() {
    let mut spec = spec(Load::rate(50.0, Duration::from_millis(200)));
    spec.scenarios[0].graceful_stop = Duration::from_millis(100);
    let run = run_calls(&spec, |_| std::future::pending()).unwrap();
    let counts = run.tally.counts;
    assert_eq!((counts.sent, counts.ok, counts.unfinished), (10, 0, 10));
}

#[test]
fn requests_beside_calls_are_refused() {
    let url = RequestSource::Url("http://localhost/".to_owned());
    let spec = RunSpec::new(ScenarioSpec::new(url, Load::closed(1)));
    let error = run_calls(&spec, |_| async { Ok(()) }).unwrap_err();
    assert_eq!(error.to_string(), "a run of calls has `given` sources only");
}
