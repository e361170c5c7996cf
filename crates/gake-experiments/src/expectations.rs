//! The predictions of theory against the measured values.

use gake_judge::{Rank, Summary};
use gake_report::experiment::Expectation;

use crate::arithmetic::{ExpressionScope, evaluate, fill, formatted};
use crate::definition::{CellValue, Prediction};

/// Findings about the machine that load and server share: correct on their own, whatever else is
/// limited. They are ignored unless a step names them.
const MACHINE: [&str; 2] = ["run_delay", "shared_cores"];
/// The finding in the absence of any other.
const UNEXPLAINED: &str = "unexplained";

/// A prediction about `what`, the measured value, and whether they agree.
pub fn expectation(what: &str, theory: String, seen: String, met: bool) -> Expectation {
    Expectation { what: what.to_owned(), theory, seen, met, range: None }
}

/// A figure is in its range.
pub fn figure(expected: &Prediction, names: &dyn ExpressionScope) -> Result<Expectation, String> {
    let number = |number: &CellValue| match number {
        CellValue::Number(value) => Ok(*value),
        CellValue::Text(text) => evaluate(text, names),
    };
    let bound = |bound: &Option<CellValue>, open: f64| {
        bound.as_ref().or(expected.is.as_ref()).map_or(Ok(open), number)
    };
    let seen = expected.seen.as_ref().unwrap_or(&expected.what);
    let (expression, format) = seen.rsplit_once(':').unwrap_or((seen, "count"));
    let value = evaluate(expression, names)?;
    let (low, high) = (bound(&expected.from, 0.0)?, bound(&expected.to, f64::INFINITY)?);
    let seen = match &expected.shown {
        Some(template) => fill(template, names)?,
        None => formatted(value, format),
    };
    let met = (low..=high).contains(&value);
    let range = high.is_finite().then_some((low, high));
    let theory = fill(&expected.theory, names)?;
    Ok(Expectation { range, ..expectation(&expected.what, theory, seen, met) })
}

/// The configured limit is among the causes, with no wrong one before it. `beside` are causes that
/// are correct as well.
pub fn cause(summary: &Summary, truth: &str, beside: &[String]) -> Expectation {
    let named = causes(summary);
    let right =
        |id: &str| id == truth || beside.iter().any(|one| one == id) || MACHINE.contains(&id);
    let before = named.iter().position(|id| *id == truth);
    let met = before.is_some_and(|at| named[..at].iter().all(|id| right(id)));
    named_causes(&named, truth.to_owned(), met)
}

/// One of several causes comes first.
pub fn first_cause(summary: &Summary, true_ones: &[String]) -> Expectation {
    let named = causes(summary);
    let is_true = |id: &str| true_ones.iter().any(|one| one == id);
    let mut own = named.iter().filter(|id| is_true(id) || !MACHINE.contains(id));
    let met = own.next().is_some_and(|id| is_true(id));
    named_causes(&named, true_ones.join(" or "), met)
}

/// Nothing is limited, and no cause is named.
pub fn no_cause(summary: &Summary) -> Expectation {
    let named = causes(summary);
    let met = named.iter().all(|id| *id == UNEXPLAINED || MACHINE.contains(id));
    named_causes(&named, "none: the load is below every limit".to_owned(), met)
}

fn named_causes(named: &[&str], theory: String, met: bool) -> Expectation {
    let seen = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    expectation("cause", theory, seen, met)
}

fn causes(summary: &Summary) -> Vec<&'static str> {
    let findings = summary.verdict.findings.iter();
    findings.filter(|finding| finding.rank == Rank::Cause).map(|finding| finding.id).collect()
}
