//! The end of a run at the first objective that is missed.

use gake_core::clock::{Nanos, SECOND, nanos};

use crate::PreparedRun;
use crate::second_update::SecondUpdate;

/// Objectives are evaluated once this much was measured: the first second is too short for a rate.
const AFTER: Nanos = 2 * SECOND;

/// The objective that is missed after a second, if one is and the run is to end then.
pub(crate) fn missed(prepared: &PreparedRun, update: &SecondUpdate<'_>) -> Option<String> {
    let plan = &prepared.plan;
    let warmup = nanos(plan.warmup);
    let now = update.second.second * SECOND;
    let measured = now.saturating_sub(warmup);
    if !prepared.abort || measured < AFTER {
        return None;
    }
    let view = update.view(plan);
    // What was not seen may still come.
    let mut seen = prepared.objectives.iter().map(|objective| objective.evaluate(&view));
    let missed = seen.find(|seen| !seen.met && seen.value.is_some());
    missed.map(|missed| missed.text)
}
