//! Objectives on a metric of the run's own: `checks>99%`, `my_trend{name:login}:p95<200ms`,
//! `my_counter:count>10`.

use std::fmt;

use gake_core::clock::{Nanos, nanos};
use gake_core::metric::{Definition, MetricKind, MetricUnit, Registry, SeriesValue, Tags};
use gake_core::plan::Plan;
use gake_core::record::{LatencyMetric, Tally};
use gake_text::duration::parse_duration;
use gake_text::size::parse_byte_amount;

use super::quantity::{Flow, K6_SERVICE, Measure, Quantity, Statistic, exact, parse_statistic};
use super::{Measured, Scope, Unit, View, listed, selector};
use crate::stats::per_second;

/// A bound on a statistic of a metric, over the series that carry the tags.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeriesClaim {
    pub(super) metric: String,
    pub(super) tags: Tags,
    /// `None` is what is usual for the metric's kind.
    pub(super) statistic: Option<SeriesStatistic>,
    pub(super) bound: SeriesBound,
}

/// What of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SeriesStatistic {
    /// Of a trend; the smallest and the largest of a gauge too.
    Of(Statistic),
    /// The sum of a counter; the number of samples of a rate or trend.
    Count,
    /// The share of a rate that is not zero; a counter's sum a second.
    Rate,
    /// The last value of a gauge.
    Value,
}

/// A bound, in the unit in which it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SeriesBound {
    Number(f64),
    Time(Nanos),
    Bytes(f64),
    /// 0 to 100.
    Percent(f64),
    PerSecond(f64),
}

impl SeriesClaim {
    /// The claim on `metric` in the text of a statistic, which may be missing, and of a bound.
    pub(super) fn parse(
        metric: &str,
        tags: Tags,
        statistic: &str,
        bound: &str,
    ) -> Result<Self, String> {
        let statistic = match statistic {
            "" => None,
            text => Some(SeriesStatistic::parse(text)?),
        };
        let bound = SeriesBound::parse(bound)?;
        Ok(Self { metric: metric.to_owned(), tags, statistic, bound })
    }

    /// What an objective on a label, or on what no scenario carries, claims where there is no such
    /// label or scenario, but a metric of a script: a metric of the label's name, or the service
    /// time of k6 under these tags.
    pub(super) fn fallback(scope: &Scope, quantity: Quantity) -> Option<Self> {
        let label = scope.label.as_ref();
        if let Quantity::Latency {
            measure: Measure::Of(LatencyMetric::Service),
            statistic,
            bound,
        } = quantity
        {
            let name = label.map(|label| ("name", label.name.as_str()));
            let own = scope.tags.pairs().iter().map(|(key, value)| (key.as_str(), value.as_str()));
            return Some(Self {
                metric: K6_SERVICE.to_owned(),
                tags: Tags::new(own.chain(name)),
                statistic: Some(SeriesStatistic::Of(statistic)),
                bound: SeriesBound::Time(bound),
            });
        }
        let label = label.filter(|label| !label.is_tag)?;
        let (statistic, bound) = match quantity {
            Quantity::Latency { measure: Measure::Response, statistic, bound } => {
                (SeriesStatistic::Of(statistic), SeriesBound::Time(bound))
            }
            // Of a rate that small number is a share; of a counter it is a second's all the same.
            Quantity::Rate { of: Flow::Completed, bound } => match bound {
                0.0..=1.0 => (SeriesStatistic::Rate, SeriesBound::Number(bound)),
                _ => (SeriesStatistic::Rate, SeriesBound::PerSecond(bound)),
            },
            _ => return None,
        };
        let (metric, tags) = (label.name.clone(), Tags::default());
        Some(Self { metric, tags, statistic: Some(statistic), bound })
    }

    /// Whether the run has samples of its metric.
    pub(super) fn is_known(&self, view: &View<'_>) -> bool {
        view.tally.series.series().any(|(key, _)| key.metric.name == self.metric)
    }

    /// Whether a run with these metrics can say anything about it.
    pub(super) fn check(&self, labels: &[String], metrics: &Registry) -> Result<(), String> {
        if let Some(metric) = metrics.get(&self.metric) {
            return self.fits(metric).map(drop);
        }
        if labels.contains(&self.metric) {
            return Err(format!(
                "{:?} is a label, whose times are bounded with their unit, as in {}:p99<50ms",
                self.metric, self.metric
            ));
        }
        Err(self.missing(metrics.metrics().map(|metric| metric.name.as_str())))
    }

