//! Checks and custom metrics.

use gake_core::record::Run;
use serde::Serialize;

use super::{METRICS_MAX, NAME_MAX};
use crate::html::cut_to;
use crate::metric_sections::{MetricRow, sections};

/// One metric under one set of tags.
#[derive(Serialize)]
pub(super) struct MetricJson {
    section: &'static str,
    name: String,
    samples: u64,
    /// The aggregate, as in the text format.
    figures: String,
    /// Whether a check always passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
}

/// The rows of all sections, and the number of omitted ones.
pub(super) fn metrics(run: &Run) -> (Vec<MetricJson>, usize) {
    let rows = sections(run).into_iter().flat_map(|section| {
        let form = move |row: MetricRow| MetricJson {
            section: section.heading,
            name: cut_to(&row.name, NAME_MAX),
            samples: row.samples,
            figures: row.figures,
            passed: row.passed,
        };
        section.rows.into_iter().map(form)
    });
    let mut rows: Vec<_> = rows.collect();
    let more = rows.len().saturating_sub(METRICS_MAX);
    rows.truncate(METRICS_MAX);
    (rows, more)
}
