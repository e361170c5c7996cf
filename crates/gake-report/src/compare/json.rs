//! A comparison as JSON, schema `gake.compare/1`.
//!
//! The fields are documented on the types, from which `docs/gake.compare.1.schema.json` is made.

use gake_core::plan::Plan;
use gake_core::record::Run;
use gake_judge::compare::{ALPHA, Change, Figure, FigureKind};
use serde::Serialize;

use super::CompareReport;
use crate::json_types::plan::finished;

/// The comparison as one JSON object over several lines.
///
/// # Errors
/// Never with the numbers there are; they are finite or null.
pub fn json(report: &CompareReport<'_>) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&ComparisonForm::from(report))? + "\n")
}

/// Two runs compared: what differs, and with what confidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "gake.compare/1"))]
pub(crate) struct ComparisonForm {
    /// Always `gake.compare/1`.
    schema: &'static str,
    /// The version of gake that wrote this.
    gake: &'static str,
    /// The conclusion about B: `better`, `worse`, `different`, `no_difference` or
    /// `inconclusive`.
    outcome: &'static str,
    /// The same in a sentence.
    conclusion: String,
    /// The change that does not matter yet, as a share.
    tolerance: f64,
    /// The chance of any false alarm over all figures, kept by Holm's procedure.
    alpha: f64,
    /// Pairs of slices when A and B took turns; null when they are two runs.
    pairs: Option<usize>,
    /// A.
    a: SideForm,
    /// B.
    b: SideForm,
    /// Why a run is invalid, each with its side; then nothing can be concluded.
    invalid: Vec<InvalidForm>,
    /// What differs between the plans, and other reasons to be careful.
    warnings: Vec<String>,
    /// Every figure looked at.
    figures: Vec<FigureForm>,
}

impl From<&CompareReport<'_>> for ComparisonForm {
    fn from(report: &CompareReport<'_>) -> Self {
        let comparison = report.comparison;
        let side = |i: usize| SideForm::new(report.names[i], report.sides[i]);
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
                .map(|(run, reason)| InvalidForm { run: *run, reason: reason.text.clone() })
                .collect(),
            warnings: comparison.warnings.clone(),
            figures: comparison.figures.iter().map(Into::into).collect(),
        }
    }
}

/// One of the two.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SideForm {
    /// What the user named it: a file or a command.
    name: String,
    /// When it started, in Unix nanoseconds.
    started_unix_ns: u64,
    /// What was asked.
    plan: Plan,
}

impl SideForm {
    fn new(name: &str, run: &Run) -> Self {
        let plan = finished(&run.plan);
        Self { name: name.to_owned(), started_unix_ns: run.started_unix_ns, plan }
    }
}

/// Why a run is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InvalidForm {
    /// `A` or `B`.
    run: char,
    /// What was seen.
    reason: String,
}

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FigureForm {
    /// Its name, such as `response.p99`, or as it was asked for.
    name: String,
    /// The unit of `a` and `b`: `per_second`, `share` (0 to 1), `ns`, `bytes` or `number`.
    unit: &'static str,
    /// Its value in A; null if unknown.
    a: Option<f64>,
    /// Its value in B.
    b: Option<f64>,
    /// Its conclusion: `better`, `worse`, `different`, `no_difference` or
    /// `inconclusive`.
    verdict: &'static str,
    /// Whether it is worse by more than the tolerance; then so is B.
    beyond_tolerance: bool,
    /// Whether nothing is concluded before it is decided.
    headline: bool,
    /// B/A − 1; of error ratios B − A. Null when it cannot be told.
    change: Option<ChangeForm>,
    /// Why there is no change.
    problem: Option<String>,
}

impl From<&Figure> for FigureForm {
    fn from(figure: &Figure) -> Self {
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

/// How B differs. 1 + each number is the ratio B/A, but for error ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChangeForm {
    /// The best guess.
    estimate: f64,
    /// Lower end of the interval; null if unknown.
    low: Option<f64>,
    /// Upper end of the interval; null if unknown.
    high: Option<f64>,
    /// The interval's chance to miss the truth, as Holm's procedure gave it.
    alpha: f64,
    /// The smallest level at which there is a difference.
    p: f64,
    /// The smallest change that would have been found with 80 % chance; null when none would.
    detectable: Option<f64>,
}

impl From<&Change> for ChangeForm {
    fn from(change: &Change) -> Self {
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
