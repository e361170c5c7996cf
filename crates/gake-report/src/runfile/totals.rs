//! The head of a run file, and the totals of its seconds.

use std::collections::HashMap;

use gake_core::plan::Plan;
use gake_core::record::{Counts, Provenance, RunEvent, Series, SeriesPoint, Tally, WatchRecord};

use super::tag::HistogramTag;
use super::write::Second;

#[derive(Debug, Clone, Default)]
pub(super) struct RunTotals {
    pub(super) tally: Tally,
    pub(super) scenarios: Vec<Tally>,
    pub(super) warmup: Counts,
    pub(super) series: Series,
    /// Whether a second without tenths was added.
    lacks_tenths: bool,
    pub(super) peak: u64,
    /// The end of the last second.
    pub(super) seconds: u64,
    pub(super) events: Vec<RunEvent>,
    pub(super) watched: WatchRecord,
    pub(super) origin: Provenance,
}

impl RunTotals {
    /// Adds tallies for the labels of a plan.
    pub(super) fn grow_labels(&mut self, plan: &Plan) {
        self.tally.grow_labels(Tally::new(plan.labels.len()).labels().len());
    }

    pub(super) fn add(&mut self, second: &Second<'_>) {
        self.tally.merge(second.tally);
        if self.scenarios.len() < second.scenarios.len() {
            self.scenarios.resize_with(second.scenarios.len(), Tally::default);
        }
        self.scenarios.iter_mut().zip(second.scenarios).for_each(|(sum, part)| sum.merge(part));
        self.warmup.merge(second.warmup);
        self.peak = self.peak.max(second.gauges.peak);
        self.seconds = self.seconds.max(second.at.saturating_add(1));
        let mut point = SeriesPoint::new(second.at, second.tally);
        point.asked = second.asked;
        point.open = second.gauges.open;
        point.cpu = second.cpu;
        self.series.push(point);
        self.lacks_tenths |= second.tenths.is_empty();
        if self.lacks_tenths {
            self.series.forget_tenths();
        } else {
            second.tenths.iter().for_each(|tenth| self.series.push_tenth(tenth.clone()));
        }
    }
}

/// The data in the head of a file.
pub(super) struct RunHead {
    pub(super) plan: Plan,
    pub(super) started_unix_ns: u64,
    pub(super) tags: HashMap<String, HistogramTag>,
}

impl RunHead {
    /// A head without histogram tags, for a run that is not read from a file.
    pub(super) fn of(plan: Plan, started_unix_ns: u64) -> Self {
        Self { plan, started_unix_ns, tags: HashMap::new() }
    }
}
