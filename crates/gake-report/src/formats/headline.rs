//! The verdict in a line, in the same words in every format for people.

use gake_core::record::{Run, RunEnd};
use gake_judge::stats::share;
use gake_judge::{NothingOk, Summary, Validity, Verdict};
use gake_text::units;

/// Whether a statement of the headline is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    Good,
    Doubtful,
    Bad,
}

/// Share of the requests that failed, from which on it is said first, and is bad.
const FAILED: (f64, f64) = (0.01, 0.1);

/// The statements of the verdict, the worst first: that nothing succeeded, that objectives were
/// missed or met, how the target did, whether the figures can be believed.
pub(super) fn statements(summary: &Summary) -> Vec<(Tone, String)> {
    let verdict = &summary.verdict;
    let validity = match verdict.validity {
        Validity::Valid => Tone::Good,
        Validity::Suspect => Tone::Doubtful,
        Validity::Invalid => Tone::Bad,
    };
    let mut all = Vec::new();
    if let Some(nothing) = &verdict.nothing_ok {
        all.push((Tone::Bad, nothing_ok(nothing)));
    }
    let target = target(summary).into_iter().map(|one| (one.tone, one.text));
    all.extend(target);
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
    all.sort_by_key(|(tone, _)| std::cmp::Reverse(*tone));
    all
}

/// How the target did, where that is no good news.
pub(crate) struct TargetStatement {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    /// The figures behind it, if the text has none.
    pub(crate) meaning: String,
}

/// How the target did: that many requests failed, that it was asked for more than it completes.
pub(crate) fn target(summary: &Summary) -> Vec<TargetStatement> {
    let (run, verdict) = (&summary.run, &summary.verdict);
    let counts = &run.tally.counts;
    let failed = share(counts.begun().saturating_sub(counts.ok), counts.begun());
    let mut all = Vec::new();
    if verdict.nothing_ok.is_none() && failed >= FAILED.0 {
        let tone = if failed >= FAILED.1 { Tone::Bad } else { Tone::Doubtful };
        let text = format!("{} of requests failed", units::percent(failed));
        all.push(TargetStatement { tone, text, meaning: String::new() });
    }
    if let Some(saturation) = verdict.saturation {
        all.push(TargetStatement {
            tone: Tone::Doubtful,
            text: "target overloaded".to_owned(),
            meaning: saturation.text(run),
        });
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
        RunEnd::Done => None,
        RunEnd::Interrupted => Some("interrupted".to_owned()),
        RunEnd::Aborted(objective) => Some(format!("stopped at {objective}")),
        RunEnd::OutOfTargets => Some("the targets ran out".to_owned()),
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
