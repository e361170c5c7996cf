//! Validates options, with k6's errors.

use super::{Executor, K6Options, OptionsError, RampStage, ScenarioOptions};
use crate::duration::GoDuration;

/// The shortest duration of a load.
const SHORTEST: GoDuration = GoDuration::from_secs(1);

/// Checks the options of a run. `has_function` returns whether the script exports a function.
///
/// # Errors
/// All problems in one text.
pub fn validate(
    options: &K6Options,
    has_function: &dyn Fn(&str) -> bool,
) -> Result<(), OptionsError> {
    let mut problems = Vec::new();
    if options.setup_timeout.is_some_and(|timeout| timeout.nanos() <= 0) {
        problems.push("setupTimeout must be positive".to_owned());
    }
    if let Err(problem) = super::segment::within(options) {
        problems.push(problem);
    }
    for (name, scenario) in options.scenarios.iter().flatten() {
        let wrong = of_scenario(name, scenario);
        if !wrong.is_empty() {
            let wrong = wrong.join(", ");
            problems.push(format!("scenario {name} has configuration errors: {wrong}"));
        }
    }
    for (name, scenario) in options.scenarios.iter().flatten() {
        // As in k6, an empty name is the default, beside the error above.
        let function = scenario.exec.as_deref().filter(|name| !name.is_empty());
        let function = function.unwrap_or("default");
        if !has_function(function) {
            problems.push(format!("executor {name}: function '{function}' not found in exports"));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(OptionsError(format!(
        "There were problems with the specified script configuration:\n\t- {}",
        problems.join("\n\t- ")
    )))
}

/// Checks `summaryTrendStats`.
///
/// # Errors
/// The first invalid statistic.
pub fn validate_trend_stats(options: &K6Options) -> Result<(), OptionsError> {
    for stat in options.summary_trend_stats.iter().flatten() {
        if ["", "avg", "min", "med", "max", "count"].contains(&stat.as_str()) {
            continue;
        }
        let percent = stat.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
        let Some(percent) = percent else {
            return Err(OptionsError(format!("invalid trend stat '{stat}', unknown format")));
        };
        if !percent.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent)) {
            return Err(OptionsError(format!(
                "invalid percentile trend stat value '{stat}', provide a number between 0 and 100"
            )));
        }
    }
    Ok(())
}

fn of_scenario(name: &str, scenario: &ScenarioOptions) -> Vec<String> {
    let mut wrong = of_any(name, scenario);
    match scenario.executor {
        Executor::ConstantVus => {
            users(&mut wrong, scenario.vus);
            lasts(&mut wrong, scenario.duration);
        }
        Executor::RampingVus => ramping_users(&mut wrong, scenario),
        Executor::SharedIterations | Executor::PerVuIterations => iterations(&mut wrong, scenario),
        Executor::ConstantArrivalRate => {
            match scenario.rate {
                None => wrong.push("the iteration rate isn't specified".to_owned()),
                Some(..=0) => wrong.push("the iteration rate must be more than 0".to_owned()),
                Some(_) => {}
            }
            time_unit(&mut wrong, scenario.time_unit);
            lasts(&mut wrong, scenario.duration);
            allocated(&mut wrong, scenario);
        }
        Executor::RampingArrivalRate => {
            if scenario.start_rate.is_some_and(|rate| rate < 0) {
                wrong.push("the startRate value can't be negative".to_owned());
            }
            time_unit(&mut wrong, scenario.time_unit);
            stages(&mut wrong, scenario.stages.as_deref().unwrap_or_default());
            allocated(&mut wrong, scenario);
        }
        Executor::ExternallyControlled => externally_controlled(&mut wrong, scenario),
    }
    wrong
}

/// Problems that any scenario may have.
fn of_any(name: &str, scenario: &ScenarioOptions) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.is_empty() {
        wrong.push("scenario name can't be empty".to_owned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_plain) {
        wrong.push(
            "the scenario name should contain only numbers, latin letters, underscores, and dashes"
                .to_owned(),
        );
    }
    if scenario.exec.as_deref() == Some("") {
        wrong.push("exec value cannot be empty".to_owned());
    }
    if scenario.start_time.is_some_and(GoDuration::is_negative) {
        wrong.push("the startTime can't be negative".to_owned());
    }
    if scenario.graceful_stop.is_some_and(GoDuration::is_negative) {
        wrong.push("the gracefulStop timeout can't be negative".to_owned());
    }
    wrong
}

