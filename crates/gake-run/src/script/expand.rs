//! Expansion of draft scenarios whose load is described by their script's options.

use gake_core::spec::{FieldPath, RunDraft, ScenarioDraft};
use gake_judge::Objective;
use gake_k6::threshold::{MetricThresholds, Thresholds};

use super::ConfiguredScript;
use crate::{RunError, Scripts};

/// Replaces each scenario of `draft` that fires a script and sets no load by the scenarios of the
/// script's options, and adds the scripts' thresholds to the objectives. Returns the loaded scripts
/// by their paths in the draft.
///
/// # Errors
/// When a script cannot be loaded, or its options cannot be expressed in a spec.
pub fn expand(
    draft: &mut RunDraft,
    scripts: &dyn Scripts,
) -> Result<Vec<(std::path::PathBuf, ConfiguredScript)>, RunError> {
    let mut loaded: Vec<(std::path::PathBuf, ConfiguredScript)> = Vec::new();
    let mut scenarios = Vec::with_capacity(draft.scenarios.len());
    for (number, scenario) in std::mem::take(&mut draft.scenarios).into_iter().enumerate() {
        let Some(path) = scenario.script.clone() else {
            scenarios.push(scenario);
            continue;
        };
        if !loaded.iter().any(|(known, _)| *known == path) {
            loaded.push((path.clone(), scripts.load(&path)?));
        }
        let Some((_, script)) = loaded.iter().find(|(known, _)| *known == path) else { continue };
        if sets_a_load(&scenario) {
            scenarios.push(scenario);
            continue;
        }
        let options = &script.options;
        if options.execution_segment.is_some() || options.execution_segment_sequence.is_some() {
            let at = FieldPath::root().key("scenario").index(number).key("script");
            let problem = "its option executionSegment selects a segment of a test: run all of it \
                           with --agents, or the segment with gake as k6 run";
            return Err(RunError::spec(at, problem));
        }
        let own = script.run.spec.draft().scenarios;
        let is_only = own.len() == 1;
        scenarios.extend(own.into_iter().map(|own| joined(own, &scenario, is_only)));
    }
    draft.scenarios = scenarios;
    for (_, script) in &loaded {
        for threshold in script.thresholds_as_objectives() {
            if !draft.objectives.contains(&threshold) {
                draft.objectives.push(threshold);
            }
        }
    }
    Ok(loaded)
}

/// Whether a scenario sets a load.
fn sets_a_load(scenario: &ScenarioDraft) -> bool {
    scenario.rate.is_some()
        || scenario.stages.is_some()
        || scenario.users.is_some()
        || scenario.users_max.is_some()
        || scenario.pace.is_some()
        || scenario.iterations.is_some()
        || scenario.iterations_per_user.is_some()
        || scenario.requests.is_some()
        || scenario.duration.is_some()
}

/// A scenario of a script's options, overridden by the draft.
fn joined(own: ScenarioDraft, over: &ScenarioDraft, is_only: bool) -> ScenarioDraft {
    let mut scenario = own;
    scenario.name = match (&over.name, scenario.name) {
        (None, own) => own,
        (Some(name), Some(own)) if !is_only => Some(format!("{name}:{own}")),
        (Some(name), _) => Some(name.clone()),
    };
    scenario.script.clone_from(&over.script);
    scenario.environment.extend(over.environment.clone());
    scenario.tags.extend(over.tags.clone());
    scenario.function = over.function.clone().or(scenario.function);
    scenario.think = over.think.or(scenario.think);
    scenario.arrivals = over.arrivals.or(scenario.arrivals);
    scenario.overflow = over.overflow.or(scenario.overflow);
    scenario.max_in_flight = over.max_in_flight.or(scenario.max_in_flight);
    scenario.graceful_stop = over.graceful_stop.or(scenario.graceful_stop);
    scenario.start = over.start.or(scenario.start);
    scenario
}

impl ConfiguredScript {
    /// The thresholds as objectives in k6's notation: `http_req_duration:p(95)<500ms`.
    #[must_use]
    pub fn threshold_texts(&self) -> Vec<String> {
        texts(&self.thresholds)
    }

    /// The thresholds as objectives are printed: `http_req_duration:p95<500ms`.
    #[must_use]
    pub fn thresholds_as_objectives(&self) -> Vec<String> {
        let printed = |text: String| {
            let parsed = text.parse::<Objective>().ok().and_then(|it| it.of_script().ok());
            parsed.map_or(text, |objective| objective.to_string())
        };
        self.threshold_texts().into_iter().map(printed).collect()
    }
}

/// Thresholds as objectives, in which times have a unit.
fn texts(thresholds: &Thresholds) -> Vec<String> {
    let of_metric = |(subject, metric): (&str, &MetricThresholds)| -> Vec<String> {
        let text = |expression: &str| {
            let expression: String = expression.split_whitespace().collect();
            let is_time = metric.is_time() && !expression.starts_with("count");
            format!("{subject}:{expression}{}", if is_time { "ms" } else { "" })
        };
        metric.expressions().map(text).collect()
    };
    thresholds.metrics().flat_map(of_metric).collect()
}

#[cfg(test)]
mod tests {
    use gake_k6::metrics::{builtin, registry};
    use gake_k6::options::K6Options;
    use serde_json::json;

    use super::*;

    #[test]
    fn thresholds_are_objectives() {
        let options = K6Options::read(&json!({ "thresholds": {
            "http_req_duration": ["p(95)<500", "p(99.9) < 2000"],
            "http_req_duration{name:login}": ["avg<200"],
            "checks": ["rate>0.99"],
            "http_req_failed": [{ "threshold": "rate<0.01", "abortOnFail": true }],
        }}));
        let options = options.unwrap().options.thresholds.unwrap();
        let found = texts(&Thresholds::new(&options, &registry(&builtin())).unwrap());
        assert_eq!(
            found,
            [
                "checks:rate>0.99",
                "http_req_duration:p(95)<500ms",
                "http_req_duration:p(99.9)<2000ms",
                "http_req_duration{name:login}:avg<200ms",
                "http_req_failed:rate<0.01",
            ]
        );
        for text in found {
            let objective: Objective = text.parse().unwrap();
            let clause = objective.of_script().and_then(|objective| objective.clause());
            assert!(clause.is_ok(), "{text}: {clause:?}");
        }
    }
}
