//! Built-in quantities: statistics of latencies, counts and rates.

use std::fmt;

use gake_core::clock::Nanos;
use gake_core::record::{Counts, Histogram, LatencyMetric, Tally};

use super::level::{BoundedLevel, LevelStatistic};
use super::{RunView, ValueUnit};
use crate::stats::{per_second, share};

pub(super) const K6_SERVICE: &str = "http_req_duration";

/// A quantity, with the bound in its own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    Latency { measure: Measure, statistic: Statistic, bound: Nanos },
    ErrorPercent(f64),
    ErrorCount(u64),
    Rate { of: RateKind, bound: f64 },
    SentCount(u64),
    Gauge { gauge: BoundedLevel, of: LevelStatistic, bound: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Response times of all arrivals, including censored waits.
    Response,
    Of(LatencyMetric),
}

/// A statistic of a histogram. A percentile is in per cent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Statistic {
    Percentile(f64),
    Mean,
    Min,
    Max,
}

/// The bound of a clause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClauseBound {
    /// At most this share (0 to 1, exclusive) of the requests may be bad.
    Share(f64),
    /// A level, read once a second, may be at most this, in its own unit.
    Level(f64),
}

/// A number of bad requests, and of all.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BadCount {
    /// Bad requests.
    pub bad: f64,
    /// All requests due.
    pub of: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateKind {
    Completed,
    Goodput,
    Sent,
}

/// Parses a statistic: `p99`, `p(99.9)`, `mean`, `avg`, `med`, `min`, `max`.
pub(super) fn parse_statistic(text: &str) -> Result<Statistic, String> {
    match text {
        "mean" | "avg" => return Ok(Statistic::Mean),
        "med" => return Ok(Statistic::Percentile(50.0)),
        "min" => return Ok(Statistic::Min),
        "max" => return Ok(Statistic::Max),
        _ => {}
    }
    let Some(percent) = text.strip_prefix('p') else {
        return Err(format!(
            "{text:?} is not a known quantity; there are p50 p99 p99.9 ..., mean, min, max, \
             errors, rate, goodput and sent; for a watched target {}",
            BoundedLevel::names()
        ));
    };
    let in_brackets = percent.strip_prefix('(').and_then(|percent| percent.strip_suffix(')'));
    let percent = in_brackets.unwrap_or(percent);
    // Digits only: `parse` also accepts "1e1", "+5" and "inf".
    let plain = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match percent.parse::<f64>() {
        Ok(value) if plain && value > 0.0 && value <= 100.0 => Ok(Statistic::Percentile(value)),
        _ if text.contains(['<', '>', ',']) => {
            Err("it is more than one: give each its own --slo".to_owned())
        }
        _ => Err(format!("{text:?} is not a percentile, above p0 and up to p100")),
    }
}

/// The records in the scope of an objective.
pub(super) struct ScopeView<'a> {
    pub(super) counts: &'a Counts,
    pub(super) tally: &'a Tally,
    /// The label's own histograms: response, service.
    pub(super) label: Option<(&'a Histogram, &'a Histogram)>,
}

impl<'a> ScopeView<'a> {
    pub(super) fn whole(view: &RunView<'a>) -> Self {
        Self { counts: &view.tally.counts, tally: view.tally, label: None }
    }

    /// One label; `None` when there is no such label.
    pub(super) fn of_label(name: &str, view: &RunView<'a>) -> Option<Self> {
        let number = view.labels().iter().position(|label| label == name)?;
        let whole = Self::whole(view);
        // A single label has no tally of its own: it is the whole.
        let Some(label) = view.tally.labels().get(number) else { return Some(whole) };
        let histograms = Some((&label.response, &label.service));
        Some(Self { counts: &label.counts, label: histograms, ..whole })
    }
}

impl Quantity {
    pub(super) fn unit(self) -> ValueUnit {
        match self {
            Self::Latency { .. } => ValueUnit::Nanoseconds,
            Self::ErrorPercent(_) => ValueUnit::Percent,
            Self::ErrorCount(_) | Self::SentCount(_) => ValueUnit::Count,
            Self::Rate { .. } => ValueUnit::PerSecond,
            Self::Gauge { gauge, .. } => gauge.unit(),
        }
    }

    pub(super) fn bound(self) -> f64 {
        match self {
            Self::Latency { bound, .. } => bound as f64,
            Self::ErrorPercent(bound) | Self::Rate { bound, .. } | Self::Gauge { bound, .. } => {
                bound
            }
            Self::ErrorCount(bound) | Self::SentCount(bound) => bound as f64,
        }
    }

