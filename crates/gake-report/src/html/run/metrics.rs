//! Metrics of the run's own: checks, those of scripts, the parts of answers.

use gake_core::record::Run;
use serde::Serialize;

use super::{METRICS_MAX, NAME_MAX};
use crate::formats::text::series_figures;
use crate::html::cut_to;

/// One metric under one set of tags.
#[derive(Serialize)]
pub(super) struct MetricForm {
    /// The metric with its tags.
    name: String,
    samples: u64,
    /// What the samples add up to, as the text format has it.
    figures: String,
}

/// The series, by name and tags.
pub(super) fn metrics(run: &Run) -> Vec<MetricForm> {
    let all = run.tally.series.sorted().into_iter().take(METRICS_MAX);
    all.map(|(key, value)| MetricForm {
        name: cut_to(&format!("{}{}", key.metric.name, key.tags), NAME_MAX),
        samples: value.samples(),
        figures: series_figures(value, key.metric.unit, run.completing),
    })
    .collect()
}
