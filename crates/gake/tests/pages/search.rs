//! A search on a target that is a formula, with hostile names.

use std::time::Duration;

use gake_core::schedule::Process;
use gake_judge::overload::{self, LoadDirection, OverloadStep};
use gake_judge::search::{Dimension, TrialSecond};
use gake_judge::{Cause, Finding, Rank};
use gake_report::find::FindReport;

use super::hour::HOSTILE;

#[path = "../../../gake-report/src/find/formula.rs"]
mod formula;

/// The report of the search, with what comes after the capacity.
pub fn report() -> FindReport {
    let search = formula::searched(|users| 120.0 * users / (users + 2.0));
    let steps = overload::steps(100.0, None);
    let map = overload::judge(&steps, &steps.iter().flat_map(climbed).collect::<Vec<_>>());
    FindReport {
        target: format!("http://localhost:8080/{HOSTILE}"),
        started_unix_ns: 1_760_000_000_000_000_000,
        dimension: Dimension::Rate,
        arrivals: Process::Poisson,
        budget: Duration::from_secs(120),
        precision: 0.05,
        clauses: vec!["p99<50ms".parse::<gake_judge::Objective>().unwrap().clause().unwrap()],
        result: search.result(),
        steps: search.steps().to_vec(),
        map: Some(map),
        causes: vec![Cause {
            finding: Finding {
                id: "saturated_pool",
                evidence: format!("all of the pool is busy: {HOSTILE}"),
                advice: "make the pool larger".to_owned(),
                check: format!("top {HOSTILE}"),
                rank: Rank::Cause,
                served: None,
            },
            runs: 2,
        }],
        overloaded: 3,
        bodies: gake_core::record::FailedBodies::default(),
    }
}

/// What the seconds of a step saw: a target that serves less on its way back.
fn climbed(step: &OverloadStep) -> Vec<TrialSecond> {
    let best = if step.direction == LoadDirection::Up { 110.0 } else { 60.0 };
    let ok = step.level.min(best);
    let second = TrialSecond {
        due: step.level,
        ok,
        failed: step.level - ok,
        good: ok * 0.9,
        response: 0.001 * step.level,
        in_flight: 0.001 * step.level * ok,
        failure: 0.002,
    };
    vec![second; usize::try_from(step.seconds).unwrap()]
}
