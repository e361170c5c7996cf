//! The verdict in a line, in the same words in every format for people.

use gake_core::record::{Ending, Run};
use gake_judge::{Validity, Verdict};

/// The first words: that nothing succeeded, and else whether the figures can be believed.
pub(super) fn first(verdict: &Verdict) -> String {
    match &verdict.nothing_ok {
        Some(nothing) => format!("nothing succeeded: {}", nothing.cause),
        None => verdict.validity.name().to_owned(),
    }
}

/// Whether the figures can be believed, where the first words do not say it and it is in doubt.
pub(super) fn doubt(verdict: &Verdict) -> Option<String> {
    let doubtful = verdict.nothing_ok.is_some() && verdict.validity != Validity::Valid;
    doubtful.then(|| verdict.validity.name().to_owned())
}

/// Whether the objectives were met; `None` when there are none.
pub(super) fn objectives(verdict: &Verdict) -> Option<String> {
    let total = verdict.objectives.len();
    let met = verdict.objectives.iter().filter(|objective| objective.met).count();
    Some(match (met, total) {
        (_, 0) => return None,
        (1, 1) => "objective met".to_owned(),
        (0, 1) => "objective missed".to_owned(),
        _ if met == total => format!("all {total} objectives met"),
        _ => format!("{} of {total} objectives missed", total - met),
    })
}

/// Why the run ended before its plan was done; `None` when it was done.
pub(super) fn ending(run: &Run) -> Option<String> {
    match &run.ending {
        Ending::Done => None,
        Ending::Interrupted => Some("interrupted".to_owned()),
        Ending::Aborted(objective) => Some(format!("stopped at {objective}")),
        Ending::OutOfTargets => Some("the targets ran out".to_owned()),
    }
}

/// `, HTTP/2`: what the connections spoke, where it is not HTTP/1.1 alone.
pub(super) fn spoken(run: &Run) -> String {
    match run.tally.counts.spoken() {
        "HTTP/1.1" => String::new(),
        spoken => format!(", {spoken}"),
    }
}

/// When the run started, in UTC, as people write it; empty when that is not a date.
pub(super) fn started(run: &Run) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}
