//! The description of a run before it starts, in k6's words.

use super::load::{GRACE, MAX_DURATION};
use super::{Executor, K6Options, RampStage, ScenarioOptions};
use crate::duration::GoDuration;

/// The scenarios as k6 lists them before a run: a line for all and one for each, in the order of
/// their starts. `None` for an execution segment, whose numbers differ.
#[must_use]
pub fn described(options: &K6Options) -> Option<String> {
    if options.execution_segment.is_some() {
        return None;
    }
    let scenarios = sorted(options);
    let ones = scenarios.iter().map(|(_, one)| *one);
    let longest = ones.clone().map(|one| end(one).nanos()).max().unwrap_or(0);
    // The maximum of concurrent users, if all scenarios overlap.
    let users: i64 = ones.map(users).sum();
    let plural = if scenarios.len() == 1 { "" } else { "s" };
    let mut text = format!(
        "scenarios: (100.00%) {} scenario{plural}, {users} max VUs, {} max duration (incl. graceful \
         stop):",
        scenarios.len(),
        GoDuration::from_nanos(longest)
    );
    for (name, scenario) in scenarios {
        text += &format!("\n* {name}: {}{}", what(scenario), details(scenario));
    }
    Some(text)
}

/// The scenarios in the order of their starts.
pub(super) fn sorted(options: &K6Options) -> Vec<(&String, &ScenarioOptions)> {
    let mut scenarios: Vec<_> = options.scenarios.iter().flatten().collect();
    scenarios.sort_by_key(|(name, one)| (one.start_time.unwrap_or_default(), *name));
    scenarios
}

/// The maximum of concurrent users.
pub(super) fn users(scenario: &ScenarioOptions) -> i64 {
    match scenario.executor {
        Executor::RampingVus => most(scenario.stages.as_deref(), scenario.start_vus.unwrap_or(1)),
        Executor::ConstantArrivalRate | Executor::RampingArrivalRate => {
            scenario.max_vus.or(scenario.pre_allocated_vus).unwrap_or(0)
        }
        Executor::ExternallyControlled => scenario.max_vus.or(scenario.vus).unwrap_or(0),
        _ => scenario.vus.unwrap_or(1),
    }
}

/// The maximum of the targets and the start.
pub(super) fn most(stages: Option<&[RampStage]>, start: i64) -> i64 {
    stages.unwrap_or_default().iter().filter_map(|stage| stage.target).fold(start, i64::max)
}

fn length(stages: Option<&[RampStage]>) -> GoDuration {
    let stages = stages.unwrap_or_default().iter().filter_map(|stage| stage.duration);
    GoDuration::from_nanos(stages.map(GoDuration::nanos).fold(0, i64::saturating_add))
}

/// The duration without the graceful stop.
pub(super) fn duration(scenario: &ScenarioOptions) -> GoDuration {
    match scenario.executor {
        Executor::SharedIterations | Executor::PerVuIterations => {
            scenario.max_duration.unwrap_or(MAX_DURATION)
        }
        Executor::RampingVus | Executor::RampingArrivalRate => length(scenario.stages.as_deref()),
        _ => scenario.duration.unwrap_or_default(),
    }
}

/// The latest end of an iteration.
pub(super) fn end(scenario: &ScenarioOptions) -> GoDuration {
    let grace = scenario.graceful_stop.unwrap_or(GRACE).nanos();
    let nanos = match scenario.executor {
        Executor::ExternallyControlled => duration(scenario).nanos(),
        Executor::RampingVus => ramp_end(scenario, grace),
        _ => duration(scenario).nanos().saturating_add(grace),
    };
    GoDuration::from_nanos(scenario.start_time.unwrap_or_default().nanos().saturating_add(nanos))
}

/// The same for ramping users: users that leave early have their own grace.
fn ramp_end(scenario: &ScenarioOptions, grace: i64) -> i64 {
    let stages = scenario.stages.as_deref().unwrap_or_default();
    let whole = length(Some(stages)).nanos();
    let idle = stages.iter().rev().take_while(|stage| stage.target == Some(0)).count();
    if idle == 0 {
        return whole.saturating_add(grace);
    }
    // The users leave in the first of the last stages with target 0.
    let until = length(Some(&stages[..=stages.len() - idle])).nanos();
    let leaving = scenario.graceful_ramp_down.unwrap_or(GRACE).nanos();
    until.saturating_add(leaving).min(whole.saturating_add(grace))
}

/// The load.
fn what(scenario: &ScenarioOptions) -> String {
    let users = users(scenario);
    let iterations = scenario.iterations.unwrap_or(1);
    let time = duration(scenario);
    let stages = || scenario.stages.as_ref().map_or(0, Vec::len);
    let per_second =
        |rate: i64| rate as f64 / scenario.time_unit.unwrap_or(GoDuration::from_secs(1)).secs();
    match scenario.executor {
        Executor::ConstantVus => format!("{users} looping VUs for {time}"),
        Executor::RampingVus => {
            format!("Up to {users} looping VUs for {time} over {} stages", stages())
        }
        Executor::SharedIterations => format!("{iterations} iterations shared among {users} VUs"),
        Executor::PerVuIterations => format!("{iterations} iterations for each of {users} VUs"),
        Executor::ConstantArrivalRate => {
            let rate = per_second(scenario.rate.unwrap_or(0));
            format!("{rate:.2} iterations/s for {time}")
        }
        Executor::RampingArrivalRate => {
            let rate = most(scenario.stages.as_deref(), scenario.start_rate.unwrap_or(0));
            let rate = per_second(rate);
            format!("Up to {rate:.2} iterations/s for {time} over {} stages", stages())
        }
        Executor::ExternallyControlled => format!(
            "Externally controlled execution with {} VUs, {users} max VUs, {time} duration",
            scenario.vus.unwrap_or(0)
        ),
    }
}

