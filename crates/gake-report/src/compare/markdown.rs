//! A comparison for a pull request.

use std::fmt::Write as _;

use gake_judge::compare::ComparisonOutcome;

use super::{CompareReport, detectable, estimate, interval, legend, problems, value, words};
use crate::formats::markdown::{code, prose};

/// The comparison as Markdown, with a final newline. Figures that do not decide are folded.
#[must_use]
pub fn markdown(report: &CompareReport<'_>) -> String {
    let comparison = report.comparison;
    let mark = match comparison.outcome {
        ComparisonOutcome::Worse => "❌",
        ComparisonOutcome::Inconclusive | ComparisonOutcome::Different => "❔",
        ComparisonOutcome::Better | ComparisonOutcome::NoDifference => "✅",
    };
    // Writing to a String cannot fail.
    let mut text = String::new();
    let _ = writeln!(text, "### {mark} {}\n", prose(&comparison.conclusion));
    for ((letter, name), run) in ["A", "B"].iter().zip(report.names).zip(report.sides) {
        let _ = writeln!(text, "- {letter}: {}, {}", code(name), prose(&run.plan.to_string()));
    }
    let invalid = comparison.invalid.iter();
    let invalid = invalid.map(|(run, reason)| format!("{run} is invalid: {}", reason.text));
    for warning in invalid.chain(comparison.warnings.iter().cloned()) {
        let _ = writeln!(text, "- ⚠ {}", prose(&warning));
    }
    let telling = |figure: &&gake_judge::compare::ComparedFigure| figure.headline || figure.beyond;
    let (first, rest): (Vec<_>, Vec<_>) = comparison.figures.iter().partition(telling);
    table(&mut text, &first);
    for problem in problems(comparison) {
        let _ = writeln!(text, "\n{}", prose(&problem));
    }
    let _ = writeln!(text, "\n{}", prose(&legend(comparison)));
    if !rest.is_empty() {
        let _ = writeln!(text, "\n<details><summary>Other figures</summary>");
        table(&mut text, &rest);
        let _ = writeln!(text, "\n</details>");
    }
    text
}

fn table(text: &mut String, figures: &[&gake_judge::compare::ComparedFigure]) {
    let _ = writeln!(text, "\n| | A | B | change | interval | detects | |");
    let _ = writeln!(text, "| --- | ---: | ---: | ---: | :---: | ---: | --- |");
    for figure in figures {
        let verdict = if figure.beyond { "**worse**" } else { words(figure.verdict) };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {verdict} |",
            figure.name,
            value(figure.kind, figure.a),
            value(figure.kind, figure.b),
            estimate(figure),
            interval(figure),
            detectable(figure),
        );
    }
}
