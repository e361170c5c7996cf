//! One second of a run, as observers see it.

use gake_core::clock::{SECOND, nanos};
use gake_core::metric::SeriesTable;
use gake_core::plan::Plan;
use gake_core::record::{GaugeReading, WatchRecord};
use gake_engine::{Collector, JoinedSecond};
use gake_judge::{RunView, ScenarioView};

/// Sees each second of a run, and may return a reason to end it: no new arrivals, then the drain,
/// unless the options say to abort.
pub type EachSecond<'a> = dyn FnMut(&SecondUpdate<'_>) -> Option<String> + Send + 'a;

/// One second of a run in progress.
#[derive(Debug, Clone, Copy)]
pub struct SecondUpdate<'a> {
    /// The figures of the second.
    pub second: &'a JoinedSecond,
    /// Arrivals that the plan asks for in the second; `None` in a closed loop.
    pub asked: Option<f64>,
    /// The run so far.
    pub so_far: &'a Collector,
    /// The gauges of a script's users so far, which workers do not record.
    pub levels: &'a SeriesTable,
    /// Readings of the target in the second.
    pub readings: &'a [GaugeReading],
    /// All readings of the target so far.
    pub watched: &'a WatchRecord,
}

impl<'a> SecondUpdate<'a> {
    /// The view of the run so far that objectives are evaluated on.
    #[must_use]
    pub fn view(&self, plan: &'a Plan) -> RunView<'a> {
        let warmup = nanos(plan.warmup);
        let now = self.second.second * SECOND;
        let measured = now.saturating_sub(warmup);
        let scenarios = self.so_far.scenarios().map(|(tally, begun)| {
            let span = now.saturating_sub(begun);
            ScenarioView { tally, begun, sending: span, span }
        });
        RunView {
            tally: self.so_far.tally(),
            sending: measured,
            span: measured,
            plan,
            watched: self.watched,
            scenarios: scenarios.collect(),
        }
    }
}