/// Other settings, in parentheses.
fn details(scenario: &ScenarioOptions) -> String {
    if scenario.executor == Executor::ExternallyControlled {
        return String::new();
    }
    let mut parts = Vec::new();
    match scenario.executor {
        Executor::SharedIterations | Executor::PerVuIterations => {
            parts.push(format!("maxDuration: {}", duration(scenario)));
        }
        Executor::RampingVus => {
            let down = scenario.graceful_ramp_down.unwrap_or(GRACE);
            parts.push(format!("gracefulRampDown: {down}"));
        }
        Executor::ConstantArrivalRate | Executor::RampingArrivalRate => {
            let (least, most) = (scenario.pre_allocated_vus.unwrap_or(0), users(scenario));
            parts.push(match least < most {
                true => format!("maxVUs: {least}-{most}"),
                false => format!("maxVUs: {most}"),
            });
        }
        _ => {}
    }
    if let Some(exec) = scenario.exec.as_deref().filter(|exec| !exec.is_empty()) {
        parts.push(format!("exec: {exec}"));
    }
    let set = |time: Option<GoDuration>| time.filter(|time| time.nanos() > 0);
    parts.extend(set(scenario.start_time).map(|time| format!("startTime: {time}")));
    let grace = set(scenario.graceful_stop.or(Some(GRACE)));
    parts.extend(grace.map(|time| format!("gracefulStop: {time}")));
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The output of k6 1.8.1.
    #[test]
    fn scenarios_are_described_in_k6s_words() {
        let options = json!({ "scenarios": {
            "a": { "executor": "shared-iterations", "vus": 2, "iterations": 4, "maxDuration": "10s" },
            "b": { "executor": "per-vu-iterations", "vus": 2, "iterations": 3, "startTime": "1s" },
            "c": { "executor": "constant-vus", "vus": 1, "duration": "2s", "gracefulStop": "0s" },
            "d": { "executor": "ramping-vus", "gracefulRampDown": "5s", "exec": "other",
                   "stages": [{ "duration": "1s", "target": 3 }, { "duration": "500ms", "target": 0 }] },
            "e": { "executor": "constant-arrival-rate", "rate": 5, "timeUnit": "1m",
                   "duration": "2s", "preAllocatedVUs": 2, "maxVUs": 5 },
            "f": { "executor": "ramping-arrival-rate", "startRate": 1, "timeUnit": "1s",
                   "stages": [{ "duration": "2s", "target": 3 }], "preAllocatedVUs": 2 },
            "g": { "executor": "externally-controlled", "vus": 1, "maxVUs": 2, "duration": "2s" },
        } });
        let options = K6Options::read(&options).unwrap().options;
        let expected = "\
scenarios: (100.00%) 7 scenarios, 17 max VUs, 10m31s max duration (incl. graceful stop):
* a: 4 iterations shared among 2 VUs (maxDuration: 10s, gracefulStop: 30s)
* c: 1 looping VUs for 2s
* d: Up to 3 looping VUs for 1.5s over 2 stages (gracefulRampDown: 5s, exec: other, gracefulStop: 30s)
* e: 0.08 iterations/s for 2s (maxVUs: 2-5, gracefulStop: 30s)
* f: Up to 3.00 iterations/s for 2s over 1 stages (maxVUs: 2, gracefulStop: 30s)
* g: Externally controlled execution with 1 VUs, 2 max VUs, 2s duration
* b: 3 iterations for each of 2 VUs (maxDuration: 10m0s, startTime: 1s, gracefulStop: 30s)";
        assert_eq!(described(&options).unwrap(), expected);
    }

    #[test]
    fn a_ramp_to_zero_ends_after_the_graceful_ramp_down() {
        let stage =
            |secs: f64, target: i64| json!({ "duration": format!("{secs}s"), "target": target });
        for (stages, other, end) in [
            (vec![stage(1.0, 3), stage(0.5, 0)], json!({ "gracefulRampDown": "5s" }), "6.5s"),
            (vec![stage(1.0, 3)], json!({ "startVUs": 2 }), "31s"),
            (
                vec![stage(1.0, 3), stage(0.5, 0), stage(0.2, 0)],
                json!({ "gracefulRampDown": "0s", "gracefulStop": "0s" }),
                "1.5s",
            ),
        ] {
            let mut scenario = json!({ "executor": "ramping-vus", "stages": stages });
            for (key, value) in other.as_object().unwrap() {
                scenario[key] = value.clone();
            }
            let options =
                K6Options::read(&json!({ "scenarios": { "d": scenario } })).unwrap().options;
            let text = described(&options).unwrap();
            assert!(text.contains(&format!("3 max VUs, {end} max duration")), "{text}");
        }
    }
}
