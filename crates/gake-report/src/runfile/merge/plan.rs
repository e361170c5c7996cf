//! Merges the plans of several runs.

use gake_core::Load;
use gake_core::plan::{Plan, PlanLoad};
use gake_core::record::Run;

use super::spans::{is_on, peak_sum};

/// The first plan, with the connections, lanes and threads of the most concurrent runs added up,
/// and the rates and users where these have the same load.
pub(super) fn plan(parts: &[(&Run, &Plan)], labels: &[String]) -> Option<Plan> {
    let (first_run, first) = parts.first()?;
    let mut plan = Plan { labels: labels.to_vec(), ..(*first).clone() };
    let mut targets: Vec<&str> = Vec::new();
    for (_, part) in parts {
        if !targets.contains(&part.target.as_str()) {
            targets.push(&part.target);
        }
    }
    plan.target = targets.join(" + ");
    let most = |of: fn(&Plan) -> usize| {
        let runs = parts.iter().map(|(run, _)| *run);
        let of_run = |run: &Run| {
            let own = parts.iter().find(|(other, _)| std::ptr::eq(*other, run));
            own.map_or(0, |(_, plan)| of(plan) as u64)
        };
        usize::try_from(peak_sum(runs, of_run)).unwrap_or(usize::MAX)
    };
    plan.connections = most(|plan| plan.connections);
    plan.max_in_flight = most(|plan| plan.max_in_flight);
    plan.threads = most(|plan| plan.threads);
    for part in concurrent(parts, first_run).into_iter().skip(1) {
        if let (PlanLoad::One(sum), Some(load)) = (&mut plan.load, part.load.one()) {
            add_load(sum, load);
        };
    }
    Some(plan)
}

/// The plans of the runs concurrent with the first, which is one of them, at the instant of their
/// largest number.
fn concurrent<'a>(parts: &[(&'a Run, &'a Plan)], first: &Run) -> Vec<&'a Plan> {
    let sets = parts.iter().map(|(run, _)| run.started_unix_ns).filter(|at| is_on(first, *at));
    let sets = sets.map(|at| {
        let on = parts.iter().filter(|(run, _)| is_on(run, at));
        on.map(|(_, plan)| *plan).collect::<Vec<_>>()
    });
    sets.max_by_key(Vec::len).unwrap_or_default()
}

fn add_load(sum: &mut Load, load: &Load) {
    match (sum, load) {
        (Load::Open { stages, .. }, Load::Open { stages: more, .. })
            if stages.len() == more.len()
                && stages.iter().zip(more).all(|(a, b)| a.duration == b.duration) =>
        {
            for (stage, other) in stages.iter_mut().zip(more) {
                stage.from += other.from;
                stage.to += other.to;
            }
        }
        (Load::Closed { users, .. }, Load::Closed { users: more, .. })
        | (Load::Paced { users, .. }, Load::Paced { users: more, .. }) => {
            *users = users.saturating_add(*more);
        }
        _ => {}
    }
}
