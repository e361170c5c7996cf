//! Verdicts of a figure and of the whole comparison.

use std::time::Duration;

use gake_core::Load;
use gake_core::clock::{Nanos, SECOND};
use gake_core::plan::Plan;
use gake_text::units;

use super::kind::{Direction, FigureKind};
use super::{CompareOptions, ComparedFigure, Comparison, FigureChange};
use crate::validity::Reason;

/// The conclusion about B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// It differs, and the better direction is unknown.
    Different,
    /// No difference was detected, and one above the tolerance would have been.
    NoDifference,
    /// No difference was detected, but one above the tolerance may have gone unnoticed.
    Inconclusive,
}

impl ComparisonOutcome {
    /// The stable name used in every format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Different => "different",
            Self::NoDifference => "no_difference",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// The verdict of a figure, and whether it is worse by more than `tolerance`.
pub(super) fn verdict(
    direction: Direction,
    change: Option<&FigureChange>,
    tolerance: f64,
) -> (ComparisonOutcome, bool) {
    let Some(change) = change else { return (ComparisonOutcome::Inconclusive, false) };
    let beyond = change.estimate.abs() > tolerance;
    if change.low > 0.0 || change.high < 0.0 {
        if direction == Direction::Unknown {
            return (ComparisonOutcome::Different, false);
        }
        let up = change.low > 0.0;
        let better = up == (direction == Direction::Up);
        let outcome = if better { ComparisonOutcome::Better } else { ComparisonOutcome::Worse };
        (outcome, beyond && !better)
    } else if change.low >= -tolerance && change.high <= tolerance {
        (ComparisonOutcome::NoDifference, false)
    } else {
        (ComparisonOutcome::Inconclusive, false)
    }
}

/// The comparison as a whole, from its figures.
pub(super) fn conclude(
    figures: Vec<ComparedFigure>,
    invalid: Vec<(char, Reason)>,
    warnings: Vec<String>,
    options: &CompareOptions,
    (measured, pairs): (Nanos, Option<usize>),
) -> Comparison {
    let tolerance = options.tolerance;
    let undecided =
        figures.iter().find(|f| f.headline && f.verdict == ComparisonOutcome::Inconclusive);
    let worst = largest(&figures, |figure| figure.beyond);
    let best = largest(&figures, |figure| {
        let change = figure.change.as_ref().map_or(0.0, |change| change.estimate.abs());
        figure.verdict == ComparisonOutcome::Better && change > tolerance
    });
    let differs = largest(&figures, |figure| {
        let change = figure.change.as_ref().map_or(0.0, |change| change.estimate.abs());
        figure.headline && figure.verdict == ComparisonOutcome::Different && change > tolerance
    });
    let (outcome, conclusion) = if let Some((first, _)) = invalid.first() {
        let both = invalid.iter().any(|(name, _)| name != first);
        let sides = if both { "A and B are".to_owned() } else { format!("{first} is") };
        (ComparisonOutcome::Inconclusive, format!("inconclusive: {sides} invalid"))
    } else if let Some(worst) = worst {
        (ComparisonOutcome::Worse, format!("B is worse: {}", change_text(worst)))
    } else if let Some(figure) = undecided {
        (
            ComparisonOutcome::Inconclusive,
            format!("inconclusive: {}", doubt(figure, tolerance, measured)),
        )
    } else if let Some(figure) = differs {
        (ComparisonOutcome::Different, format!("B differs: {}", change_text(figure)))
    } else if let Some(best) = best {
        (ComparisonOutcome::Better, format!("B is better: {}", change_text(best)))
    } else {
        let text = format!("no difference of more than {} was detected", units::percent(tolerance));
        (ComparisonOutcome::NoDifference, text)
    };
    Comparison { outcome, conclusion, figures, invalid, warnings, tolerance, pairs }
}

/// The figure with the largest change among those for which `which` holds, headline figures first.
fn largest(
    figures: &[ComparedFigure],
    which: impl Fn(&&ComparedFigure) -> bool,
) -> Option<&ComparedFigure> {
    let size = |figure: &ComparedFigure| figure.change.map_or(0.0, |change| change.estimate.abs());
    figures
        .iter()
        .filter(which)
        .max_by(|a, b| a.headline.cmp(&b.headline).then(size(a).total_cmp(&size(b))))
}

fn change_text(figure: &ComparedFigure) -> String {
    let Some(change) = &figure.change else { return figure.name.clone() };
    let of = |x: f64| signed(figure.kind, x);
    let range = match change.high.is_finite() {
        true => format!("{} to {}", of(change.low), of(change.high)),
        false => format!("at least {}", of(change.low)),
    };
    format!("{} {} ({range})", figure.name, of(change.estimate))
}

/// Longer measurements than this are not worth proposing.
const LONGEST: f64 = 24.0 * 3_600.0;

/// How long to measure to detect a change of `tolerance`: the standard error falls with the square
/// root of the time. `measured` is the length of the shorter side.
fn sufficient_time(detectable: f64, tolerance: f64, measured: Nanos) -> Option<String> {
    let seconds = measured as f64 / SECOND as f64 * (detectable / tolerance).powi(2);
    if !seconds.is_finite() || seconds > LONGEST {
        return None;
    }
    let step = if seconds > 120.0 { 60.0 } else { 5.0 };
    let rounded = Duration::from_secs_f64((seconds / step).ceil() * step);
    Some(gake_text::duration::format_duration(rounded))
}

fn doubt(figure: &ComparedFigure, tolerance: f64, measured: Nanos) -> String {
    if let Some(problem) = &figure.problem {
        return format!("{} has no confidence interval ({problem})", figure.name);
    }
    let detectable = figure.change.and_then(|change| change.detectable);
    let Some(detectable) = detectable.filter(|detectable| detectable.is_finite()) else {
        return format!("any change of {} would go unnoticed; measure longer", figure.name);
    };
    let longer = match sufficient_time(detectable, tolerance, measured) {
        Some(time) => format!("measure each side for {time}"),
        None => "measure much longer".to_owned(),
    };
    format!(
        "too few data: a {} change below {} would go unnoticed, and {} matters; {longer}, or \
         alternate the sides with --interleave",
        figure.name,
        units::percent(detectable),
        units::percent(tolerance)
    )
}

/// A change as text: `+5.1 %`; shares in percentage points.
#[must_use]
pub fn signed(kind: FigureKind, x: f64) -> String {
    let sign = if x < 0.0 { "−" } else { "+" };
    let unit = if kind == FigureKind::Share { " points" } else { " %" };
    if x.is_infinite() {
        return format!("{sign}∞");
    }
    let value = x.abs() * 100.0;
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 0.995 || v == 0.0 => 1,
        _ => 2,
    };
    format!("{sign}{value:.digits$}{unit}")
}

