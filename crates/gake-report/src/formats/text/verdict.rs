//! The top of the summary: the verdict and the plan.

use gake_core::record::Run;
use gake_judge::Summary;
use gake_text::foreign;
use gake_text::units;

use super::page::{Paint, TextPage};
use crate::formats::headline::{self, Tone};

/// Separates two statements of the headline.
const SEPARATOR: &str = " · ";

/// The headline, its reasons, and the objectives.
pub(super) fn verdict(page: &mut TextPage, summary: &Summary) {
    let verdict = &summary.verdict;
    let (mut line, mut shown) = (String::new(), 0);
    let mut add = |page: &mut TextPage, paint: Paint, text: &str| {
        let width = text.chars().count();
        if shown > 0 && shown + SEPARATOR.chars().count() + width > page.width() {
            page.line(&std::mem::replace(&mut line, "  ".to_owned()));
            shown = 2;
        } else if shown > 0 {
            line.push_str(SEPARATOR);
            shown += SEPARATOR.chars().count();
        }
        line.push_str(&page.paint(paint, text));
        shown += width;
    };
    for (i, (tone, text)) in headline::statements(summary).into_iter().enumerate() {
        let (mark, paint) = match tone {
            Tone::Good => ("✔", Paint::Good),
            Tone::Doubtful => ("▲", Paint::Warn),
            Tone::Bad => ("✘", Paint::Bad),
        };
        // The mark is the first statement's.
        let text = if i == 0 { format!("{mark} {text}") } else { text };
        add(page, paint, &text);
    }
    if let Some(ending) = headline::ending(&summary.run) {
        add(page, Paint::Plain, &ending);
    }
    page.line(&line);
    if let Some(nothing) = &verdict.nothing_ok {
        page.wrapped(4, "  →", Paint::Plain, nothing.advice);
    }
    let target = headline::target(summary).into_iter().map(|one| one.meaning);
    for meaning in target.filter(|meaning| !meaning.is_empty()) {
        page.wrapped(4, "  •", Paint::Plain, &meaning);
    }
    for reason in &verdict.reasons {
        page.wrapped(4, "  •", Paint::Plain, &reason.text);
    }
    let texts = verdict.objectives.iter().map(|objective| objective.text.chars().count());
    let width = texts.max().unwrap_or(0);
    for objective in &verdict.objectives {
        let (mark, paint) = if objective.met { ("✔", Paint::Good) } else { ("✘", Paint::Bad) };
        let mark = page.paint(paint, mark);
        let text = foreign::line(&objective.text);
        page.line(&format!("  {mark} {text:<width$}   {}", objective.shown()));
    }
}

/// The plan, and when it ran.
pub(super) fn plan(page: &mut TextPage, run: &Run) {
    page.gap();
    let line = run.plan.to_string();
    let rest = line.strip_prefix(&run.plan.target).and_then(|rest| rest.strip_prefix(": "));
    let target = page.paint(Paint::Heading, &foreign::line(&run.plan.target));
    page.line(&target);
    if page.has_plan() {
        let mut lines = rest.unwrap_or(&line).lines();
        page.wrapped(2, "", Paint::Plain, lines.next().unwrap_or_default());
        for scenario in lines {
            page.wrapped(4, "", Paint::Plain, scenario.trim_start());
        }
    }
    let took = units::duration(run.elapsed as f64);
    let started = headline::started(run);
    let comma = if started.is_empty() { "" } else { ", " };
    page.wrapped(2, "", Paint::Quiet, &format!("{started}{comma}{took}{}", headline::spoken(run)));
}
