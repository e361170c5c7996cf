//! Metrics of the run's own: checks, those of scripts, the parts of answers.

use gake_core::record::Run;
use serde::Serialize;

use super::{METRICS_MAX, NAME_MAX};
use crate::html::cut_to;
use crate::metric_sections::{Row, sections};

/// One metric under one set of tags.
#[derive(Serialize)]
pub(super) struct MetricForm {
    /// The heading that it stands under.
    section: &'static str,
    /// The metric with its tags.
    name: String,
    samples: u64,
    /// What the samples add up to, as the text format has it.
    figures: String,
    /// Of a check, whether it passed each time.
    #[serde(skip_serializing_if = "Option::is_none")]
    passed: Option<bool>,
}

/// The rows of all sections, and how many more there are.
pub(super) fn metrics(run: &Run) -> (Vec<MetricForm>, usize) {
    let rows = sections(run).into_iter().flat_map(|section| {
        let form = move |row: Row| MetricForm {
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