/// The differences between two plans, a sentence each, except the target.
pub(super) fn differences(a: &Plan, b: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            all.push(format!("{what} differs: {a} in A, {b} in B"));
        }
    };
    differ("the load", load(a), load(b));
    differ("the number of connections", a.connections.to_string(), b.connections.to_string());
    differ("keep-alive", a.keepalive.to_string(), b.keepalive.to_string());
    let total = |plan: &Plan| gake_text::duration::format_duration(plan.timeouts.total);
    differ("the time-out", total(a), total(b));
    for (name, plan) in [("A", a), ("B", b)] {
        let Some(Load::Open { stages, .. }) = plan.load.one() else { continue };
        let steady = |first: f64| stages.iter().all(|s| s.from == first && s.to == first);
        if stages.first().is_some_and(|stage| !steady(stage.from)) {
            all.push(format!(
                "the rate of {name} changes during the run: its seconds differ by design, so \
                 confidence intervals of times are wide"
            ));
        }
    }
    all
}

fn load(plan: &Plan) -> String {
    match plan.load.one() {
        Some(Load::Open { stages, process }) => {
            let rate = |rate: f64| units::rate(rate);
            let stages: Vec<_> = stages
                .iter()
                .map(|stage| match stage.from == stage.to {
                    true => rate(stage.from),
                    false => format!("{} to {}", rate(stage.from), rate(stage.to)),
                })
                .collect();
            format!("{process} arrivals at {}", stages.join(", "))
        }
        Some(Load::Closed { think, .. }) if think.is_zero() => "a closed loop".to_owned(),
        Some(Load::Closed { think, .. }) => {
            format!(
                "a closed loop with {} think time",
                gake_text::duration::format_duration(*think)
            )
        }
        _ => plan.to_string(),
    }
}