fn users(wrong: &mut Vec<String>, vus: Option<i64>) {
    if vus.is_some_and(|vus| vus <= 0) {
        wrong.push("the number of VUs must be more than 0".to_owned());
    }
}

fn lasts(wrong: &mut Vec<String>, duration: Option<GoDuration>) {
    match duration {
        None => wrong.push("the duration is unspecified".to_owned()),
        Some(short) if short < SHORTEST => {
            wrong.push(format!("the duration must be at least {SHORTEST}, but is {short}"));
        }
        Some(_) => {}
    }
}

fn iterations(wrong: &mut Vec<String>, scenario: &ScenarioOptions) {
    users(wrong, scenario.vus);
    let (vus, iterations) = (scenario.vus.unwrap_or(1), scenario.iterations.unwrap_or(1));
    if scenario.executor == Executor::SharedIterations && iterations < vus {
        wrong.push(format!(
            "the number of iterations ({iterations}) can't be less than the number of VUs ({vus})"
        ));
    }
    if scenario.executor == Executor::PerVuIterations && iterations <= 0 {
        wrong.push("the number of iterations must be more than 0".to_owned());
    }
    if let Some(short) = scenario.max_duration.filter(|duration| *duration < SHORTEST) {
        wrong.push(format!("the maxDuration must be at least {SHORTEST}, but is {short}"));
    }
}

fn ramping_users(wrong: &mut Vec<String>, scenario: &ScenarioOptions) {
    let ramp = scenario.stages.as_deref().unwrap_or_default();
    let start = scenario.start_vus.unwrap_or(1);
    if start < 0 {
        wrong.push("the number of start VUs can't be negative".to_owned());
    } else if start == 0 && ramp.iter().all(|stage| stage.target.unwrap_or(0) <= 0) {
        wrong.push(
            "either startVUs or one of the stages' target values must be greater than 0".to_owned(),
        );
    }
    stages(wrong, ramp);
}

fn stages(wrong: &mut Vec<String>, stages: &[RampStage]) {
    if stages.is_empty() {
        wrong.push("at least one stage has to be specified".to_owned());
    }
    for (number, stage) in (1..).zip(stages) {
        match stage.duration {
            None => wrong.push(format!("stage {number} doesn't have a duration")),
            Some(duration) if duration.is_negative() => {
                wrong.push(format!("the duration for stage {number} can't be negative"));
            }
            Some(_) => {}
        }
        match stage.target {
            None => wrong.push(format!("stage {number} doesn't have a target")),
            Some(..0) => wrong.push(format!("the target for stage {number} can't be negative")),
            Some(_) => {}
        }
    }
}

fn time_unit(wrong: &mut Vec<String>, unit: Option<GoDuration>) {
    if unit.is_some_and(|unit| unit.nanos() <= 0) {
        wrong.push("the timeUnit must be more than 0".to_owned());
    }
}

fn allocated(wrong: &mut Vec<String>, scenario: &ScenarioOptions) {
    match scenario.pre_allocated_vus {
        None => wrong.push("the number of preAllocatedVUs isn't specified".to_owned()),
        Some(..0) => wrong.push("the number of preAllocatedVUs can't be negative".to_owned()),
        Some(allocated) if scenario.max_vus.is_some_and(|most| most < allocated) => {
            wrong.push("maxVUs can't be less than preAllocatedVUs".to_owned());
        }
        Some(_) => {}
    }
}

fn externally_controlled(wrong: &mut Vec<String>, scenario: &ScenarioOptions) {
    let vus = scenario.vus.unwrap_or(0);
    let most = scenario.max_vus.unwrap_or(vus);
    if vus < 0 {
        wrong.push("the number of VUs can't be negative".to_owned());
    }
    if most < vus {
        wrong.push(format!(
            "the number of active VUs ({vus}) must be less than or equal to the number of maxVUs \
             ({most})"
        ));
    }
    match scenario.duration {
        None => {
            wrong.push("the duration must be specified, for infinite duration use 0".to_owned());
        }
        Some(duration) if duration.is_negative() => {
            wrong.push("the duration can't be negative, for infinite duration use 0".to_owned());
        }
        Some(_) => {}
    }
    if scenario.graceful_stop.is_some() {
        wrong
            .push("gracefulStop is not supported by the externally controlled executor".to_owned());
    }
}
