//! Shortcuts: the scenarios that `vus`, `duration`, `iterations` and `stages` define.

use std::collections::BTreeMap;

use super::{DEFAULT_SCENARIO, Executor, K6Options, OptionsError, ScenarioOptions};

/// Adds the scenario of the shortcuts, or the default one without scenarios.
pub(super) fn derive(
    options: &mut K6Options,
    warnings: &mut Vec<String>,
) -> Result<(), OptionsError> {
    let stages = options.stages.as_deref().unwrap_or_default();
    let scenarios = options.scenarios.as_ref();
    let both = |a: &str, b: &str| {
        Err(OptionsError(format!("using `{a}` and `{b}` options simultaneously is not allowed")))
    };
    let scenario = if options.iterations.is_some() {
        if !stages.is_empty() {
            return both("iterations", "stages");
        }
        if scenarios.is_some() {
            return both("iterations", "scenarios");
        }
        ScenarioOptions {
            vus: options.vus,
            iterations: options.iterations,
            max_duration: options.duration,
            ..ScenarioOptions::new(Executor::SharedIterations)
        }
    } else if let Some(duration) = options.duration {
        if !stages.is_empty() {
            return both("duration", "stages");
        }
        if scenarios.is_some() {
            return both("duration", "scenarios");
        }
        if duration.nanos() <= 0 {
            return Err(OptionsError(
                "`duration` option should be more than 0, for infinite duration use the \
                 externally-controlled executor"
                    .to_owned(),
            ));
        }
        ScenarioOptions {
            vus: options.vus,
            duration: options.duration,
            ..ScenarioOptions::new(Executor::ConstantVus)
        }
    } else if !stages.is_empty() {
        if scenarios.is_some() {
            return both("stages", "scenarios");
        }
        ScenarioOptions {
            start_vus: options.vus,
            stages: options.stages.clone(),
            ..ScenarioOptions::new(Executor::RampingVus)
        }
    } else if let Some(vus) = options.vus.filter(|_| options.stages.is_none()) {
        if scenarios.is_some() {
            warnings.push(format!("`vus={vus}` overrides scenarios configuration"));
        }
        options.iterations = Some(vus);
        ScenarioOptions {
            vus: options.vus,
            iterations: options.vus,
            ..ScenarioOptions::new(Executor::SharedIterations)
        }
    } else if scenarios.is_some_and(|scenarios| !scenarios.is_empty()) {
        return Ok(());
    } else {
        warnings.extend(one_iteration(options));
        ScenarioOptions::new(Executor::PerVuIterations)
    };
    options.scenarios = Some(BTreeMap::from([(DEFAULT_SCENARIO.to_owned(), scenario)]));
    Ok(())
}

/// k6's warnings when it runs one iteration despite other options.
fn one_iteration(options: &K6Options) -> Vec<String> {
    let vus = options.vus.filter(|vus| *vus != 1).map(|vus| {
        format!(
            "`vus={vus}` option will be ignored, it only works in conjunction with `iterations`, \
             `duration`, or `stages`"
        )
    });
    let empty = [("stages", options.stages.is_some()), ("scenarios", options.scenarios.is_some())];
    let empty = empty.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| {
        format!(
            "`{name}` was explicitly set to an empty value, running the script with 1 iteration \
             in 1 VU"
        )
    });
    vus.into_iter().chain(empty).collect()
}
