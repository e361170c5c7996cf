//! Plans in the run file and JSON: the plan of a finished run, and validation of a plan read.

use gake_core::Load;
use gake_core::plan::{Plan, PlanLoad};

type InvalidPlan = String;

/// The plan of a finished run. Rates are the whole run's, and `threads` counts all workers.
pub(crate) fn finished(plan: &Plan) -> Plan {
    let threads = if plan.tables > 1 { plan.workers() } else { plan.threads };
    Plan { threads, tables: 1, stripes: None, ..plan.clone() }
}

/// Validates a plan from a file. Older versions leave out the users when each has one connection.
pub(crate) fn checked(mut plan: Plan) -> Result<Plan, InvalidPlan> {
    match &mut plan.load {
        PlanLoad::Scenarios { scenarios } => {
            for scenario in scenarios {
                if scenario.load.one().is_none() {
                    return Err("scenarios within a scenario".to_owned());
                }
                *scenario = checked(scenario.clone())?;
            }
        }
        PlanLoad::One(Load::Closed { users, .. } | Load::Paced { users, .. }) if *users == 0 => {
            *users = plan.connections;
        }
        PlanLoad::One(Load::Open { stages, .. }) => {
            if stages.is_empty() {
                return Err("an open loop without stages".to_owned());
            }
            if !stages.iter().all(|stage| stage.from >= 0.0 && stage.to >= 0.0) {
                return Err("a rate below 0".to_owned());
            }
        }
        PlanLoad::One(Load::Ramping { stages, .. }) if stages.is_empty() => {
            return Err("a ramp of users without stages".to_owned());
        }
        PlanLoad::One(_) => {}
    }
    Ok(plan)
}

#[cfg(test)]
mod tests;
