//! The head of a run file, and what the seconds of its run add up to.

use std::collections::HashMap;

use gake_core::plan::Plan;
use gake_core::record::{Counts, Provenance, RunEvent, Series, SeriesPoint, Tally, WatchRecord};

use super::tag::Tag;
use super::write::Second;

/// What the seconds add up to.
#[derive(Debug, Clone, Default)]
pub(super) struct Body {
    pub(super) tally: Tally,
    pub(super) scenarios: Vec<Tally>,
    pub(super) warmup: Counts,
    pub(super) series: Series,
    /// Whether a second came without its tenths.
    lacks_tenths: bool,
    pub(super) peak: u64,
    /// Where the last second ends.
    pub(super) seconds: u64,
    pub(super) events: Vec<RunEvent>,
    pub(super) watched: WatchRecord,
    pub(super) origin: Provenance,
}

impl Body {
    /// Makes room for the labels of a plan.
    pub(super) fn grow_labels(&mut self, plan: &Plan) {
        self.tally.grow_labels(Tally::new(plan.labels.len()).labels().len());
    }

    /// Adds a second.
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

/// What the head says.
pub(super) struct Head {
    pub(super) plan: Plan,
    pub(super) started_unix_ns: u64,
    pub(super) tags: HashMap<String, Tag>,
}

impl Head {
    /// The head of a run whose seconds are not read.
    pub(super) fn of(plan: Plan, started_unix_ns: u64) -> Self {
        Self { plan, started_unix_ns, tags: HashMap::new() }
    }
}
