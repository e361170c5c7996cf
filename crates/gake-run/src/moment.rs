//! One second of a run, as observers see it.

use gake_core::clock::{SECOND, nanos};
use gake_core::metric::SeriesTable;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, WatchRecord};
use gake_engine::{Collector, JoinedSecond};
use gake_judge::{ScenarioView, View};

/// One second of a run in progress.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// What was recorded in it.
    pub second: &'a JoinedSecond,
    /// Arrivals that the plan asked for in it.
    pub asked: Option<f64>,
    /// The run so far.
    pub so_far: &'a Collector,
    /// The levels of a script's users so far, which no worker records.
    pub levels: &'a SeriesTable,
    /// Readings of the target in it.
    pub readings: &'a [GaugeReading],
    /// All readings of the target so far.
    pub watched: &'a WatchRecord,
}

impl<'a> Moment<'a> {
    /// The run of `plan` so far, as objectives are judged by it.
    #[must_use]
    pub fn view(&self, plan: &'a Plan) -> View<'a> {
        let warmup = nanos(plan.warmup);
        let now = self.second.second * SECOND;
        let measured = now.saturating_sub(warmup);
        let scenarios = self.so_far.scenarios().map(|(tally, begun)| {
            let span = now.saturating_sub(begun);
            ScenarioView { tally, begun, sending: span, span }
        });
        View {
            tally: self.so_far.tally(),
            sending: measured,
            span: measured,
            plan,
            watched: self.watched,
            scenarios: scenarios.collect(),
        }
    }
}
