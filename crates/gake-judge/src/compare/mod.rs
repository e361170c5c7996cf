//! Are two runs different, and with what confidence?
//!
//! A figure (a rate, the ratio of errors, a mean, a percentile) of each run has an interval of its
//! own, computed from its seconds: these are not independent, so variances are those of
//! blocks of seconds. Two such intervals make one of the difference (MOVER: Zou and Donner,
//! "Construction of confidence intervals about effect measures", Statistics in Medicine 27, 2008).
//! Slices in which two sides took turns are compared pair by pair instead. Since many figures are
//! compared, Holm's procedure keeps the chance of any false alarm at the level asked for.
//!
//! A run cannot show how it would come out tomorrow: a machine that is slower today is a
//! difference too. Taking turns avoids that.

mod bootstrap;
mod choice;
mod conclude;
mod figure;
mod guard;
mod kind;
mod normal;
mod order;
mod part;
mod pieces;
mod spread;

use gake_core::record::Run;

use crate::validity::{self, Reason, Validity};

pub use choice::{ComparedFigures, FigureError, Known, NAMES, OWN_MAX};
pub use conclude::{ComparisonOutcome, signed};
pub use kind::{Direction, FigureKind};
pub use pieces::Pieces;

use kind::Measured;
use spread::Contrast;

/// Chance of any false alarm, over all figures of a comparison.
pub const ALPHA: f64 = 0.05;

/// Default tolerance: a change smaller than this share does not matter.
pub const TOLERANCE: f64 = 0.05;

/// A difference of error ratios smaller than this does not matter whatever the tolerance: 5 % of
/// one error in a million is nothing.
pub const ERRORS_TOLERANCE: f64 = 0.001;

/// Chance with which a change of the detectable size is found.
pub const POWER: f64 = 0.8;

/// The figures that must be decided before anything can be concluded, when none are named. Any
/// other can still make B worse. (Errors are part of the goodput, whose interval is narrow even
/// when they are too few to be judged on their own.)
pub const HEADLINE: [&str; 3] = ["goodput", "response.p50", "response.p99"];

/// The parameters of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Changes up to this share do not matter.
    pub tolerance: f64,
    /// The figures to compare, by name; the usual ones when empty.
    pub figures: Vec<String>,
}

impl Default for Question {
    fn default() -> Self {
        Self { tolerance: TOLERANCE, figures: Vec::new() }
    }
}

/// One side of a comparison: a run with its seconds.
#[derive(Debug, Clone)]
pub struct RunSample {
    /// The whole.
    pub run: Run,
    /// Its seconds, or blocks of them.
    pub pieces: Pieces,
}

/// One figure of two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name, such as `response.p99`, or as the user wrote it.
    pub name: String,
    /// Its unit.
    pub kind: FigureKind,
    /// Its value in A; nanoseconds, a number a second, or a share.
    pub a: f64,
    /// Its value in B.
    pub b: f64,
    /// How B differs; `None` when it cannot be computed.
    pub change: Option<Change>,
    /// The conclusion about it.
    pub verdict: ComparisonOutcome,
    /// Whether it is worse by more than the tolerance.
    pub beyond: bool,
    /// Why the figure has no interval.
    pub problem: Option<String>,
    /// Whether the conclusion requires it.
    pub headline: bool,
}

/// How B differs from A: as a share of A (0.05 is 5 % more), error ratios as the plain difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The point estimate.
    pub estimate: f64,
    /// Lower end of the interval; may be infinite.
    pub low: f64,
    /// Upper end of the interval; may be infinite.
    pub high: f64,
    /// The interval's chance to miss the truth, which Holm's procedure gives it.
    pub alpha: f64,
    /// The smallest level at which there is a difference.
    pub p: f64,
    /// The smallest change that would have been found with 80 % chance; `None` when none would.
    pub detectable: Option<f64>,
}

/// The result of comparing two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The conclusion about B.
    pub outcome: ComparisonOutcome,
    /// The same in a sentence.
    pub conclusion: String,
    /// Every figure compared.
    pub figures: Vec<Figure>,
    /// What makes a run invalid, and which: such runs cannot be compared.
    pub invalid: Vec<(char, Reason)>,
    /// What differs between the plans, and other reasons to be careful.
    pub warnings: Vec<String>,
    /// The tolerance asked for.
    pub tolerance: f64,
    /// Pairs of slices, when the sides took turns.
    pub pairs: Option<usize>,
}

