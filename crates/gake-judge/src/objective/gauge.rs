//! Objectives on levels of the watched target: `cpu<80%`, `rss<1GB`, `pool.max<90%`.

use gake_core::clock::Nanos;
use gake_core::record::{LevelUnit, WatchRecord};
use gake_text::size::parse_byte_amount;
use gake_text::units;

/// A level of the target that can be bounded, what it is counted in, and what is compared when
/// nothing says which: a level that is used up is bounded at its largest, one that only costs time
/// in its mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gauge {
    pub(super) name: &'static str,
    unit: LevelUnit,
    usual: Of,
}

/// What of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// The mean after the warm-up.
    Mean,
    /// The largest.
    Max,
}

const GAUGES: &[Gauge] = &[
    gauge("cpu", LevelUnit::Share, Of::Mean),
    gauge("cores", LevelUnit::Count, Of::Mean),
    gauge("rss", LevelUnit::Bytes, Of::Max),
    gauge("jvm_memory", LevelUnit::Bytes, Of::Max),
    gauge("threads", LevelUnit::Count, Of::Max),
    gauge("goroutines", LevelUnit::Count, Of::Max),
    gauge("descriptors", LevelUnit::Share, Of::Max),
    gauge("descriptors_open", LevelUnit::Count, Of::Max),
    gauge("context_switches", LevelUnit::PerSecond, Of::Mean),
    gauge("established", LevelUnit::Count, Of::Max),
    gauge("time_wait", LevelUnit::Count, Of::Max),
    gauge("accept_queue", LevelUnit::Count, Of::Max),
    gauge("listen_overflows", LevelUnit::PerSecond, Of::Max),
    gauge("connections", LevelUnit::Share, Of::Max),
    gauge("pool", LevelUnit::Share, Of::Mean),
    gauge("pool_busy", LevelUnit::Count, Of::Mean),
    gauge("pool_queue", LevelUnit::Count, Of::Mean),
    gauge("db_pool", LevelUnit::Share, Of::Mean),
    gauge("db_pool_pending", LevelUnit::Count, Of::Mean),
    gauge("db_connections", LevelUnit::Share, Of::Max),
    gauge("db_open", LevelUnit::Count, Of::Max),
    gauge("db_running", LevelUnit::Count, Of::Mean),
    gauge("db_lock_waits", LevelUnit::Count, Of::Mean),
];

const fn gauge(name: &'static str, unit: LevelUnit, usual: Of) -> Gauge {
    Gauge { name, unit, usual }
}

impl Gauge {
    /// The gauge that `subject` names, and what of it, by a `.mean` or `.max` after it.
    pub(super) fn named(subject: &str) -> Option<(Self, Of)> {
        let (name, of) = match subject.rsplit_once('.') {
            Some((name, "mean")) => (name, Some(Of::Mean)),
            Some((name, "max")) => (name, Some(Of::Max)),
            _ => (subject, None),
        };
        let gauge = GAUGES.iter().find(|gauge| gauge.name == name)?;
        Some((*gauge, of.unwrap_or(gauge.usual)))
    }

    /// Every name, for those who got one wrong.
    pub(super) fn names() -> String {
        GAUGES.iter().map(|gauge| gauge.name).collect::<Vec<_>>().join(", ")
    }

    /// Reads a bound in the gauge's unit.
    pub(super) fn bound(self, text: &str) -> Result<f64, String> {
        let number = |text: &str| {
            let value = text.trim().parse::<f64>().ok();
            value.filter(|value| value.is_finite() && *value >= 0.0)
        };
        let (bound, example) = match self.unit {
            LevelUnit::Share => (text.strip_suffix('%').and_then(number).map(|v| v / 100.0), "80%"),
            LevelUnit::Bytes => (parse_byte_amount(text), "1GB"),
            LevelUnit::PerSecond => (text.strip_suffix("/s").and_then(number), "100/s"),
            LevelUnit::Count | LevelUnit::Seconds => (number(text), "100"),
        };
        bound.ok_or_else(|| {
            format!("{text:?} is not a valid bound for {}: write {example}", self.name)
        })
    }

    /// A bound as it is read.
    pub(super) fn shown(self, bound: f64) -> String {
        match self.unit {
            LevelUnit::Share => format!("{}%", (bound * 1e8).round() / 1e6),
            LevelUnit::Bytes => {
                let sizes = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
                let fits = |size: &&(f64, &str)| bound >= size.0 && (bound % size.0) == 0.0;
                match sizes.iter().find(fits) {
                    Some((size, unit)) => format!("{}{unit}", bound / size),
                    None => format!("{bound}B"),
                }
            }
            LevelUnit::PerSecond => format!("{bound}/s"),
            LevelUnit::Count | LevelUnit::Seconds => bound.to_string(),
        }
    }

    /// A value as people read it.
    pub(super) fn value_shown(self, value: f64) -> String {
        match self.unit {
            LevelUnit::Share => units::percent(value),
            LevelUnit::Bytes => units::bytes(value),
            LevelUnit::PerSecond => units::rate(value),
            LevelUnit::Count | LevelUnit::Seconds => units::number(value),
        }
    }

    /// The `mean` or `max` that must be written for `of`.
    pub(super) fn suffix(self, of: Of) -> Option<&'static str> {
        match of {
            _ if of == self.usual => None,
            Of::Mean => Some("mean"),
            Of::Max => Some("max"),
        }
    }

    /// The value of a run: of several sources, the largest.
    pub(super) fn value(self, of: Of, watched: &WatchRecord, warmup: Nanos) -> Result<f64, String> {
        let values =
            watched.targets().filter(|gauge| gauge.name == self.name).filter_map(|g| match of {
                Of::Mean => g.mean_from(warmup),
                Of::Max => g.max(),
            });
        values.reduce(f64::max).ok_or_else(|| {
            let name = self.name;
            format!(
                "nothing that was watched tells {name}; --watch pid:..., port:... and others do"
            )
        })
    }

    /// The unit of an evaluation.
    pub(super) fn unit(self) -> super::Unit {
        match self.unit {
            LevelUnit::Share => super::Unit::Share,
            LevelUnit::Bytes => super::Unit::Bytes,
            LevelUnit::PerSecond => super::Unit::PerSecond,
            LevelUnit::Count | LevelUnit::Seconds => super::Unit::Count,
        }
    }
}
