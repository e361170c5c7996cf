//! Parsing objectives.

use gake_core::clock::{Nanos, nanos};
use gake_core::metric::{CHECKS, Tags};
use gake_core::plan::{Rate, parse_rate};
use gake_core::record::LatencyMetric;
use gake_text::duration::parse_duration;

use super::level::BoundedLevel;
use super::quantity::{K6_SERVICE, Measure, Quantity, RateKind, parse_statistic};
use super::series::SeriesClaim;
use super::{BoundOperator, Claim, Objective, ObjectiveLabel, ObjectiveScope, selector};

/// Why a text is not an objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an objective: {problem}")]
pub struct ObjectiveError {
    text: String,
    problem: String,
}

/// Latencies that can be named before a statistic.
const MEASURES: [(&str, Measure); 12] = [
    ("response", Measure::Response),
    ("ok", Measure::Of(LatencyMetric::OkResponse)),
    ("ok_response", Measure::Of(LatencyMetric::OkResponse)),
    ("fault", Measure::Of(LatencyMetric::FaultResponse)),
    ("service", Measure::Of(LatencyMetric::Service)),
    ("lateness", Measure::Of(LatencyMetric::Lateness)),
    ("blocked", Measure::Of(LatencyMetric::Blocked)),
    ("connect", Measure::Of(LatencyMetric::Connect)),
    ("tls", Measure::Of(LatencyMetric::Tls)),
    ("first_byte", Measure::Of(LatencyMetric::FirstByte)),
    ("download", Measure::Of(LatencyMetric::Download)),
    ("rtt", Measure::Of(LatencyMetric::Rtt)),
];

/// Rates of scripts that need no statistic.
const SCRIPT_RATES: [&str; 2] = [CHECKS, "http_req_failed"];

