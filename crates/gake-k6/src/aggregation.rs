//! Statistics of metrics, for thresholds and summaries.

use std::fmt;
use std::str::FromStr;

use gake_core::metric::MetricKind;

/// A statistic of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aggregation {
    /// The sum of a counter.
    Count,
    /// The sum of a counter a second, or the share of a rate's non-zero samples.
    Rate,
    /// The last value of a gauge.
    Value,
    /// The mean of a trend.
    Avg,
    /// The smallest value of a trend.
    Min,
    /// The largest value of a trend.
    Max,
    /// The median of a trend.
    Med,
    /// A percentile of a trend, 0 to 100.
    Percentile(f64),
}

impl FromStr for Aggregation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "count" => Self::Count,
            "rate" => Self::Rate,
            "value" => Self::Value,
            "avg" => Self::Avg,
            "min" => Self::Min,
            "max" => Self::Max,
            "med" => Self::Med,
            _ => {
                let percentile = text.strip_prefix("p(").and_then(|rest| rest.strip_suffix(')'));
                let percentile = percentile.ok_or("failed parsing method from expression")?;
                let number: f64 = percentile.parse().map_err(|_| {
                    format!(
                        "malformed percentile value; reason: strconv.ParseFloat: parsing \
                         {percentile:?}: invalid syntax"
                    )
                })?;
                if !(0.0..=100.0).contains(&number) {
                    let why = "malformed percentile value, provide a number between 0 and 100";
                    return Err(why.to_owned());
                }
                Self::Percentile(number)
            }
        })
    }
}

impl Aggregation {
    /// The statistics of metrics of this kind, as k6 lists them.
    #[must_use]
    pub fn of_kind(kind: MetricKind) -> &'static str {
        match kind {
            MetricKind::Counter => "count, rate",
            MetricKind::Gauge => "value",
            MetricKind::Rate => "rate",
            MetricKind::Trend => "avg, min, max, med, p",
        }
    }

    /// Whether metrics of `kind` have this statistic.
    #[must_use]
    pub fn fits(self, kind: MetricKind) -> bool {
        match self {
            Self::Count => kind == MetricKind::Counter,
            Self::Rate => matches!(kind, MetricKind::Counter | MetricKind::Rate),
            Self::Value => kind == MetricKind::Gauge,
            Self::Avg | Self::Min | Self::Max | Self::Med | Self::Percentile(_) => {
                kind == MetricKind::Trend
            }
        }
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::Rate => "rate",
            Self::Value => "value",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::Med => "med",
            Self::Percentile(p) => return write!(f, "p({p})"),
        })
    }
}
