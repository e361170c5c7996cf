//! A comparison as text: the conclusion about B, then figure by figure.

use gake_judge::compare::{ComparedFigure, ComparisonOutcome};

use super::{CompareReport, detectable, estimate, interval, legend, problems, value, words};
use crate::Style;
use crate::formats::text::page::{Paint, TextPage, fit};

/// Most columns of a figure's name.
const NAMES_MAX: usize = 40;

/// The comparison as text, with a final newline.
#[must_use]
pub fn text(report: &CompareReport<'_>, style: Style) -> String {
    let comparison = report.comparison;
    let mut page = TextPage::new(style.for_tables());
    let (mark, paint) = mark(comparison.outcome);
    page.wrapped(2, mark, paint, &comparison.conclusion);
    for (run, reason) in &comparison.invalid {
        page.wrapped(4, "  •", Paint::Bad, &format!("{run} is invalid: {}", reason.text));
    }
    for warning in &comparison.warnings {
        page.wrapped(4, "  •", Paint::Warn, warning);
    }
    page.gap();
    for ((letter, name), run) in ["A", "B"].iter().zip(report.names).zip(report.sides) {
        page.wrapped(3, letter, Paint::Heading, name);
        page.wrapped(3, "", Paint::Quiet, &run.plan.to_string());
    }
    page.gap();
    let longest = comparison.figures.iter().map(|figure| figure.heading().1.chars().count()).max();
    let wide = longest.unwrap_or(0).saturating_add(3).clamp(12, NAMES_MAX);
    let head = format!(
        "{:<wide$}{:>9}{:>9}{:>9}{:>18}{:>8}",
        "", "A", "B", "change", "interval", "detects"
    );
    let head = page.paint(Paint::Heading, &head);
    page.line(&head);
    let mut group = "";
    for figure in &comparison.figures {
        let (of, name) = figure.heading();
        if of != group && !of.is_empty() {
            let heading = page.paint(Paint::Heading, of);
            page.line(&heading);
        }
        // A row without a group is not indented below a heading.
        let indent = if of.is_empty() && !group.is_empty() { "" } else { "  " };
        if !of.is_empty() {
            group = of;
        }
        row(&mut page, figure, &format!("{indent}{name}"), wide);
    }
    page.gap();
    for problem in problems(comparison) {
        page.wrapped(2, "", Paint::Quiet, &problem);
    }
    page.wrapped(2, "", Paint::Quiet, &legend(comparison));
    page.text()
}

fn row(page: &mut TextPage, figure: &ComparedFigure, name: &str, wide: usize) {
    let (_, paint) = mark(figure.verdict);
    // Worse within the tolerance is no alarm.
    let within = figure.verdict == ComparisonOutcome::Worse && !figure.beyond;
    let paint = if within { Paint::Plain } else { paint };
    let verdict = page.paint(paint, words(figure.verdict));
    let row = format!(
        "{:<wide$}{:>9}{:>9}{:>9}{:>18}{:>8}  {verdict}",
        fit(name, wide - 1),
        value(figure.kind, figure.a),
        value(figure.kind, figure.b),
        estimate(figure),
        fit(&interval(figure), 17),
        detectable(figure),
    );
    page.line(&row);
}

fn mark(outcome: ComparisonOutcome) -> (&'static str, Paint) {
    match outcome {
        ComparisonOutcome::Better => ("✔", Paint::Good),
        ComparisonOutcome::Worse => ("✘", Paint::Bad),
        ComparisonOutcome::NoDifference => ("✔", Paint::Plain),
        ComparisonOutcome::Different => ("≠", Paint::Warn),
        ComparisonOutcome::Inconclusive => ("?", Paint::Warn),
    }
}