impl Figure {
    /// Its subject, empty when it stands by itself, and its statistic.
    #[must_use]
    pub fn heading(&self) -> (&str, &str) {
        choice::heading(&self.name)
    }
}

/// Compares two runs by `figures`, for which the pieces of both were made.
#[must_use]
pub fn compare(
    a: &RunSample,
    b: &RunSample,
    figures: &ComparedFigures,
    question: &Question,
) -> Comparison {
    let contrasts = figures.measured().iter().map(|measured| {
        let sides = (measured.side(a), measured.side(b));
        let values = (measured.value(&a.run), measured.value(&b.run));
        let contrast = match sides {
            (Ok(a), Ok(b)) => Ok(Contrast::Apart(a, b)),
            (Err(problem), _) => Err(format!("A: {problem}")),
            (_, Err(problem)) => Err(format!("B: {problem}")),
        };
        (measured, values, contrast)
    });
    let judged = judged(contrasts.collect(), question);
    let (plan, other) = (&a.run.plan, &b.run.plan);
    let mut warnings = conclude::differences(plan, other);
    warnings.extend(left_out(figures));
    if plan.target != other.target {
        warnings.push(format!("the target differs: {} in A, {} in B", plan.target, other.target));
    }
    conclude::conclude(judged, invalid([&a.run, &b.run]), warnings, question, None)
}

/// Compares two sides that took turns: `wholes` are the joined runs of each, `pairs` the slices of
/// A and B that stood next to each other. Different targets are not a warning here: they are
/// the question.
#[must_use]
pub fn compare_pairs(
    wholes: [&Run; 2],
    pairs: &[(Run, Run)],
    figures: &ComparedFigures,
    question: &Question,
) -> Comparison {
    let contrasts = figures.measured().iter().map(|measured| {
        let values = (measured.value(wholes[0]), measured.value(wholes[1]));
        let contrast = measured.paired(wholes, pairs);
        (measured, values, contrast)
    });
    let judged = judged(contrasts.collect(), question);
    let mut warnings = conclude::differences(&wholes[0].plan, &wholes[1].plan);
    warnings.extend(left_out(figures));
    let invalid = invalid(wholes);
    conclude::conclude(judged, invalid, warnings, question, Some(pairs.len()))
}

/// Says which metrics are not looked at.
fn left_out(figures: &ComparedFigures) -> Option<String> {
    let names = figures.left_out();
    (!names.is_empty()).then(|| {
        format!(
            "{OWN_MAX} metrics of the runs' own are compared; name others with --figures: {}",
            crate::objective::listed(names.iter().map(String::as_str))
        )
    })
}

/// The reasons for which runs are invalid.
fn invalid(runs: [&Run; 2]) -> Vec<(char, Reason)> {
    let of = |(name, run)| {
        let (_, reasons) = validity::check(run);
        let invalid = reasons.into_iter().filter(|reason| reason.level == Validity::Invalid);
        invalid.map(move |reason| (name, reason))
    };
    ['A', 'B'].into_iter().zip(runs).flat_map(of).collect()
}

type Contrasted<'a> = (&'a Measured, (f64, f64), Result<Contrast, String>);

/// Gives every figure its level, its interval and its verdict.
fn judged(contrasts: Vec<Contrasted<'_>>, question: &Question) -> Vec<Figure> {
    let p = |contrast: &Contrast| contrast.p();
    let ps: Vec<Option<f64>> =
        contrasts.iter().map(|(_, _, contrast)| contrast.as_ref().ok().map(p)).collect();
    let levels = guard::holm(&ps, ALPHA);
    let figures = contrasts.into_iter().zip(ps).zip(levels);
    let of = |(((measured, (a, b), contrast), p), alpha): ((Contrasted<'_>, Option<f64>), f64)| {
        let (change, problem) = match contrast {
            Ok(contrast) => (Some(measured.change(&contrast, alpha, p.unwrap_or(1.0))), None),
            Err(problem) => (None, Some(problem)),
        };
        let tolerance = measured.tolerance(question.tolerance, a);
        let (verdict, beyond) = conclude::verdict(measured.direction, change.as_ref(), tolerance);
        let headline = !question.figures.is_empty() || HEADLINE.contains(&measured.name.as_str());
        Figure {
            name: measured.name.clone(),
            kind: measured.kind,
            a,
            b,
            change,
            verdict,
            beyond,
            problem,
            headline,
        }
    };
    figures.map(of).collect()
}

#[cfg(test)]
mod tests;