impl std::str::FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        parse(text).map_err(|problem| ObjectiveError { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Objective, String> {
    let (subject, operator, bound) = split(text)
        .ok_or("it has no < <= > or >=; write for example p99<50ms, errors<0.1% or rate>=990/s")?;
    if bound.is_empty() {
        return Err("there is nothing after the comparison".to_owned());
    }
    Ok(Objective { claim: claim(subject, bound)?, operator })
}

/// The comparisons, longer signs first.
const OPERATORS: [(&str, BoundOperator); 7] = [
    ("===", BoundOperator::Equal),
    ("==", BoundOperator::Equal),
    ("!=", BoundOperator::NotEqual),
    ("<=", BoundOperator::LessOrEqual),
    (">=", BoundOperator::GreaterOrEqual),
    ("<", BoundOperator::Less),
    (">", BoundOperator::Greater),
];

/// Subject, operator and bound. The last comparison sign is the operator's, since a bound has none.
/// Only metrics of scripts, whose thresholds need it, allow equality.
fn split(text: &str) -> Option<(&str, BoundOperator, &str)> {
    let (before, bound) = text.split_at(text.rfind(['<', '>', '='])? + 1);
    let split =
        |(sign, operator): &(&str, BoundOperator)| Some((before.strip_suffix(sign)?, *operator));
    let (subject, operator) = OPERATORS.iter().find_map(split)?;
    let is_allowed = operator.is_bound() || subject.contains([':', '{']);
    is_allowed.then_some((subject.trim(), operator, bound.trim()))
}

fn claim(subject: &str, bound: &str) -> Result<Claim, String> {
    if let Some((metric, tags, rest)) = selector::split(subject) {
        return tagged(metric, tags, rest, bound);
    }
    // A label may contain colons, as a URL does; a quantity may not.
    match subject.rsplit_once(':') {
        Some(("", _)) => Err("the label before the colon is empty".to_owned()),
        Some((name, subject)) => named(name, subject.trim(), bound),
        None if SCRIPT_RATES.contains(&subject) => {
            SeriesClaim::parse(subject, Tags::default(), "", bound).map(Claim::Series)
        }
        None => Ok(Claim::Builtin {
            scope: ObjectiveScope::default(),
            quantity: quantity(subject, bound)?,
        }),
    }
}

/// `LABEL:QUANTITY`, or else `METRIC:STATISTIC`.
fn named(name: &str, subject: &str, bound: &str) -> Result<Claim, String> {
    if name == K6_SERVICE {
        let quantity = latency(&format!("service.{subject}"), bound)?;
        return within(ObjectiveScope { is_k6: true, ..ObjectiveScope::default() }, quantity);
    }
    let label = ObjectiveLabel { name: name.to_owned(), is_tag: false };
    let scope = ObjectiveScope { label: Some(label), ..ObjectiveScope::default() };
    let of_label = quantity(subject, bound).and_then(|quantity| within(scope, quantity));
    if of_label.is_ok() || !selector::is_metric_name(name) {
        return of_label;
    }
    let series = SeriesClaim::parse(name, Tags::default(), subject, bound).map(Claim::Series);
    // Report the label's error unless only metrics have the statistic.
    let of_metrics = ["count", "value"].contains(&subject);
    if of_metrics { series } else { series.or(of_label) }
}

/// `METRIC{key:value}:STATISTIC`.
fn tagged(metric: &str, tags: Tags, rest: &str, bound: &str) -> Result<Claim, String> {
    let statistic = match rest.strip_prefix([':', '.']) {
        Some(statistic) if !statistic.trim().is_empty() => statistic.trim(),
        None if rest.is_empty() => "",
        _ => {
            return Err(
                "only a statistic may follow the tags, as in response{name:a}:p95<1s".into()
            );
        }
    };
    let is_k6 = metric == K6_SERVICE;
    let metric = if is_k6 { "service" } else { metric };
    let is_latency = MEASURES.iter().any(|known| known.0 == metric);
    let is_count = ["errors", "rate", "goodput", "sent"].contains(&metric);
    if !is_latency && !is_count {
        return SeriesClaim::parse(metric, tags, statistic, bound).map(Claim::Series);
    }
    let label = |name: &str| ObjectiveLabel { name: name.to_owned(), is_tag: true };
    let (label, tags) = (tags.get("name").map(label), tags.without("name"));
    let scope = ObjectiveScope { label, tags, is_k6 };
    let quantity = match (is_latency, statistic) {
        (true, "") => return Err(format!("{metric} needs a statistic: p95, mean, min or max")),
        (true, statistic) => latency(&format!("{metric}.{statistic}"), bound)?,
        (false, "") => quantity(metric, bound)?,
        (false, _) => return Err(format!("{metric} takes no statistic after its tags")),
    };
    within(scope, quantity)
}

fn within(scope: ObjectiveScope, quantity: Quantity) -> Result<Claim, String> {
    let label = &scope.label;
    if let (Some(_), Quantity::Gauge { gauge, .. }) = (label, quantity) {
        return Err(format!("{} is the target's, not a label's", gauge.name));
    }
    if let (Some(_), Quantity::Latency { measure, .. }) = (label, quantity)
        && !matches!(measure, Measure::Response | Measure::Of(LatencyMetric::Service))
    {
        return Err("a label has only response and service times".to_owned());
    }
    Ok(Claim::Builtin { scope, quantity })
}

fn quantity(subject: &str, bound: &str) -> Result<Quantity, String> {
    match subject {
        "errors" => match bound.strip_suffix('%') {
            Some(percent) => percentage(percent.trim()).map(Quantity::ErrorPercent),
            None => bound.parse().map(Quantity::ErrorCount).map_err(|_| {
                format!("{bound:?} is neither a share like 0.1% nor a whole number of errors")
            }),
        },
        "sent" if bound.bytes().all(|b| b.is_ascii_digit()) => {
            bound.parse().map(Quantity::SentCount).map_err(|_| format!("{bound:?} is too large"))
        }
        "rate" => rate(RateKind::Completed, bound),
        "goodput" => rate(RateKind::Goodput, bound),
        "sent" => rate(RateKind::Sent, bound),
        _ => match BoundedLevel::named(subject) {
            Some((gauge, of)) => {
                gauge.bound(bound).map(|bound| Quantity::Gauge { gauge, of, bound })
            }
            None => latency(subject, bound),
        },
    }
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("{text:?} is not a percentage from 0 to 100")),
    }
}

fn rate(of: RateKind, bound: &str) -> Result<Quantity, String> {
    match parse_rate(bound) {
        Ok(Rate::PerSecond(bound)) => Ok(Quantity::Rate { of, bound }),
        _ => Err(format!("{bound:?} is not a rate like 990/s")),
    }
}

fn latency(subject: &str, bound: &str) -> Result<Quantity, String> {
    // `p99.9` contains a point, too, but no metric before it.
    let (measure, statistic) = match subject.split_once('.') {
        Some((name, statistic)) if !is_percentile(name) => {
            let known = MEASURES.iter().find(|known| known.0 == name);
            let (_, measure) = known.ok_or_else(|| unknown_measure(name))?;
            (*measure, statistic)
        }
        _ => (Measure::Response, subject),
    };
    let statistic = parse_statistic(statistic)?;
    Ok(Quantity::Latency { measure, statistic, bound: duration(bound)? })
}

fn is_percentile(name: &str) -> bool {
    let digits = name.strip_prefix("p(").or(name.strip_prefix('p'));
    digits.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

fn unknown_measure(name: &str) -> String {
    let names: Vec<_> = MEASURES.iter().map(|known| known.0).collect();
    format!("there is no metric {name:?}; there are {}", names.join(", "))
}

fn duration(text: &str) -> Result<Nanos, String> {
    if text.parse::<f64>().is_ok() {
        return Err(format!("{text:?} has no unit; write for example {text}ms"));
    }
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    // The parser accepts at most a year, which fits.
    Ok(nanos(duration))
}
