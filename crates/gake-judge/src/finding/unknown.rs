//! Something is wrong and no rule says what.

use super::{FAILURES_MIN, Facts, Finding};
use crate::objective::Evaluation;
use crate::units;

pub(super) fn find(facts: &Facts<'_>, objectives: &[Evaluation]) -> Option<Finding> {
    if facts.counts().due() == 0 {
        return None;
    }
    let missed: Vec<_> = objectives
        .iter()
        .filter(|objective| !objective.met)
        .map(|objective| format!("{} is missed ({})", objective.text, objective.shown()))
        .collect();
    if !missed.is_empty() {
        let evidence = format!("{}, and nothing seen from here explains it", missed.join(", "));
        let advice = "look at the server's own CPU, locks, garbage collection and disk during the \
                      run";
        return Some(Finding::new(super::UNKNOWN, evidence, advice));
    }
    let failed = facts.counts().failed;
    if facts.of_sent(failed) < FAILURES_MIN {
        return None;
    }
    let mut evidence = format!(
        "{} ({}) failed, and nothing seen from here explains it",
        units::plural(failed, "request"),
        units::percent(facts.of_sent(failed))
    );
    if let Some((status, count)) = most_frequent_unexpected(facts) {
        evidence.push_str(&format!("; most often status {status} × {}", units::count(count)));
    }
    let advice = "send one such request by hand and compare; --expect says which statuses are ok";
    Some(Finding::new(super::UNKNOWN, evidence, advice))
}

fn most_frequent_unexpected(facts: &Facts<'_>) -> Option<(u16, u64)> {
    let expect = &facts.run.plan.expect;
    let statuses = facts.run.tally.statuses().iter();
    statuses.filter(|(status, _)| !expect.accepts(*status)).max_by_key(|status| status.1).copied()
}
