//! The bound of an objective, for drawing it into a chart.

use super::quantity::Quantity;
use super::{BoundOperator, Claim, Objective, ObjectiveScope};

/// A bound and its subject.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectiveLimit {
    /// The label; `None` for the whole run.
    pub label: Option<String>,
    /// The bounded quantity.
    pub subject: LimitSubject,
    /// The bound, in the subject's unit.
    pub bound: f64,
    /// Whether values above the bound, not below it, miss the objective.
    pub upper: bool,
}

/// The quantity that a limit bounds.
#[derive(Debug, Clone, PartialEq)]
pub enum LimitSubject {
    /// A statistic of a latency, in nanoseconds.
    Latency {
        /// The latency's name in objectives, such as `response`.
        metric: &'static str,
        /// `p99`, `mean`, `min` or `max`.
        statistic: String,
    },
    /// The share of the arrivals due that did not end ok, 0 to 1.
    ErrorShare,
    /// The number of errors or of arrivals sent in the whole run.
    Count,
    /// `rate` (completed), `goodput` or `sent` a second.
    Rate(&'static str),
    /// A level of the watched target by name, in the level's unit.
    Gauge(&'static str),
}

impl Objective {
    /// The limit; `None` for a metric of the run's own, some of its scenarios, or an equality.
    #[must_use]
    pub fn limit(&self) -> Option<ObjectiveLimit> {
        let Claim::Builtin { scope: ObjectiveScope { label, tags, .. }, quantity } = &self.claim
        else {
            return None;
        };
        if !tags.is_empty() || !self.operator.is_bound() {
            return None;
        }
        let bound = quantity.bound();
        let (subject, bound) = match *quantity {
            Quantity::Latency { measure, statistic, .. } => {
                let statistic = statistic.to_string();
                (LimitSubject::Latency { metric: measure.name(), statistic }, bound)
            }
            Quantity::ErrorPercent(percent) => (LimitSubject::ErrorShare, percent / 100.0),
            Quantity::ErrorCount(_) | Quantity::SentCount(_) => (LimitSubject::Count, bound),
            Quantity::Rate { of, .. } => (LimitSubject::Rate(of.name()), bound),
            Quantity::Gauge { gauge, .. } => (LimitSubject::Gauge(gauge.name), bound),
        };
        let upper = matches!(self.operator, BoundOperator::Less | BoundOperator::LessOrEqual);
        let label = label.as_ref().map(|label| label.name.clone());
        Some(ObjectiveLimit { label, subject, bound, upper })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_unit_of_what_they_bound() {
        let limit = |text: &str| text.parse::<Objective>().unwrap().limit();
        let latency = |metric, statistic: &str| LimitSubject::Latency {
            metric,
            statistic: statistic.to_owned(),
        };
        for (text, label, subject, bound, upper) in [
            ("p99<50ms", None, latency("response", "p99"), 5e7, true),
            ("buy:service.p99.9<=1s", Some("buy"), latency("service", "p99.9"), 1e9, true),
            (
                "http_req_duration{name:buy}:p(95)<1s",
                Some("buy"),
                latency("service", "p95"),
                1e9,
                true,
            ),
            ("errors<0.1%", None, LimitSubject::ErrorShare, 0.001, true),
            ("errors<5", None, LimitSubject::Count, 5.0, true),
            ("goodput>=990/s", None, LimitSubject::Rate("goodput"), 990.0, false),
            ("cpu<80%", None, LimitSubject::Gauge("cpu"), 0.8, true),
        ] {
            let label = label.map(str::to_owned);
            assert_eq!(
                limit(text),
                Some(ObjectiveLimit { label, subject, bound, upper }),
                "{text}"
            );
        }
    }
}
