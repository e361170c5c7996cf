//! Objectives on levels of the watched target: `cpu<80%`, `rss<1GB`, `pool.max<90%`.

use gake_core::clock::Nanos;
use gake_core::record::{LevelUnit, WatchRecord};
use gake_text::size::parse_byte_amount;
use gake_text::units;

/// A level of the target that can be bounded, with its unit and default statistic: the maximum for
/// a resource that can run out, the mean for the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BoundedLevel {
    pub(super) name: &'static str,
    unit: LevelUnit,
    usual: LevelStatistic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelStatistic {
    /// The mean after the warm-up.
    Mean,
    /// The maximum.
    Max,
}

const GAUGES: &[BoundedLevel] = &[
    gauge("cpu", LevelUnit::Share, LevelStatistic::Mean),
    gauge("cores", LevelUnit::Count, LevelStatistic::Mean),
    gauge("rss", LevelUnit::Bytes, LevelStatistic::Max),
    gauge("jvm_memory", LevelUnit::Bytes, LevelStatistic::Max),
    gauge("threads", LevelUnit::Count, LevelStatistic::Max),
    gauge("goroutines", LevelUnit::Count, LevelStatistic::Max),
    gauge("descriptors", LevelUnit::Share, LevelStatistic::Max),
    gauge("descriptors_open", LevelUnit::Count, LevelStatistic::Max),
    gauge("context_switches", LevelUnit::PerSecond, LevelStatistic::Mean),
    gauge("established", LevelUnit::Count, LevelStatistic::Max),
    gauge("time_wait", LevelUnit::Count, LevelStatistic::Max),
    gauge("accept_queue", LevelUnit::Count, LevelStatistic::Max),
    gauge("listen_overflows", LevelUnit::PerSecond, LevelStatistic::Max),
    gauge("connections", LevelUnit::Share, LevelStatistic::Max),
    gauge("pool", LevelUnit::Share, LevelStatistic::Mean),
    gauge("pool_busy", LevelUnit::Count, LevelStatistic::Mean),
    gauge("pool_queue", LevelUnit::Count, LevelStatistic::Mean),
    gauge("db_pool", LevelUnit::Share, LevelStatistic::Mean),
    gauge("db_pool_pending", LevelUnit::Count, LevelStatistic::Mean),
    gauge("db_connections", LevelUnit::Share, LevelStatistic::Max),
    gauge("db_open", LevelUnit::Count, LevelStatistic::Max),
    gauge("db_running", LevelUnit::Count, LevelStatistic::Mean),
    gauge("db_lock_waits", LevelUnit::Count, LevelStatistic::Mean),
];

const fn gauge(name: &'static str, unit: LevelUnit, usual: LevelStatistic) -> BoundedLevel {
    BoundedLevel { name, unit, usual }
}

impl BoundedLevel {
    /// Parses the name of a level with an optional `.mean` or `.max`.
    pub(super) fn named(subject: &str) -> Option<(Self, LevelStatistic)> {
        let (name, of) = match subject.rsplit_once('.') {
            Some((name, "mean")) => (name, Some(LevelStatistic::Mean)),
            Some((name, "max")) => (name, Some(LevelStatistic::Max)),
            _ => (subject, None),
        };
        let gauge = GAUGES.iter().find(|gauge| gauge.name == name)?;
        Some((*gauge, of.unwrap_or(gauge.usual)))
    }

    pub(super) fn names() -> String {
        GAUGES.iter().map(|gauge| gauge.name).collect::<Vec<_>>().join(", ")
    }

    /// Parses a bound in the level's unit.
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

    /// A bound, as [`Self::bound`] parses it.
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

    pub(super) fn value_shown(self, value: f64) -> String {
        match self.unit {
            LevelUnit::Share => units::percent(value),
            LevelUnit::Bytes => units::bytes(value),
            LevelUnit::PerSecond => units::rate(value),
            LevelUnit::Count | LevelUnit::Seconds => units::number(value),
        }
    }

    /// The suffix of a statistic; `None` for the default.
    pub(super) fn suffix(self, of: LevelStatistic) -> Option<&'static str> {
        match of {
            _ if of == self.usual => None,
            LevelStatistic::Mean => Some("mean"),
            LevelStatistic::Max => Some("max"),
        }
    }

    /// The value in a run: the largest of several sources.
    pub(super) fn value(
        self,
        of: LevelStatistic,
        watched: &WatchRecord,
        warmup: Nanos,
    ) -> Result<f64, String> {
        let values =
            watched.targets().filter(|gauge| gauge.name == self.name).filter_map(|g| match of {
                LevelStatistic::Mean => g.mean_from(warmup),
                LevelStatistic::Max => g.max(),
            });
        values.reduce(f64::max).ok_or_else(|| {
            let name = self.name;
            format!(
                "no watched source reports {name}; add one that does, such as --watch port:PORT"
            )
        })
    }

    pub(super) fn unit(self) -> super::ValueUnit {
        match self.unit {
            LevelUnit::Share => super::ValueUnit::Share,
            LevelUnit::Bytes => super::ValueUnit::Bytes,
            LevelUnit::PerSecond => super::ValueUnit::PerSecond,
            LevelUnit::Count | LevelUnit::Seconds => super::ValueUnit::Count,
        }
    }
}