    fn missing<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let there = listed(names);
        let metric = &self.metric;
        if there.is_empty() {
            format!("there is no metric {metric:?}: the run has none of its own")
        } else {
            format!("there is no metric {metric:?}; there are {there}")
        }
    }

    /// What is measured, beside its bound.
    pub(super) fn measure(&self, view: &View<'_>) -> Result<Measured, String> {
        // The samples of a scenario are kept apart by the run, whether or not a work tags them.
        let name = self.tags.get(Plan::NAME_TAG).map(|name| (Plan::NAME_TAG, name));
        let scenario = Tags::new(name);
        if name.is_none() || !view.has(&scenario) {
            return self.measure_with(&self.tags, view);
        }
        view.within(&scenario, |view| self.measure_with(&self.tags.without(Plan::NAME_TAG), view))
    }

    /// What is measured of the series that carry `tags`.
    fn measure_with(&self, tags: &Tags, view: &View<'_>) -> Result<Measured, String> {
        let table = &view.tally.series;
        let mut selected = table.select(&self.metric, tags);
        let Some((first, value)) = selected.next() else { return Err(self.unseen(view)) };
        let (statistic, unit) = self.fits(&first.metric)?;
        let mut sum = std::borrow::Cow::Borrowed(value);
        for (_, value) in selected {
            sum.to_mut().merge(value);
        }
        let value = statistic.of(&sum, view.span)?;
        Ok(Measured { value, bound: self.bound.value(), unit })
    }

    /// Why there is no sample, and which metrics have samples.
    fn unseen(&self, view: &View<'_>) -> String {
        let mut keys: Vec<_> = view.tally.series.series().map(|series| series.0).collect();
        keys.sort();
        let tags: Vec<_> = keys
            .iter()
            .filter(|key| key.metric.name == self.metric)
            .map(|key| selector::Written(&key.tags).to_string())
            .collect();
        if tags.is_empty() {
            return self.missing(names(view.tally).into_iter());
        }
        let there = listed(tags.iter().map(|tags| if tags.is_empty() { "no tag" } else { tags }));
        let (metric, asked) = (&self.metric, selector::Written(&self.tags));
        format!("no sample of {metric:?} has the tags {asked}; there are {there}")
    }

    /// The statistic and the unit of its values, when the metric has it and the bound is in it.
    fn fits(&self, metric: &Definition) -> Result<(SeriesStatistic, Unit), String> {
        use MetricKind::{Counter, Gauge, Rate, Trend};
        use SeriesStatistic as Is;
        let name = &metric.name;
        let (usual, has) = match metric.kind {
            Counter => (Some(Is::Count), "count and rate"),
            Gauge => (Some(Is::Value), "value, min and max"),
            Rate => (Some(Is::Rate), "rate and count"),
            Trend => (None, "p50, p95 ..., avg, min, max and count"),
        };
        let statistic = self
            .statistic
            .or(usual)
            .ok_or_else(|| format!("{name:?} is a trend: say what of it; it has {has}"))?;
        let of_values = match metric.unit {
            MetricUnit::Time => Unit::Nanoseconds,
            MetricUnit::Bytes => Unit::Bytes,
            MetricUnit::Number => Unit::Count,
        };
        let unit = match (metric.kind, statistic) {
            (Trend, Is::Of(_))
            | (Gauge, Is::Value | Is::Of(Statistic::Min | Statistic::Max))
            | (Counter, Is::Count) => of_values,
            (Trend | Rate, Is::Count) => Unit::Count,
            (Rate, Is::Rate) => Unit::Share,
            (Counter, Is::Rate) => Unit::PerSecond,
            _ => {
                let kind = metric.kind.name();
                return Err(format!("{name:?} is a {kind}: it has {has}, and no {statistic}"));
            }
        };
        let example = match (unit, self.bound) {
            (Unit::Nanoseconds, SeriesBound::Time(_))
            | (Unit::Bytes, SeriesBound::Bytes(_) | SeriesBound::Number(_))
            | (Unit::Count, SeriesBound::Number(_))
            | (Unit::Share, SeriesBound::Percent(_))
            | (Unit::PerSecond, SeriesBound::PerSecond(_) | SeriesBound::Number(_)) => {
                return Ok((statistic, unit));
            }
            (Unit::Share, SeriesBound::Number(share)) if (0.0..=1.0).contains(&share) => {
                return Ok((statistic, unit));
            }
            (Unit::Nanoseconds, _) => "a time with its unit, as 50ms",
            (Unit::Bytes, _) => "bytes, as 5MB",
            (Unit::Share, _) => "a share, as 99%",
            (Unit::PerSecond, _) => "a rate, as 10/s",
            _ => "a plain number, as 10",
        };
        Err(format!(
            "{} is not a valid bound for the {statistic} of {name:?}: write {example}",
            self.bound
        ))
    }
}

