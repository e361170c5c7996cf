//! Aborting a run at the first missed objective.

use gake_core::clock::{Nanos, SECOND, nanos};

use crate::ResolvedRun;
use crate::second_update::SecondUpdate;

/// Objectives are evaluated from this time on: the first second is too short for a rate.
const AFTER: Nanos = 2 * SECOND;

/// The first missed objective after a second, if the run is to abort on one.
pub(crate) fn missed(prepared: &ResolvedRun, update: &SecondUpdate<'_>) -> Option<String> {
    let plan = &prepared.plan;
    let warmup = nanos(plan.warmup);
    let now = update.second.second * SECOND;
    let measured = now.saturating_sub(warmup);
    if !prepared.abort || measured < AFTER {
        return None;
    }
    let view = update.view(plan);
    // An objective without a value may get one later.
    let mut seen = prepared.objectives.iter().map(|objective| objective.evaluate(&view));
    let missed = seen.find(|seen| !seen.met && seen.value.is_some());
    missed.map(|missed| missed.text)
}
