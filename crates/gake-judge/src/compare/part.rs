//! The part of a run that a figure is of: the whole, one label, one scenario, or a metric of the
//! run's own.

use std::borrow::Cow;

use gake_core::clock::Nanos;
use gake_core::metric::{SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::{Counts, Histogram, Metric, Run, Tally};

/// A part of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// A label by its name.
    Label(String),
    /// A scenario by its name.
    Scenario(String),
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
            Self::Scenario(name) => {
                let number = scenario(window.plan, name);
                let part = number.and_then(|i| part(window, i));
                part.map_or_else(Recorded::default, Recorded::of)
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
        if let Self::Scenario(name) = self
            && let Some(part) = scenario(&run.plan, name).and_then(|i| run.scenarios.get(i))
        {
            return Recorded::of(&part.tally);
        }
        self.of(Window { plan: &run.plan, tally: &run.tally, scenarios: &[] })
    }

    /// The times over which it sent, and over which it completed.
    pub(super) fn times(&self, run: &Run) -> (Nanos, Nanos) {
        if let Self::Scenario(name) = self
            && let Some(part) = scenario(&run.plan, name).and_then(|i| run.scenarios.get(i))
        {
            return (part.sending, part.completing);
        }
        (run.sending, run.completing)
    }
}

fn scenario(plan: &Plan, name: &str) -> Option<usize> {
    plan.scenarios().iter().position(|scenario| scenario.name == name)
}

/// What scenario number `i` recorded: one that is alone is the whole.
fn part(window: Window<'_>, i: usize) -> Option<&Tally> {
    if window.plan.scenarios().len() == 1 { Some(window.tally) } else { window.scenarios.get(i) }
}

impl<'a> Recorded<'a> {
    fn of(tally: &'a Tally) -> Self {
        Self {
            counts: tally.counts,
            response: tally.latency.response(),
            service: Cow::Borrowed(tally.latency.of(Metric::Service)),
            ..Self::default()
        }
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