/// The metrics with samples in a tally.
pub(super) fn names(tally: &Tally) -> Vec<&str> {
    let mut names: Vec<_> =
        tally.series.series().map(|(key, _)| key.metric.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl SeriesStatistic {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "count" => Self::Count,
            "rate" => Self::Rate,
            "value" => Self::Value,
            text => Self::Of(parse_statistic(text)?),
        })
    }

    fn of(self, value: &SeriesValue, span: Nanos) -> Result<f64, String> {
        Ok(match (value, self) {
            (SeriesValue::Counter { sum, .. }, Self::Rate) if span > 0 => {
                per_second(sum.value(), span)
            }
            (SeriesValue::Counter { .. }, Self::Rate) => {
                return Err("no time was measured".to_owned());
            }
            (SeriesValue::Counter { sum, .. }, _) => sum.value(),
            (SeriesValue::Gauge { min, .. }, Self::Of(Statistic::Min)) => *min,
            (SeriesValue::Gauge { max, .. }, Self::Of(Statistic::Max)) => *max,
            (SeriesValue::Gauge { last, .. }, _) => *last,
            (SeriesValue::Rate { passed, samples }, Self::Rate) => {
                crate::stats::share(*passed, *samples)
            }
            (SeriesValue::Trend(trend), Self::Of(statistic)) => match statistic {
                Statistic::Percentile(percent) => trend.quantile_number(percent / 100.0),
                Statistic::Mean => trend.mean(),
                Statistic::Min => trend.min_number(),
                Statistic::Max => trend.max_number(),
            },
            (value, _) => value.samples() as f64,
        })
    }
}

impl SeriesBound {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let of_suffix = |suffix: &str| text.strip_suffix(suffix).and_then(number);
        if let Some(number) = number(text) {
            return Ok(Self::Number(number));
        }
        if let Some(percent) = of_suffix("%") {
            let fits = (0.0..=100.0).contains(&percent);
            return fits
                .then_some(Self::Percent(percent))
                .ok_or_else(|| format!("{text:?} is not a percentage from 0 to 100"));
        }
        if let Some(rate) = of_suffix("/s") {
            return Ok(Self::PerSecond(rate));
        }
        if let Ok(time) = parse_duration(text) {
            // A year is the longest that is read, so it fits.
            return Ok(Self::Time(nanos(time)));
        }
        parse_byte_amount(text).map(Self::Bytes).ok_or_else(|| {
            format!("{text:?} is not a valid bound: write a number, 50ms, 5MB, 99% or 10/s")
        })
    }

    fn value(self) -> f64 {
        match self {
            Self::Number(value) | Self::Bytes(value) | Self::PerSecond(value) => value,
            Self::Time(time) => time as f64,
            Self::Percent(percent) => percent / 100.0,
        }
    }

    pub(super) fn unit(self) -> Unit {
        match self {
            Self::Number(_) => Unit::Count,
            Self::Time(_) => Unit::Nanoseconds,
            Self::Bytes(_) => Unit::Bytes,
            Self::Percent(_) => Unit::Share,
            Self::PerSecond(_) => Unit::PerSecond,
        }
    }
}

impl fmt::Display for SeriesClaim {
    /// What is bounded, without the bound.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.metric, selector::Written(&self.tags))?;
        match self.statistic {
            Some(statistic) => write!(f, ":{statistic}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SeriesStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(statistic) => statistic.fmt(f),
            Self::Count => f.write_str("count"),
            Self::Rate => f.write_str("rate"),
            Self::Value => f.write_str("value"),
        }
    }
}

impl fmt::Display for SeriesBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Time(time) => f.write_str(&exact(*time)),
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
        }
    }
}
