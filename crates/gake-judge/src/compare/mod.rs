//! Compares two runs: whether they differ, and with what confidence.
//!
//! Each figure (a rate, the error ratio, a mean, a percentile) of a run has a confidence interval
//! computed from the run's seconds. These are not independent, so variances are taken over blocks
//! of seconds. Two such intervals give that of the difference (MOVER: Zou and Donner, "Construction
//! of confidence intervals about effect measures", Statistics in Medicine 27, 2008). Alternating
//! slices are compared pair by pair instead. Since many figures are compared, Holm's procedure
//! bounds the probability of any false alarm.
//!
//! A run does not show how much the machine varies from day to day; alternating slices cancel that.

mod bootstrap;
mod choice;
mod conclude;
mod contrast;
mod figure;
mod holm;
mod kind;
mod normal;
mod observations;
mod order;
mod scope;

use gake_core::record::Run;

use crate::validity::{self, Reason, Validity};

pub use choice::{FigureError, FigureSelection, NAMES, OWN_MAX, RunMetrics};
pub use conclude::{ComparisonOutcome, signed};
pub use kind::{Direction, FigureKind};
pub use observations::RunObservations;

use contrast::Contrast;
use kind::MeasuredFigure;

/// Probability of any false alarm, over all figures of a comparison.
pub const ALPHA: f64 = 0.05;

/// Default tolerance, as a share: smaller changes do not matter.
pub const TOLERANCE: f64 = 0.05;

/// Minimum tolerance of error ratios: 5 % of one error in a million is nothing.
pub const ERRORS_TOLERANCE: f64 = 0.001;

/// Probability of detecting a change of the detectable size.
pub const POWER: f64 = 0.8;

/// The figures that a conclusion requires when none are named; any other can still make B worse.
/// (Errors are part of the goodput, whose interval is narrow even when errors are too few to
/// judge.)
pub const HEADLINE: [&str; 3] = ["goodput", "response.p50", "response.p99"];

/// Options of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// Changes up to this share of A do not matter.
    pub tolerance: f64,
    /// The figures to compare, by name; the usual ones when empty.
    pub figures: Vec<String>,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { tolerance: TOLERANCE, figures: Vec::new() }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// The whole run.
    pub run: Run,
    /// Its seconds.
    pub observations: RunObservations,
}

/// The comparison of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedFigure {
    /// The name, such as `response.p99`, or as the user wrote it.
    pub name: String,
    /// The unit of the values.
    pub kind: FigureKind,
    /// The value in A; nanoseconds, per second, or a share.
    pub a: f64,
    /// The value in B.
    pub b: f64,
    /// The change from A to B; `None` when it cannot be computed.
    pub change: Option<FigureChange>,
    /// The conclusion about it.
    pub verdict: ComparisonOutcome,
    /// Whether B is worse by more than the tolerance.
    pub beyond: bool,
    /// Why there is no `change`.
    pub problem: Option<String>,
    /// Whether the conclusion requires this figure.
    pub headline: bool,
}

/// A change from A to B, as a share of A (0.05 is 5 % more); of shares, the difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FigureChange {
    /// The point estimate.
    pub estimate: f64,
    /// Lower end of the interval; may be infinite.
    pub low: f64,
    /// Upper end of the interval; may be infinite.
    pub high: f64,
    /// The interval's probability of missing the true value, by Holm's procedure.
    pub alpha: f64,
    /// The smallest level at which the difference is significant.
    pub p: f64,
    /// The smallest change detected with a probability of [`POWER`]; `None` when there is none.
    pub detectable: Option<f64>,
}

/// The result of comparing two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The conclusion about B.
    pub outcome: ComparisonOutcome,
    /// The conclusion in a sentence.
    pub conclusion: String,
    /// Every figure compared.
    pub figures: Vec<ComparedFigure>,
    /// Reasons why run `'A'` or `'B'` is invalid: invalid runs cannot be compared.
    pub invalid: Vec<(char, Reason)>,
    /// Differences between the plans, and other caveats.
    pub warnings: Vec<String>,
    /// The requested tolerance.
    pub tolerance: f64,
    /// Pairs of slices, if the sides alternated.
    pub pairs: Option<usize>,
}

