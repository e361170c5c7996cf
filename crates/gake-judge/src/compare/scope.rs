//! The scope of a figure: the whole run, one label, some scenarios, or a metric of the run's own.

use std::borrow::Cow;

use gake_core::clock::Nanos;
use gake_core::metric::{SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Histogram, LatencyMetric, Run, Tally};

use crate::objective::RunView;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FigureScope {
    Whole,
    Label(String),
    /// The scenarios that carry these tags.
    Scenarios(Tags),
    /// The series of a metric that carry these tags.
    Series {
        metric: String,
        tags: Tags,
    },
}

/// The records of an interval: a second, a slice or a whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordWindow<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tally: &'a Tally,
    pub(super) scenarios: &'a [Tally],
}

/// The records of a scope in an interval.
#[derive(Debug, Default)]
pub(super) struct ScopeRecord<'a> {
    pub(super) counts: Counts,
    /// Response times, or the values of a trend.
    pub(super) response: Cow<'a, Histogram>,
    pub(super) service: Cow<'a, Histogram>,
    /// The sum of a counter, or the samples of a rate that are not zero.
    pub(super) sum: f64,
    pub(super) samples: f64,
}

impl FigureScope {
    /// The records of this scope in `window`; empty when the run has no such scope.
    pub(super) fn of<'a>(&self, window: RecordWindow<'a>) -> ScopeRecord<'a> {
        match self {
            Self::Whole => ScopeRecord::of(window.tally),
            Self::Label(name) => {
                let label = window.plan.labels.iter().position(|label| label == name);
                let Some(label) = label.and_then(|i| window.tally.labels().get(i)) else {
                    return ScopeRecord::default();
                };
                ScopeRecord {
                    counts: label.counts,
                    response: Cow::Borrowed(&label.response),
                    service: Cow::Borrowed(&label.service),
                    ..ScopeRecord::default()
                }
            }
            Self::Scenarios(tags) => {
                let plans = window.plan.scenarios();
                // A single scenario is the whole.
                if let [single] = plans
                    && single.carries(tags)
                {
                    return ScopeRecord::of(window.tally);
                }
                let scopes = plans.iter().zip(window.scenarios);
                ScopeRecord::of_all(
                    scopes.filter(|scope| scope.0.carries(tags)).map(|scope| scope.1),
                )
            }
            Self::Series { metric, tags } => {
                let mut all = ScopeRecord::default();
                for (key, value) in window.tally.series.series() {
                    if key.metric.name == *metric && key.tags.contains(tags) {
                        all.add(value);
                    }
                }
                all
            }
        }
    }

    /// The records of this scope in a whole run.
    pub(super) fn of_run<'a>(&self, run: &'a Run) -> ScopeRecord<'a> {
        if let Self::Scenarios(tags) = self
            && !run.scenarios.is_empty()
        {
            let scopes = run.scenarios.iter().filter(|scope| scope.plan.carries(tags));
            return ScopeRecord::of_all(scopes.map(|scope| &scope.tally));
        }
        self.of(RecordWindow { plan: &run.plan, tally: &run.tally, scenarios: &[] })
    }

    pub(super) fn times(&self, run: &Run) -> (Nanos, Nanos) {
        let times = match self {
            Self::Scenarios(tags) => RunView::of(run).times(tags),
            _ => None,
        };
        times.unwrap_or((run.sending, run.completing))
    }
}

impl<'a> ScopeRecord<'a> {
    fn of(tally: &'a Tally) -> Self {
        Self {
            counts: tally.counts,
            response: tally.latency.response(),
            service: Cow::Borrowed(tally.latency.of(LatencyMetric::Service)),
            ..Self::default()
        }
    }

    fn of_all(tallies: impl Iterator<Item = &'a Tally>) -> Self {
        let mut all = Self::default();
        for (i, tally) in tallies.enumerate() {
            let one = Self::of(tally);
            if i == 0 {
                all = one;
            } else {
                all.counts.merge(&one.counts);
                all.response.to_mut().merge(&one.response);
                all.service.to_mut().merge(&one.service);
            }
        }
        all
    }

    fn add(&mut self, value: &'a SeriesValue) {
        match value {
            SeriesValue::Counter { sum, samples } => {
                self.sum += sum.value();
                self.samples += *samples as f64;
            }
            SeriesValue::Rate { passed, samples } => {
                self.sum += *passed as f64;
                self.samples += *samples as f64;
            }
            SeriesValue::Trend(values) if self.response.is_empty() => {
                self.response = Cow::Borrowed(values);
            }
            SeriesValue::Trend(values) => self.response.to_mut().merge(values),
            SeriesValue::Gauge { .. } => {}
        }
    }
}
