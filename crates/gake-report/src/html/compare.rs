//! The comparison page: the figures with their intervals, and B's charts over A's.

use gake_judge::Summary;
use serde::Serialize;

use super::run::{POINTS_MAX, RunJson};
use super::{SCHEMA, bounded, cut};
use crate::compare::json::ComparisonJson;
use crate::compare::{CompareReport, legend};

const WARNINGS_MAX: usize = 30;

#[derive(Serialize)]
struct ComparePageJson {
    schema: &'static str,
    kind: &'static str,
    gake: &'static str,
    comparison: ComparisonJson,
    /// Explains the intervals.
    legend: String,
    /// B, with A behind it.
    run: RunJson,
}

/// The page of a comparison as one file.
#[must_use]
pub fn compare(report: &CompareReport<'_>) -> String {
    let [a, b] = report.sides.map(|run| Summary::as_recorded(run.clone()).0);
    bounded(POINTS_MAX, |points| ComparePageJson {
        schema: SCHEMA,
        kind: "compare",
        gake: env!("CARGO_PKG_VERSION"),
        comparison: form(report),
        legend: legend(report.comparison),
        run: RunJson::over(&b, points, report.names[0], &a),
    })
}

/// The comparison, its texts cut.
fn form(report: &CompareReport<'_>) -> ComparisonJson {
    let mut comparison = report.comparison.clone();
    comparison.warnings.truncate(WARNINGS_MAX);
    for warning in &mut comparison.warnings {
        *warning = cut(warning);
    }
    comparison.conclusion = cut(&comparison.conclusion);
    for figure in &mut comparison.figures {
        figure.problem = figure.problem.as_deref().map(cut);
    }
    let sides = report.sides.map(|run| {
        let mut slim = gake_core::record::Run { tally: Default::default(), ..run.clone() };
        slim.plan.target = cut(&slim.plan.target);
        slim.plan.labels.clear();
        slim
    });
    let names = report.names.map(cut);
    ComparisonJson::from(&CompareReport {
        comparison: &comparison,
        sides: sides.each_ref(),
        names: names.each_ref().map(String::as_str),
    })
}
