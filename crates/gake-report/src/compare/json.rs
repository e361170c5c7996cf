//! A comparison as JSON, schema `gake.compare/1`.
//!
//! The fields are documented on the types; `docs/gake.compare.1.schema.json` is generated from
//! them.

use gake_core::plan::Plan;
use gake_core::record::Run;
use gake_judge::compare::{ALPHA, ComparedFigure, FigureChange, FigureKind};
use serde::Serialize;

use super::CompareReport;
use crate::json_types::plan::finished;

/// The comparison as one JSON object over several lines.
///
/// # Errors
/// Never in practice: the numbers are finite or null.
pub fn json(report: &CompareReport<'_>) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&ComparisonJson::from(report))? + "\n")
}

/// A comparison of two runs: what differs, and with what confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "gake.compare/1"))]
pub(crate) struct ComparisonJson {
    /// Always `gake.compare/1`.
    schema: &'static str,
    /// The version of gake that wrote this.
    gake: &'static str,
    /// The conclusion about B: `better`, `worse`, `different`, `no_difference` or
    /// `inconclusive`.
    outcome: &'static str,
    /// The conclusion in a sentence.
    conclusion: String,
    /// The change that is still irrelevant, as a share.
    tolerance: f64,
    /// The chance of any false alarm over all figures, controlled by Holm's procedure.
    alpha: f64,
    /// Pairs of slices when A and B alternated; null when they are two runs.
    pairs: Option<usize>,
    a: SideJson,
    b: SideJson,
    /// Why a run is invalid, by side; then the comparison has no conclusion.
    invalid: Vec<InvalidJson>,
    /// Differences between the plans, and other reasons for caution.
    warnings: Vec<String>,
    /// Every compared figure.
    figures: Vec<FigureJson>,
}

impl From<&CompareReport<'_>> for ComparisonJson {
    fn from(report: &CompareReport<'_>) -> Self {
        let comparison = report.comparison;
        let side = |i: usize| SideJson::new(report.names[i], report.sides[i]);
        let invalid = comparison.invalid.iter();
        Self {
            schema: "gake.compare/1",
            gake: env!("CARGO_PKG_VERSION"),
            outcome: comparison.outcome.name(),
            conclusion: comparison.conclusion.clone(),
            tolerance: comparison.tolerance,
            alpha: ALPHA,
            pairs: comparison.pairs,
            a: side(0),
            b: side(1),
            invalid: invalid
                .map(|(run, reason)| InvalidJson { run: *run, reason: reason.text.clone() })
                .collect(),
            warnings: comparison.warnings.clone(),
            figures: comparison.figures.iter().map(Into::into).collect(),
        }
    }
}

/// One side of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideJson {
    /// The user's name for it: a file or a command.
    name: String,
    /// The start, in Unix nanoseconds.
    started_unix_ns: u64,
    /// The plan of the run.
    plan: Plan,
}

impl SideJson {
    fn new(name: &str, run: &Run) -> Self {
        let plan = finished(&run.plan);
        Self { name: name.to_owned(), started_unix_ns: run.started_unix_ns, plan }
    }
}

/// Why a run is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InvalidJson {
    run: char,
    /// The evidence.
    reason: String,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FigureJson {
    /// Such as `response.p99`, or as requested.
    name: String,
    /// The unit of `a` and `b`: `per_second`, `share` (0 to 1), `ns`, `bytes` or `number`.
    unit: &'static str,
    /// The value in A; null if unknown.
    a: Option<f64>,
    /// The value in B; null if unknown.
    b: Option<f64>,
    /// The conclusion: `better`, `worse`, `different`, `no_difference` or `inconclusive`.
    verdict: &'static str,
    /// Whether it is worse by more than the tolerance; then so is B.
    beyond_tolerance: bool,
    /// Whether the comparison stays inconclusive until this figure is decided.
    headline: bool,
    /// B/A − 1; for error ratios B − A. Null when unknown.
    change: Option<ChangeJson>,
    /// Why there is no change.
    problem: Option<String>,
}

impl From<&ComparedFigure> for FigureJson {
    fn from(figure: &ComparedFigure) -> Self {
        let finite = |x: f64| x.is_finite().then_some(x);
        Self {
            name: figure.name.clone(),
            unit: match figure.kind {
                FigureKind::Rate => "per_second",
                FigureKind::Share => "share",
                FigureKind::Time => "ns",
                FigureKind::Bytes => "bytes",
                FigureKind::Number => "number",
            },
            a: finite(figure.a),
            b: finite(figure.b),
            verdict: figure.verdict.name(),
            beyond_tolerance: figure.beyond,
            headline: figure.headline,
            change: figure.change.as_ref().map(Into::into),
            problem: figure.problem.clone(),
        }
    }
}

/// The change from A to B. 1 + each number is the ratio B/A, except for error ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChangeJson {
    /// The point estimate.
    estimate: f64,
    /// The lower end of the interval; null if unknown.
    low: Option<f64>,
    /// The upper end of the interval; null if unknown.
    high: Option<f64>,
    /// The chance that the interval misses the truth, after Holm's procedure.
    alpha: f64,
    /// The smallest significance level at which there is a difference.
    p: f64,
    /// The smallest change with an 80 % chance of detection; null if there is none.
    detectable: Option<f64>,
}

impl From<&FigureChange> for ChangeJson {
    fn from(change: &FigureChange) -> Self {
        let finite = |x: f64| x.is_finite().then_some(x);
        Self {
            estimate: change.estimate,
            low: finite(change.low),
            high: finite(change.high),
            alpha: change.alpha,
            p: change.p,
            detectable: change.detectable,
        }
    }
}