impl ComparedFigure {
    /// The name split into its subject, which may be empty, and its statistic.
    #[must_use]
    pub fn heading(&self) -> (&str, &str) {
        choice::heading(&self.name)
    }
}

/// Compares two runs by `figures`, for which the seconds of both were collected.
#[must_use]
pub fn compare(
    a: &ComparedRun,
    b: &ComparedRun,
    figures: &FigureSelection,
    options: &CompareOptions,
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
    let judged = judged(contrasts.collect(), options);
    let (plan, other) = (&a.run.plan, &b.run.plan);
    let mut warnings = conclude::differences(plan, other);
    warnings.extend(left_out(figures));
    if plan.target != other.target {
        warnings.push(format!("the target differs: {} in A, {} in B", plan.target, other.target));
    }
    let length = (a.run.measured.min(b.run.measured), None);
    conclude::conclude(judged, invalid([&a.run, &b.run]), warnings, options, length)
}

/// Compares two alternating sides: `wholes` are their joined runs, `pairs` the adjacent slices of A
/// and B. Different targets are the purpose here and no warning.
#[must_use]
pub fn compare_pairs(
    wholes: [&Run; 2],
    pairs: &[(Run, Run)],
    figures: &FigureSelection,
    options: &CompareOptions,
) -> Comparison {
    let contrasts = figures.measured().iter().map(|measured| {
        let values = (measured.value(wholes[0]), measured.value(wholes[1]));
        let contrast = measured.paired(wholes, pairs);
        (measured, values, contrast)
    });
    let judged = judged(contrasts.collect(), options);
    let mut warnings = conclude::differences(&wholes[0].plan, &wholes[1].plan);
    warnings.extend(left_out(figures));
    let invalid = invalid(wholes);
    let length = (wholes[0].measured.min(wholes[1].measured), Some(pairs.len()));
    conclude::conclude(judged, invalid, warnings, options, length)
}

/// A warning about metrics that are not compared.
fn left_out(figures: &FigureSelection) -> Option<String> {
    let names = figures.left_out();
    (!names.is_empty()).then(|| {
        format!(
            "only {OWN_MAX} of the runs' own metrics are compared; select others with --figures: \
             {}",
            crate::objective::listed(names.iter().map(String::as_str))
        )
    })
}

fn invalid(runs: [&Run; 2]) -> Vec<(char, Reason)> {
    let of = |(name, run)| {
        let (_, reasons) = validity::check(run);
        let invalid = reasons.into_iter().filter(|reason| reason.level == Validity::Invalid);
        invalid.map(move |reason| (name, reason))
    };
    ['A', 'B'].into_iter().zip(runs).flat_map(of).collect()
}

type Contrasted<'a> = (&'a MeasuredFigure, (f64, f64), Result<Contrast, String>);

/// The level, interval and verdict of every figure.
fn judged(contrasts: Vec<Contrasted<'_>>, options: &CompareOptions) -> Vec<ComparedFigure> {
    let p = |contrast: &Contrast| contrast.p();
    let ps: Vec<Option<f64>> =
        contrasts.iter().map(|(_, _, contrast)| contrast.as_ref().ok().map(p)).collect();
    let levels = holm::holm(&ps, ALPHA);
    let figures = contrasts.into_iter().zip(ps).zip(levels);
    let of = |(((measured, (a, b), contrast), p), alpha): ((Contrasted<'_>, Option<f64>), f64)| {
        let (change, problem) = match contrast {
            Ok(contrast) => (Some(measured.change(&contrast, alpha, p.unwrap_or(1.0))), None),
            Err(problem) => (None, Some(problem)),
        };
        let tolerance = measured.tolerance(options.tolerance, a);
        let (verdict, beyond) = conclude::verdict(measured.direction, change.as_ref(), tolerance);
        let headline = !options.figures.is_empty() || HEADLINE.contains(&measured.name.as_str());
        ComparedFigure {
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