    pub(super) fn measure(self, part: &ScopeView<'_>, view: &RunView<'_>) -> Result<f64, String> {
        let counts = part.counts;
        let errors = counts.due().saturating_sub(counts.ok);
        match self {
            // Fast failures are no fast responses.
            Self::Latency { measure, .. }
                if measure.is_of_responses() && counts.begun() > 0 && counts.ok == 0 =>
            {
                Err("no request succeeded".to_owned())
            }
            Self::Latency { measure, statistic, .. } => measure.value(statistic, part),
            Self::ErrorPercent(_) | Self::ErrorCount(_) if counts.due() == 0 => {
                Err("nothing was due".to_owned())
            }
            Self::ErrorPercent(_) => Ok(share(errors, counts.due()) * 100.0),
            Self::ErrorCount(_) => Ok(errors as f64),
            Self::SentCount(_) => Ok(counts.sent as f64),
            Self::Gauge { gauge, of, .. } => gauge.value(of, view.watched, view.warmup()),
            Self::Rate { of, .. } => {
                let (count, time) = match of {
                    RateKind::Completed => (counts.completed(), view.span),
                    RateKind::Goodput => (counts.ok, view.span),
                    RateKind::Sent => (counts.sent, view.sending),
                };
                if time == 0 {
                    return Err("no time was measured".to_owned());
                }
                Ok(per_second(count as f64, time))
            }
        }
    }

    /// The metric, and the statistic if one must be written.
    pub(super) fn subject(self) -> (&'static str, Option<String>) {
        match self {
            Self::Latency { measure, statistic, .. } => {
                (measure.name(), Some(statistic.to_string()))
            }
            Self::ErrorPercent(_) | Self::ErrorCount(_) => ("errors", None),
            Self::SentCount(_) => ("sent", None),
            Self::Rate { of, .. } => (of.name(), None),
            Self::Gauge { gauge, of, .. } => {
                let of = gauge.suffix(of);
                (gauge.name, of.map(str::to_owned))
            }
        }
    }

    /// The bound, as it is parsed.
    pub(super) fn shown_bound(self) -> String {
        match self {
            Self::Latency { bound, .. } => exact(bound),
            Self::ErrorPercent(bound) => format!("{bound}%"),
            Self::ErrorCount(bound) | Self::SentCount(bound) => bound.to_string(),
            Self::Gauge { gauge, bound, .. } => gauge.shown(bound),
            Self::Rate { bound, .. } => format!("{bound}/s"),
        }
    }
}

impl Measure {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            // The short names used in objectives.
            Self::Of(LatencyMetric::OkResponse) => "ok",
            Self::Of(LatencyMetric::FaultResponse) => "fault",
            Self::Of(metric) => metric.name(),
        }
    }

    /// Whether it measures how fast the target responds.
    fn is_of_responses(self) -> bool {
        use LatencyMetric::{Download, FirstByte, OkResponse, Service};
        matches!(self, Self::Response | Self::Of(OkResponse | Service | FirstByte | Download))
    }

    pub(super) fn value(self, statistic: Statistic, part: &ScopeView<'_>) -> Result<f64, String> {
        match (self, part.label) {
            (Self::Response, Some((response, _))) => statistic.of(response),
            (Self::Of(_), Some((_, service))) => statistic.of(service),
            // Slow failures count, and fast ones make nothing better.
            (Self::Response, None) => {
                let latency = &part.tally.latency;
                let all = statistic.of(&latency.response())?;
                let ok = latency.distinct_ok().map(|ok| statistic.of(ok)).transpose()?;
                Ok(ok.map_or(all, |ok| all.max(ok)))
            }
            (Self::Of(metric), None) => statistic.of(part.tally.latency.of(metric)),
        }
    }
}

impl RateKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Completed => "rate",
            Self::Goodput => "goodput",
            Self::Sent => "sent",
        }
    }
}

impl Statistic {
    pub(super) fn of(self, histogram: &Histogram) -> Result<f64, String> {
        if histogram.is_empty() {
            return Err("no sample".to_owned());
        }
        Ok(match self {
            Self::Percentile(percent) => histogram.quantile(percent / 100.0) as f64,
            Self::Mean => histogram.mean(),
            Self::Min => histogram.min() as f64,
            Self::Max => histogram.max() as f64,
        })
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percent) => write!(f, "p{percent}"),
            Self::Mean => f.write_str("mean"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// A duration in the largest unit in which it is a whole number.
pub(super) fn exact(bound: Nanos) -> String {
    for (size, unit) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if bound.is_multiple_of(size) {
            return format!("{}{unit}", bound / size);
        }
    }
    format!("{bound}ns")
}
