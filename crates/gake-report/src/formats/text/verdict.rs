//! The top of the page: can it be believed, were the objectives met, what was run.

use gake_core::record::{Ending, Run};
use gake_judge::{Summary, Validity, units};

use super::page::{Page, Paint};

/// The verdict in a line, its reasons, and the objectives.
pub(super) fn verdict(page: &mut Page, summary: &Summary) {
    let verdict = &summary.verdict;
    let (mark, paint) = match verdict.validity {
        Validity::Valid => ("✔", Paint::Good),
        Validity::Suspect => ("▲", Paint::Warn),
        Validity::Invalid => ("✘", Paint::Bad),
    };
    let mut line = page.paint(paint, &format!("{mark} {}", verdict.validity.name()));
    let total = verdict.objectives.len();
    let met = verdict.objectives.iter().filter(|objective| objective.met).count();
    if total > 0 {
        let paint = if met == total { Paint::Good } else { Paint::Bad };
        let text = match (met, total) {
            (1, 1) => "objective met".to_owned(),
            (0, 1) => "objective missed".to_owned(),
            _ if met == total => format!("all {total} objectives met"),
            _ => format!("{} of {total} objectives missed", total - met),
        };
        line.push_str(" · ");
        line.push_str(&page.paint(paint, &text));
    }
    match &summary.run.ending {
        Ending::Done => {}
        Ending::Interrupted => line.push_str(" · interrupted"),
        Ending::Aborted(objective) => line.push_str(&format!(" · stopped at {objective}")),
        Ending::OutOfTargets => line.push_str(" · the targets ran out"),
    }
    page.line(&line);
    for reason in &verdict.reasons {
        page.wrapped(4, "  •", Paint::Plain, &reason.text);
    }
    let texts = verdict.objectives.iter().map(|objective| objective.text.chars().count());
    let width = texts.max().unwrap_or(0);
    for objective in &verdict.objectives {
        let (mark, paint) = if objective.met { ("✔", Paint::Good) } else { ("✘", Paint::Bad) };
        let mark = page.paint(paint, mark);
        page.line(&format!("  {mark} {:<width$}   {}", objective.text, objective.shown()));
    }
}

/// The plan, and when it ran.
pub(super) fn plan(page: &mut Page, run: &Run) {
    page.gap();
    let line = run.plan.to_string();
    let rest = line.strip_prefix(&run.plan.target).and_then(|rest| rest.strip_prefix(": "));
    let target = page.paint(Paint::Heading, &run.plan.target);
    page.line(&target);
    page.wrapped(2, "", Paint::Plain, rest.unwrap_or(&line));
    let started = jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S UTC, ").to_string());
    let took = units::duration(run.elapsed as f64);
    page.wrapped(2, "", Paint::Quiet, &format!("{started}{took}"));
}
