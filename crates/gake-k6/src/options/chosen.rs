//! `--scenario` and `--once`: a part of the scenarios, or one iteration of each.

use super::{Executor, K6Options, OptionsError, ScenarioOptions};

impl K6Options {
    /// Keeps only the scenarios of these names; all of them without names.
    ///
    /// # Errors
    /// When there is none of a name.
    pub fn keep_scenarios(&mut self, names: &[String]) -> Result<(), OptionsError> {
        if names.is_empty() {
            return Ok(());
        }
        let scenarios = self.scenarios.get_or_insert_default();
        if let Some(name) = names.iter().find(|name| !scenarios.contains_key(*name)) {
            let known: Vec<&str> = scenarios.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(OptionsError(format!("scenario {name:?} not found; available: {known}")));
        }
        scenarios.retain(|name, _| names.contains(name));
        Ok(())
    }

    /// Makes each scenario one iteration of one user, from the start. It keeps its function,
    /// environment, tags and browser.
    pub fn run_once(&mut self) {
        for scenario in self.scenarios.iter_mut().flat_map(|scenarios| scenarios.values_mut()) {
            *scenario = ScenarioOptions {
                env: scenario.env.take(),
                exec: scenario.exec.take(),
                tags: scenario.tags.take(),
                options: scenario.options.take(),
                vus: Some(1),
                iterations: Some(1),
                ..ScenarioOptions::new(Executor::SharedIterations)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn options() -> K6Options {
        let scenarios = json!({ "scenarios": {
            "a": { "executor": "constant-vus", "vus": 5, "duration": "9s", "startTime": "3s",
                "exec": "f", "env": { "X": "1" }, "tags": { "t": "2" } },
            "b": { "executor": "ramping-arrival-rate", "preAllocatedVUs": 3, "stages": [] },
        } });
        K6Options::read(&scenarios).unwrap().options
    }

    #[test]
    fn scenarios_are_chosen_by_name() {
        let chosen = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut options = options();
            let kept = options.keep_scenarios(&names).map_err(|error| error.to_string());
            kept.map(|()| options.scenarios.unwrap().into_keys().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(chosen(&[]).as_deref(), Ok("a b"));
        assert_eq!(chosen(&["b"]).as_deref(), Ok("b"));
        assert_eq!(chosen(&["b", "a"]).as_deref(), Ok("a b"));
        let unknown = "scenario \"c\" not found; available: a, b";
        assert_eq!(chosen(&["a", "c"]), Err(unknown.to_owned()));
    }

    #[test]
    fn a_scenario_that_runs_once_keeps_what_is_not_load() {
        let mut options = options();
        options.run_once();
        let scenarios = serde_json::to_value(options.scenarios).unwrap();
        assert_eq!(
            scenarios["a"],
            json!({ "executor": "shared-iterations", "startTime": null, "gracefulStop": null,
                "env": { "X": "1" }, "exec": "f", "tags": { "t": "2" }, "vus": 1, "iterations": 1,
                "maxDuration": null })
        );
        assert_eq!(scenarios["b"]["iterations"], 1);
    }
}
