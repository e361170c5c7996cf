//! What theory expects, beside what was seen.

use std::ops::RangeInclusive;
use std::time::Duration;

use gake_judge::{Rank, Summary};
use gake_report::experiment::Expectation;
use gake_text::units;

/// Findings about the machine that both share: true in their own right, whatever else is limited.
/// They are passed over, and never what a step has to show, unless it names them.
const MACHINE: [&str; 2] = ["run_delay", "shared_cores"];
/// What is found when nothing else is.
const UNEXPLAINED: &str = "unexplained";

/// A number of things.
pub fn number(
    what: &'static str,
    seen: u64,
    expected: RangeInclusive<u64>,
    theory: String,
) -> Expectation {
    Expectation { what, theory, seen: units::count(seen), met: expected.contains(&seen) }
}

/// A rate a second.
pub fn rate(
    what: &'static str,
    seen: f64,
    expected: RangeInclusive<f64>,
    theory: String,
) -> Expectation {
    Expectation { what, theory, seen: units::rate(seen), met: expected.contains(&seen) }
}

/// A time; `seen` in nanoseconds.
pub fn time(
    what: &'static str,
    seen: f64,
    expected: RangeInclusive<Duration>,
    theory: String,
) -> Expectation {
    let (low, high) = (expected.start().as_nanos() as f64, expected.end().as_nanos() as f64);
    Expectation { what, theory, seen: units::duration(seen), met: (low..=high).contains(&seen) }
}

/// A level with a fraction, such as cores.
pub fn amount(
    what: &'static str,
    seen: f64,
    expected: RangeInclusive<f64>,
    theory: String,
) -> Expectation {
    Expectation { what, theory, seen: units::number(seen), met: expected.contains(&seen) }
}

/// A size in memory.
pub fn bytes(
    what: &'static str,
    seen: f64,
    expected: RangeInclusive<f64>,
    theory: String,
) -> Expectation {
    Expectation { what, theory, seen: units::bytes(seen), met: expected.contains(&seen) }
}

/// A share of a whole.
pub fn share(
    what: &'static str,
    seen: f64,
    expected: RangeInclusive<f64>,
    theory: String,
) -> Expectation {
    Expectation { what, theory, seen: units::percent(seen), met: expected.contains(&seen) }
}

/// The limit that was set is among the causes, and no wrong one is named before it. `beside` are
/// causes that are true as well.
pub fn cause(summary: &Summary, truth: &'static str, beside: &[&str]) -> Expectation {
    let named = causes(summary);
    let right = |id: &str| id == truth || beside.contains(&id) || MACHINE.contains(&id);
    let before = named.iter().position(|id| *id == truth);
    let met = before.is_some_and(|at| named[..at].iter().all(|id| right(id)));
    Expectation { what: "cause", theory: truth.to_owned(), seen: told(&named), met }
}

/// One of several causes comes first.
pub fn first_cause(summary: &Summary, true_ones: &[&'static str]) -> Expectation {
    let named = causes(summary);
    let mut own = named.iter().filter(|id| true_ones.contains(id) || !MACHINE.contains(id));
    let met = own.next().is_some_and(|id| true_ones.contains(id));
    Expectation { what: "cause", theory: true_ones.join(" or "), seen: told(&named), met }
}

/// Nothing is limited, and nothing is blamed.
pub fn no_cause(summary: &Summary) -> Expectation {
    let named = causes(summary);
    let met = named.iter().all(|id| *id == UNEXPLAINED || MACHINE.contains(id));
    let theory = "none: the load is below every limit".to_owned();
    Expectation { what: "cause", theory, seen: told(&named), met }
}

fn causes(summary: &Summary) -> Vec<&'static str> {
    let findings = summary.verdict.findings.iter();
    findings.filter(|finding| finding.rank == Rank::Cause).map(|finding| finding.id).collect()
}

fn told(named: &[&str]) -> String {
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

/// `5 s`, `500 ms`: a time in a formula.
pub fn span(time: Duration) -> String {
    units::duration(time.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_outside_its_range_is_not_as_expected() {
        let theory = || "t".to_owned();
        assert!(number("ok", 5, 5..=6, theory()).met);
        assert!(!number("ok", 7, 5..=6, theory()).met);
        let (low, high) = (Duration::from_millis(10), Duration::from_millis(20));
        assert!(time("p99", 10e6, low..=high, theory()).met);
        assert!(!time("p99", 21e6, low..=high, theory()).met);
        assert!(!rate("rate", f64::NAN, 0.0..=1.0, theory()).met);
    }
}
