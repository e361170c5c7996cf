//! What an arrival needs to be fired: a connection, or a user of a script.

use gake_core::plan::Plan;

/// The noun for the lanes of a plan, in the singular.
pub(crate) fn noun(plan: &Plan) -> &'static str {
    if plan.fires_iterations() { "user" } else { "connection" }
}
