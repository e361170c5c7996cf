//! The part of a run that a figure is of: the whole, one label, some scenarios, or a metric
//! of the run's own.

use std::borrow::Cow;

use gake_core::clock::Nanos;
use gake_core::metric::{SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Histogram, LatencyMetric, Run, Tally};

use crate::objective::View;

/// A part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// A label by its name.
    Label(String),
    /// The scenarios that carry these tags.
    Scenarios(Tags),
    /// The series of a metric that carry these tags.
    Series {
        metric: String,
        tags: Tags,
    },
}

/// What was recorded in a time: a second, a slice or a whole run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    pub(super) plan: &'a Plan,
    pub(super) tally: &'a Tally,
    /// Of each scenario, when the run has several.
    pub(super) scenarios: &'a [Tally],
}

/// What a part recorded in a time.
#[derive(Debug, Default)]
pub(super) struct Recorded<'a> {
    pub(super) counts: Counts,
    /// Response times, or the values of a trend.
    pub(super) response: Cow<'a, Histogram>,
    pub(super) service: Cow<'a, Histogram>,
    /// The sum of a counter, or the samples of a rate that are not zero.
    pub(super) sum: f64,
    /// The samples of a counter or rate.
    pub(super) samples: f64,
}

impl Part {
    /// What it recorded in `window`; nothing when the run has no such part.
    pub(super) fn of<'a>(&self, window: Window<'a>) -> Recorded<'a> {
        match self {
            Self::Whole => Recorded::of(window.tally),
            Self::Label(name) => {
                let label = window.plan.labels.iter().position(|label| label == name);
                let Some(label) = label.and_then(|i| window.tally.labels().get(i)) else {
                    return Recorded::default();
                };
                Recorded {
                    counts: label.counts,
                    response: Cow::Borrowed(&label.response),
                    service: Cow::Borrowed(&label.service),
                    ..Recorded::default()
                }
            }
            Self::Scenarios(tags) => {
                let plans = window.plan.scenarios();
                // One that is alone is the whole.
                if let [alone] = plans
                    && alone.carries(tags)
                {
                    return Recorded::of(window.tally);
                }
                let parts = plans.iter().zip(window.scenarios);
                Recorded::of_all(parts.filter(|part| part.0.carries(tags)).map(|part| part.1))
            }
            Self::Series { metric, tags } => {
                let mut all = Recorded::default();
                for (key, value) in window.tally.series.series() {
                    if key.metric.name == *metric && key.tags.contains(tags) {
                        all.add(value);
                    }
                }
                all
            }
        }
    }

    /// What it recorded in a whole run.
    pub(super) fn of_run<'a>(&self, run: &'a Run) -> Recorded<'a> {
        if let Self::Scenarios(tags) = self
            && !run.scenarios.is_empty()
        {
            let parts = run.scenarios.iter().filter(|part| part.plan.carries(tags));
            return Recorded::of_all(parts.map(|part| &part.tally));
        }
        self.of(Window { plan: &run.plan, tally: &run.tally, scenarios: &[] })
    }

    /// The times over which it sent, and over which it completed.
    pub(super) fn times(&self, run: &Run) -> (Nanos, Nanos) {
        let times = match self {
            Self::Scenarios(tags) => View::of(run).times(tags),
            _ => None,
        };
        times.unwrap_or((run.sending, run.completing))
    }
}

impl<'a> Recorded<'a> {
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
