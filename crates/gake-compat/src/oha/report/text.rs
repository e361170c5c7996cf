//! oha's summary for people.

use std::cmp::Reverse;
use std::fmt::{Result, Write as _};

use gake_core::record::Histogram;

use super::{Oha, PERCENTILES, Triple, percentile, rows, seconds};

/// Cells of the longest bar.
const BAR: f64 = 32.0;

/// The units of the summary: the name in the flag, the name in the text, and the seconds.
const UNITS: [(&str, &str, f64); 6] = [
    ("ns", "ns", 1e-9),
    ("us", "us", 1e-6),
    ("ms", "ms", 1e-3),
    ("s", "sec", 1.0),
    ("m", "min", 60.0),
    ("h", "hr", 3_600.0),
];

/// The unit of times in the summary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeUnit {
    name: &'static str,
    seconds: f64,
}

impl TimeUnit {
    pub fn read(requested: &str) -> Option<Self> {
        let unit = UNITS.iter().find(|(known, ..)| *known == requested);
        unit.map(|&(_, name, seconds)| Self { name, seconds })
    }

    /// The largest unit that is not longer than the given seconds.
    fn of(longest: f64) -> Self {
        let fitting = UNITS.iter().rev().find(|(_, _, seconds)| longest >= *seconds);
        let &(_, name, seconds) = fitting.unwrap_or(&UNITS[0]);
        Self { name, seconds }
    }

    fn show(self, seconds: f64) -> String {
        format!("{:.4} {}", seconds / self.seconds, self.name)
    }

    fn triple(self, triple: Triple) -> String {
        let [average, fastest, slowest] =
            [triple.average, triple.fastest, triple.slowest].map(|value| self.show(value));
        format!("{average}, {fastest}, {slowest}")
    }
}

/// The summary, by default in the unit that suits the slowest response.
pub fn text(oha: &Oha<'_>, unit: Option<TimeUnit>) -> String {
    let unit = unit.unwrap_or_else(|| TimeUnit::of(Triple::of(oha.latency).slowest));
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = summary(&mut out, oha, unit).and_then(|()| details(&mut out, oha, unit));
    out
}

fn summary(out: &mut String, oha: &Oha<'_>, unit: TimeUnit) -> Result {
    let latency = Triple::of(oha.latency);
    writeln!(out, "Summary:\n  Success rate:\t{:.2}%", 100.0 * oha.success_rate())?;
    writeln!(out, "  Total:\t{}", unit.show(seconds(oha.total)))?;
    writeln!(out, "  Slowest:\t{}", unit.show(latency.slowest))?;
    writeln!(out, "  Fastest:\t{}", unit.show(latency.fastest))?;
    writeln!(out, "  Average:\t{}", unit.show(latency.average))?;
    writeln!(out, "  Requests/sec:\t{:.4}\n", oha.per_second())?;
    writeln!(out, "  Total data:\t{}", size(oha.body_bytes))?;
    let each = oha.bytes_per_response().map_or_else(|| "NaN".to_owned(), size);
    writeln!(out, "  Size/request:\t{each}")?;
    writeln!(out, "  Size/sec:\t{}\n", size(oha.bytes_per_second() as u64))?;
    spread(out, "", oha.latency, unit)?;
    if let Some([ok, other]) = oha.breakdown {
        spread(out, " (2xx only)", ok, unit)?;
        spread(out, " (4xx + 5xx only)", other, unit)?;
    }
    writeln!(out)
}

/// A histogram and its percentiles.
fn spread(out: &mut String, which: &str, latency: &Histogram, unit: TimeUnit) -> Result {
    writeln!(out, "Response time histogram{which}:")?;
    let rows = rows(latency);
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let counts = most.to_string().len();
    let whole = |mark: f64| ((mark / unit.seconds) as u64).to_string().len();
    let marks = rows.iter().map(|(mark, _)| whole(*mark)).max().unwrap_or(0) + 4;
    for (mark, count) in rows {
        let bar = "■".repeat((BAR * count as f64 / most as f64) as usize);
        let (mark, name, count) = (mark / unit.seconds, unit.name, format!("[{count}]"));
        writeln!(out, "  {mark:>marks$.3} {name} {count:<width$} |{bar}", width = counts + 2)?;
    }
    writeln!(out, "\nResponse time distribution{which}:")?;
    for percent in PERCENTILES {
        writeln!(out, "  {percent:.2}% in {}", unit.show(percentile(latency, percent)))?;
    }
    writeln!(out)
}

fn details(out: &mut String, oha: &Oha<'_>, unit: TimeUnit) -> Result {
    writeln!(out, "Details (average, fastest, slowest):")?;
    writeln!(out, "  DNS+dialup:\t{}", unit.triple(oha.dial.into()))?;
    writeln!(out, "  DNS-lookup:\t{}", unit.triple(oha.lookup().into()))?;
    writeln!(out, "\nStatus code distribution:")?;
    let mut statuses = oha.statuses.to_vec();
    statuses.sort_by_key(|(_, count)| Reverse(*count));
    for (status, count) in statuses {
        writeln!(out, "  [{status}] {count} responses")?;
    }
    if !oha.errors.is_empty() {
        writeln!(out, "\nError distribution:")?;
    }
    let mut errors: Vec<_> = oha.errors.iter().collect();
    errors.sort_by_key(|(_, count)| Reverse(*count));
    for (cause, count) in errors {
        writeln!(out, "  [{count}] {cause}")?;
    }
    Ok(())
}

/// Bytes in the largest binary unit of which there is at least 1.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1_024.0 {
            break;
        }
        (value, unit) = (value / 1_024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.2} {unit}") }
}
