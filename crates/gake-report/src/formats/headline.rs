//! The verdict in a line, in the same words in every format for people.

use gake_core::record::{Ending, Run};
use gake_judge::{NothingOk, Validity, Verdict};

/// Whether a statement of the headline is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    Good,
    Doubtful,
    Bad,
}

/// The statements of the verdict, the worst first: that nothing succeeded, that objectives were
/// missed or met, whether the figures can be believed.
pub(super) fn statements(verdict: &Verdict) -> Vec<(Tone, String)> {
    let validity = match verdict.validity {
        Validity::Valid => Tone::Good,
        Validity::Suspect => Tone::Doubtful,
        Validity::Invalid => Tone::Bad,
    };
    let mut all = Vec::new();
    if let Some(nothing) = &verdict.nothing_ok {
        all.push((Tone::Bad, nothing_ok(nothing)));
    }
    // Without a response, a measurement that can be believed has nothing to say.
    if verdict.nothing_ok.is_none() || validity != Tone::Good {
        all.push((validity, verdict.validity.name().to_owned()));
    }
    if let Some(text) = objectives(verdict) {
        let tone = if verdict.objectives_met() { Tone::Good } else { Tone::Bad };
        // Objectives of an invalid measurement are not decided.
        let is_first = tone == Tone::Bad && validity != Tone::Bad && verdict.nothing_ok.is_none();
        all.insert(if is_first { 0 } else { all.len() }, (tone, text));
    }
    all
}

/// That nothing succeeded, and why.
pub(super) fn nothing_ok(nothing: &NothingOk) -> String {
    format!("nothing succeeded: {}", nothing.cause)
}

/// Whether the objectives were met; `None` when there are none.
fn objectives(verdict: &Verdict) -> Option<String> {
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
