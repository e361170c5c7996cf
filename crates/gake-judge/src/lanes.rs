//! The noun for lanes: connections, or users of a script.

use gake_core::plan::Plan;

pub(crate) fn noun(plan: &Plan) -> &'static str {
    if plan.fires_iterations() { "user" } else { "connection" }
}
