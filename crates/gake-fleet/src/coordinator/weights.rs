//! How much of a run each agent does: a whole number of equal units.

use gake_core::plan::Plan;

use crate::message::{AgentHello, AgentWeight, Part};

/// Units of a run for each agent, on average, at most: fine enough for weights, and few for what is
/// handed over unit by unit.
const UNITS_EACH: usize = 16;

/// The part of each agent, in the order given. Their units are all units of the run.
pub(crate) fn parts<'a>(plan: &Plan, agents: impl Iterator<Item = &'a AgentHello>) -> Vec<Part> {
    let weights: Vec<_> = agents.map(|agent| weight(agent, plan.threads)).collect();
    // Of fewer connections or users than units the last units would have none.
    let lanes = plan.scenarios().iter().map(Plan::lanes).min().unwrap_or(1);
    of_weights(&weights, lanes)
}

fn weight(agent: &AgentHello, threads: usize) -> u64 {
    match agent.weight {
        AgentWeight::Fixed(weight) => u64::from(weight),
        AgentWeight::PerCore(speed) => u64::from(speed) * agent.cores.min(threads).max(1) as u64,
    }
}

/// Parts in proportion to weights, of a run with `lanes` connections or users.
pub(crate) fn of_weights(weights: &[u64], lanes: usize) -> Vec<Part> {
    let units = units(weights, lanes.min(weights.len().saturating_mul(UNITS_EACH)));
    let of = units.iter().sum();
    let mut first = 0;
    let part = |width| {
        let part = Part { first, width, of };
        first += width;
        part
    };
    units.into_iter().map(part).collect()
}

/// Units in proportion to `weights`, `most` at most, at least one each.
fn units(weights: &[u64], most: usize) -> Vec<usize> {
    let weights: Vec<_> = weights.iter().map(|weight| (*weight).max(1)).collect();
    let divisor = weights.iter().copied().reduce(gcd).unwrap_or(1);
    let sum = weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
    let exact = (sum / divisor) as usize;
    if exact <= most {
        return weights.iter().map(|weight| (weight / divisor) as usize).collect();
    }
    let scaled = |weight: &u64| (*weight as f64 * most as f64 / sum as f64).round().max(1.0);
    let mut units: Vec<_> = weights.iter().map(|weight| scaled(weight) as usize).collect();
    // Rounded up, they may be more: the greatest shares miss it least.
    while units.iter().sum::<usize>() > most {
        match units.iter_mut().max().filter(|units| **units > 1) {
            Some(greatest) => *greatest -= 1,
            None => break,
        }
    }
    units
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gake_core::Load;
    use gake_core::plan::Stage;
    use gake_core::schedule::{Process, Slice};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_follow_weights() {
        assert_eq!(units(&[1, 1, 1], 100), [1, 1, 1]);
        assert_eq!(units(&[40, 20, 20], 100), [2, 1, 1], "the fewest that are exact");
        assert_eq!(units(&[97, 31], 32), [24, 8], "or as exact as there is room");
        assert_eq!(units(&[1_000, 1, 1], 10), [8, 1, 1], "everybody does something");
        assert_eq!(units(&[5, 1], 1), [1, 1], "fewer lanes than agents: equal parts");
        assert_eq!(units(&[0, 3], 16), [1, 3]);
    }

    proptest! {
        #[test]
        fn the_parts_of_all_agents_are_the_schedule_of_one_machine(
            weights in vec(1u64..50, 1..7),
            lanes in 1usize..200,
            is_poisson: bool,
            workers in 1usize..4,
        ) {
            let process = if is_poisson { Process::Poisson } else { Process::Uniform };
            let stages = vec![Stage::step(80.0, Duration::from_secs(3))];
            let mut plan = Plan::new("a test", Load::Open { stages, process });
            plan.connections = lanes;
            plan.max_in_flight = lanes;
            let schedule = plan.schedule(7).unwrap();
            let parts = of_weights(&weights, plan.lanes());
            let mut arrivals = Vec::new();
            for part in parts {
                let slice = part.slice().unwrap();
                for worker in 0..workers {
                    if let Some(part) = plan.slice(slice, Slice::new(worker, workers)) {
                        arrivals.extend(schedule.arrivals(part));
                    }
                }
            }
            arrivals.sort_by_key(|arrival| arrival.number);
            let whole: Vec<_> = schedule.arrivals(Slice::WHOLE).collect();
            prop_assert_eq!(arrivals, whole);
        }
    }
}
