//! A comparison of two runs: text and Markdown for people, JSON `gake.compare/1` for programs.

pub(crate) mod json;
mod markdown;
mod text;

use gake_core::record::Run;
use gake_judge::compare::{ComparedFigure, Comparison, ComparisonOutcome, FigureKind};
use gake_text::units;

pub use json::json;
pub use markdown::markdown;
pub use text::text;

/// A comparison and its two sides.
#[derive(Debug, Clone, Copy)]
pub struct CompareReport<'a> {
    /// The figures of both sides, compared.
    pub comparison: &'a Comparison,
    /// The runs A and B.
    pub sides: [&'a Run; 2],
    /// The user's names for them: files or commands.
    pub names: [&'a str; 2],
}

/// A figure's value for display.
fn value(kind: FigureKind, value: f64) -> String {
    match kind {
        _ if !value.is_finite() => "–".to_owned(),
        FigureKind::Rate => units::rate(value),
        FigureKind::Share => units::percent(value),
        FigureKind::Time => units::duration(value),
        FigureKind::Bytes => units::bytes(value),
        FigureKind::Number => units::number(value),
    }
}

/// A change without its unit, which an interval shows once at its end.
fn bare(x: f64) -> String {
    let sign = if x < 0.0 { "−" } else { "+" };
    let percent = x.abs() * 100.0;
    match percent {
        _ if !percent.is_finite() => "–".to_owned(),
        p if p >= 99.95 => format!("{sign}{p:.0}"),
        p if p >= 0.995 || p == 0.0 => format!("{sign}{p:.1}"),
        p => format!("{sign}{p:.2}"),
    }
}

/// The unit of a change: percent of A, or percentage points for error ratios.
fn unit(kind: FigureKind) -> &'static str {
    if kind == FigureKind::Share { "pt" } else { "%" }
}

fn interval(figure: &ComparedFigure) -> String {
    figure.change.map_or_else(String::new, |change| match (change.low, change.high) {
        // Nothing is known about the upper bound, and a lower one of −100 % says as little.
        (low, high) if !high.is_finite() && low <= -0.995 => "–".to_owned(),
        (low, high) if !high.is_finite() => format!("≥ {} {}", bare(low), unit(figure.kind)),
        _ => format!("{} … {} {}", bare(change.low), bare(change.high), unit(figure.kind)),
    })
}

fn estimate(figure: &ComparedFigure) -> String {
    figure.change.map_or_else(
        || "–".to_owned(),
        |change| format!("{} {}", bare(change.estimate), unit(figure.kind)),
    )
}

/// The smallest change that would have been detected.
fn detectable(figure: &ComparedFigure) -> String {
    let detectable = figure.change.and_then(|change| change.detectable);
    detectable.map_or_else(
        || "–".to_owned(),
        |least| match least.is_finite() {
            true => format!("{} {}", bare(least).trim_start_matches('+'), unit(figure.kind)),
            false => "–".to_owned(),
        },
    )
}

fn words(outcome: ComparisonOutcome) -> &'static str {
    match outcome {
        ComparisonOutcome::Better => "better",
        ComparisonOutcome::Worse => "worse",
        ComparisonOutcome::Different => "different",
        ComparisonOutcome::NoDifference => "no difference",
        ComparisonOutcome::Inconclusive => "inconclusive",
    }
}

/// The reasons why figures have no interval, each with its figures.
fn problems(comparison: &Comparison) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for figure in &comparison.figures {
        let Some(problem) = &figure.problem else { continue };
        match reasons.iter_mut().find(|(known, _)| known == problem) {
            Some((_, names)) => names.push(&figure.name),
            None => reasons.push((problem, vec![&figure.name])),
        }
    }
    let said = |(problem, names): (&str, Vec<&str>)| match names.len() {
        all if all == comparison.figures.len() => format!("no figure has an interval: {problem}"),
        1 => format!("{} has no interval: {problem}", names[0]),
        _ => format!("{} have no interval: {problem}", names.join(", ")),
    };
    reasons.into_iter().map(said).collect()
}

/// A sentence that explains the intervals.
pub(crate) fn legend(comparison: &Comparison) -> String {
    let how = match comparison.pairs {
        Some(pairs) => format!("{pairs} pairs of alternating slices"),
        None => "seconds of each run".to_owned(),
    };
    format!(
        "intervals from {how}; with {} figures compared, the chance of any false alarm is {} \
         (Holm); detects is the smallest change with an 80 % chance of detection",
        comparison.figures.iter().filter(|figure| figure.change.is_some()).count(),
        units::percent(gake_judge::compare::ALPHA)
    )
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
