//! What an arrival needs to be fired: a connection, or a user of a script.

use gake_core::record::Run;

/// Whether users of a script ran: only they record series of metrics.
pub(crate) fn are_users(run: &Run) -> bool {
    !run.tally.series.is_empty()
}

/// The noun, in the singular.
pub(crate) fn noun(run: &Run) -> &'static str {
    if are_users(run) { "user" } else { "connection" }
}
