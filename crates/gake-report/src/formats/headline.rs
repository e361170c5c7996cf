//! The verdict in a line, with the same words in every format for people.

use gake_core::record::{Counts, Run, RunEnd};
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

/// The shares of failed requests from which they lead the headline, and from which they are bad.
const FAILED: (f64, f64) = (0.01, 0.1);

/// The statements of the verdict, the worst first: nothing succeeded, objectives missed or met, the
/// state of the target, whether the figures are believable.
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
    // Without a response a believable measurement says nothing.
    if verdict.nothing_ok.is_none() || validity != Tone::Good {
        all.push((validity, format!("measurement {}", verdict.validity.name())));
    }
    if let Some(text) = objectives(verdict) {
        let tone = if verdict.objectives_met() { Tone::Good } else { Tone::Bad };
        // An invalid measurement does not decide objectives.
        let is_first = tone == Tone::Bad && validity != Tone::Bad && verdict.nothing_ok.is_none();
        all.insert(if is_first { 0 } else { all.len() }, (tone, text));
    }
    all.sort_by_key(|(tone, _)| std::cmp::Reverse(*tone));
    all
}

/// A statement about the target.
pub(crate) struct TargetStatement {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    /// The figures behind the text, unless it contains them.
    pub(crate) meaning: String,
}

/// Findings after which the target serves nothing more, in words.
const ENDS: [(&str, &str); 2] = [
    ("target_hang", "target stopped responding"),
    ("target_ended", "target ended or was restarted"),
];

/// The state of the target: the share of failed requests, an overload.
pub(crate) fn target(summary: &Summary) -> Vec<TargetStatement> {
    let (run, verdict) = (&summary.run, &summary.verdict);
    let counts = &run.tally.counts;
    let failed = share(counts.begun().saturating_sub(counts.ok), counts.begun());
    let mut all = Vec::new();
    let ends = ENDS.iter().filter(|end| verdict.findings.iter().any(|found| found.id == end.0));
    all.extend(ends.map(|(_, text)| TargetStatement {
        tone: Tone::Bad,
        text: (*text).to_owned(),
        meaning: String::new(),
    }));
    if verdict.nothing_ok.is_none() && failed >= FAILED.0 {
        let tone = if failed >= FAILED.1 { Tone::Bad } else { Tone::Doubtful };
        let text = format!("{} of requests failed", units::percent(failed));
        all.push(TargetStatement { tone, text, meaning: String::new() });
    } else if counts.ok > 0 && verdict.saturation.is_none() {
        all.extend(succeeded(counts));
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

/// The good news of a target: how many requests were ok; `None` when arrivals were dropped.
fn succeeded(counts: &Counts) -> Option<TargetStatement> {
    let text = match counts.begun().saturating_sub(counts.ok) {
        0 if counts.dropped > 0 => return None,
        0 => "every request ok".to_owned(),
        lost => {
            format!("{} of {} requests failed", units::count(lost), units::count(counts.begun()))
        }
    };
    Some(TargetStatement { tone: Tone::Good, text, meaning: String::new() })
}

/// That nothing succeeded, and why.
pub(super) fn nothing_ok(nothing: &NothingOk) -> String {
    format!("nothing succeeded: {}", nothing.cause)
}

/// Whether the objectives were met; `None` without objectives.
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

/// Why the run ended early; `None` when its plan was completed.
pub(super) fn ending(run: &Run) -> Option<String> {
    match &run.ending {
        RunEnd::Done => None,
        RunEnd::Interrupted => Some("interrupted".to_owned()),
        RunEnd::Aborted(objective) => Some(format!("stopped at {objective}")),
        RunEnd::OutOfTargets => Some("the targets ran out".to_owned()),
    }
}

/// `, HTTP/2`: the protocols of the connections, unless only HTTP/1.1.
pub(super) fn spoken(run: &Run) -> String {
    match run.tally.counts.spoken() {
        "HTTP/1.1" => String::new(),
        spoken => format!(", {spoken}"),
    }
}

/// The start of the run in UTC; empty when it is not representable.
pub(super) fn started(run: &Run) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}
